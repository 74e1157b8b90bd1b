"""What pages of the docs show is run: commands, Python, and files (see ``pages.py`` for the marks)."""

from __future__ import annotations

import ast
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from baton.cli.app import app

from .pages import ROOT, blocks, play, runs

PAGES = sorted(
    path
    for folder in ("", "quickstarts", "coming-from", "evaluators")
    for path in (ROOT / "docs" / folder).glob("*.md")
)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT / "docs").with_suffix(""))


@pytest.mark.heavy
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(map(runs, blocks(page)))], ids=name_of
)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    play(page, tmp_path, Path(sys.executable).parent)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_are_well_formed(page: Path) -> None:
    for block in blocks(page):
        if block.language == "yaml":
            assert list(yaml.safe_load_all(block.text)), block.text
        elif block.language == "python":
            ast.parse(block.text)


def _shown_commands() -> list[tuple[str, str]]:
    return [
        (name_of(page), line.removeprefix("$ "))
        for page in PAGES
        for block in blocks(page)
        if block.language in ("console", "sh", "bash")
        for line in block.text.splitlines()
        if line.removeprefix("$ ").startswith("baton ") and not line.endswith("\\")
    ]


@pytest.mark.parametrize(("page", "command"), _shown_commands())
def test_a_command_that_is_shown_has_these_options(page: str, command: str) -> None:
    words = shlex.split(command, comments=True)[1:]
    app.parse_args(words, exit_on_error=False, print_error=False)


def test_what_is_not_run_says_why() -> None:
    for page in PAGES:
        for block in blocks(page):
            if "not run" in block.notes:
                assert block.notes["not run"], (name_of(page), block.text)
