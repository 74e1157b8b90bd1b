"""Providers under the names of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from baton.config import load_config
from baton.model import InputError
from baton.providers.adk_options import AdkLocalOptions
from baton.providers.registry import make_provider


def options(folder: Path, text: str) -> Any:
    path = folder / "baton.yaml"
    path.write_text(f"providers:\n  - {text}\n")
    (found,) = load_config(path).providers
    return found


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{type: google_adk, path: agents/desk}", "agents/desk"),
        ("{type: google_adk, agent_metadata: {module_path: desk.agent}}", "desk"),
        (
            "{type: google_adk, agent_metadata: {root_path: src, module_prefix: app, "
            "module_path: desk.agent, agent_name: root_agent}}",
            "src/app/desk",
        ),
    ],
)
def test_google_adk_is_adk_local(tmp_path: Path, text: str, path: str) -> None:
    found = options(tmp_path, text)
    assert isinstance(found, AdkLocalOptions)
    assert (found.type, found.path) == ("adk_local", path)


def test_what_google_adk_lacks_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`path` is missing"):
        options(tmp_path, "{type: google_adk}")
    metadata = "{module_path: desk.agent, agent_name: helper}"
    with pytest.raises(InputError, match="plays the `root_agent`"):
        options(tmp_path, f"{{type: google_adk, agent_metadata: {metadata}}}")
    with pytest.raises(InputError, match="did you mean `google_adk`"):
        make_provider({"type": "google_adkk", "path": "x"})
