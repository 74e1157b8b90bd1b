"""What pages of the docs show is run: commands, Python, and files.

Each page is played from top to bottom in a folder of its own with ``examples/`` in it. A comment above a block
says more of it:

- ``<!-- file: NAME -->``: the block is the content of this file
- ``<!-- change: NAME -->``: the block is a diff of this file
- ``<!-- exit: N -->``: its commands end with this code (0 without it)
- ``<!-- before: COMMAND -->``: what a reader has done before
- ``<!-- continues -->``: Python that goes on where the block before it ended
- ``<!-- not run: WHY -->``: it can't run here. It is still checked: commands for their options, Python and YAML
  for their form
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from baton.cli.app import app

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    path
    for folder in ("", "quickstarts", "coming-from", "evaluators")
    for path in (ROOT / "docs" / folder).glob("*.md")
)
BLOCK = re.compile(r"((?:^<!-- [^\n]+ -->\n)*)^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOTE = re.compile(r"^<!-- ([a-z ]+?)(?:: (.+))? -->$", re.MULTILINE)


class Block(NamedTuple):
    language: str
    text: str
    notes: dict[str, str]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, each with the comments above it."""
    return [
        Block(language, text, {name: value or "" for name, value in NOTE.findall(notes)})
        for notes, language, text in BLOCK.findall(page.read_text(encoding="utf-8"))
    ]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT / "docs").with_suffix(""))


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """Return each command of a console block with the lines shown below it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (f"{found[-1][0][:-1]}{line.strip()}", [])
        elif line.strip() and found:
            found[-1][1].append(line)
    return found


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def _runs(block: Block) -> bool:
    return block.language in ("console", "python") and "file" not in block.notes


def change(path: Path, diff: str) -> None:
    """Put the lines with ``+`` in the place of those with ``-``, one group after the other."""
    text = path.read_text(encoding="utf-8")
    for group in re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)*)", diff, re.MULTILINE):
        old, new = (re.sub(r"^[-+]", "", lines, flags=re.MULTILINE) for lines in group)
        assert text.count(old) == 1, (path.name, old)
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def play(page: Path, folder: Path) -> None:
    """Do what a page says, one block after the other."""
    script = ""
    shutil.copytree(ROOT / "examples", folder / "examples")
    for block in blocks(page):
        if "before" in block.notes:
            done = run(block.notes["before"], folder)
            assert done.returncode == 0, (block.notes["before"], done.stdout, done.stderr)
        if "file" in block.notes:
            to = folder / block.notes["file"]
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(block.text, encoding="utf-8")
        elif "change" in block.notes:
            change(folder / block.notes["change"], block.text)
        elif not _runs(block) or "not run" in block.notes:
            continue
        elif block.language == "console":
            code = int(block.notes.get("exit", "0"))
            for command, shown in commands(block):
                done = run(command, folder)
                assert done.returncode == code, (command, done.stdout, done.stderr)
                printed = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
                for line in shown:
                    assert line.rstrip() in printed, (command, line, done.stdout, done.stderr)
        else:
            script = script + block.text if "continues" in block.notes else block.text
            (folder / "snippet.py").write_text(script, encoding="utf-8")
            done = run(f"{sys.executable} snippet.py", folder)
            expected = int(block.notes.get("exit", "0"))
            assert done.returncode == expected, (block.text, done.stdout, done.stderr)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(map(_runs, blocks(page)))], ids=name_of
)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    play(page, tmp_path)


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
