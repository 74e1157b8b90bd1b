"""What is generated installs Baton from where this copy came from, and says what to write later."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from baton.plugins.origin import origin_of

ASKED = "from baton.plugins.origin import *; print(install(requirement('otel'), 'more'))"
NOTES = "print(*origin_notes([requirement('otel'), 'more']), sep='\\n')"


@pytest.mark.parametrize(
    ("noted", "address"),
    [
        (
            {"url": "https://git.example/b", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "git+https://git.example/b@abc",
        ),
        ({"url": "https://x.example/b.whl", "archive_info": {}}, "https://x.example/b.whl"),
        ({"url": "file:///src/b", "dir_info": {"editable": True}}, "file:///src/b"),
        (
            {"url": "file:///src", "dir_info": {}, "subdirectory": "b"},
            "file:///src#subdirectory=b",
        ),
    ],
)
def test_each_kind_of_origin_is_an_address_that_pip_takes(
    noted: dict[str, object], address: str
) -> None:
    assert origin_of(noted) == address


@pytest.mark.parametrize(
    ("noted", "command", "notes"),
    [
        (None, "pip install 'baton-evals[otel]' more", []),
        (
            {"url": "https://git.example/b", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'baton-evals[otel] @ git+https://git.example/b@abc' more",
            ["Once Baton is published on the package index: pip install 'baton-evals[otel]' more"],
        ),
        (
            {"url": "file:///src/b", "dir_info": {}},
            "pip install 'baton-evals[otel] @ file:///src/b' more",
            [
                "This copy of Baton came from a folder: name an address that CI can reach.",
                "Once Baton is published on the package index: pip install 'baton-evals[otel]' more",
            ],
        ),
    ],
    ids=["index", "repository", "folder"],
)
def test_a_copy_knows_its_origin(
    tmp_path: Path, noted: object, command: str, notes: list[str]
) -> None:
    about = tmp_path / "baton_evals-9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: baton-evals\nVersion: 9\n")
    if noted is not None:
        (about / "direct_url.json").write_text(json.dumps(noted))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {ASKED}; {NOTES}"
    said = subprocess.run(
        [sys.executable, "-c", code.replace("*;", "install, requirement, origin_notes;")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.splitlines() == [command, *(notes or [""])]
