"""Playing a page of the docs: its commands, Python and files, from top to bottom.

A comment above a block says more of it:

- ``<!-- file: NAME -->``: the block is the content of this file
- ``<!-- change: NAME -->``: the block is a diff of this file
- ``<!-- exit: N -->``: its commands end with this code (0 without it)
- ``<!-- before: COMMAND -->``: what a reader has done before
- ``<!-- background: TEXT -->``: its command continues, and the page with it, when it has printed
  TEXT; it ends with the page
- ``<!-- continues -->``: Python that continues where the block before it ended
- ``<!-- not run: WHY -->``: it can't run here. It is still checked: commands for their options, Python and YAML
  for their form
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
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


def environment(binaries: Path, folder: Path) -> dict[str, str]:
    """Return variables with the programs of one environment before all others.

    What programs would keep at home, as Claude Code does, they keep below the folder.
    """
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    home = {"CLAUDE_CONFIG_DIR": str(folder / ".claude-home")}
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    return {**os.environ, **home, **quiet, "PATH": path, "COLUMNS": "200"}


def run(command: str, folder: Path, binaries: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with the programs of one environment before all others."""
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(binaries, folder),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def runs(block: Block) -> bool:
    """Tell whether a block is to be run."""
    return block.language in ("console", "python") and "file" not in block.notes


def change(path: Path, diff: str) -> None:
    """Put the lines with ``+`` in place of those with ``-``, one group after the other."""
    text = path.read_text(encoding="utf-8")
    for group in re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)*)", diff, re.MULTILINE):
        old, new = (re.sub(r"^[-+]", "", lines, flags=re.MULTILINE) for lines in group)
        assert text.count(old) == 1, (path.name, old)
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


@contextmanager
def running(command: str, ready: str, folder: Path, binaries: Path) -> Iterator[None]:
    """Have a command run until the block ends, from the moment when it has printed a text."""
    with (folder / "background.log").open("w+") as log:
        # `exec`: the process to end is the program, and not a shell around it.
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=folder,
            env=environment(binaries, folder),
            stdout=log,
            stderr=log,
        )
        try:
            until = time.monotonic() + 30
            while ready not in (printed := (folder / "background.log").read_text()):
                assert process.poll() is None, (command, printed)
                assert time.monotonic() < until, (command, printed)
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(20)


def play(page: Path, folder: Path, binaries: Path) -> None:
    """Do what a page says, one block after the other, with the programs of one environment."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    with ExitStack() as background:
        _play(page, folder, binaries, background)


def _play(page: Path, folder: Path, binaries: Path, background: ExitStack) -> None:
    script = ""
    for block in blocks(page):
        if "before" in block.notes:
            done = run(block.notes["before"], folder, binaries)
            assert done.returncode == 0, (block.notes["before"], done.stdout, done.stderr)
        if "file" in block.notes:
            to = folder / block.notes["file"]
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(block.text, encoding="utf-8")
        elif "change" in block.notes:
            change(folder / block.notes["change"], block.text)
        elif not runs(block) or "not run" in block.notes:
            continue
        elif "background" in block.notes:
            ((command, _),) = commands(block)
            background.enter_context(running(command, block.notes["background"], folder, binaries))
        elif block.language == "console":
            code = int(block.notes.get("exit", "0"))
            for command, shown in commands(block):
                done = run(command, folder, binaries)
                assert done.returncode == code, (command, done.stdout, done.stderr)
                printed = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
                for line in shown:
                    assert line.rstrip() in printed, (command, line, done.stdout, done.stderr)
        else:
            script = script + block.text if "continues" in block.notes else block.text
            (folder / "snippet.py").write_text(script, encoding="utf-8")
            done = run("python snippet.py", folder, binaries)
            expected = int(block.notes.get("exit", "0"))
            assert done.returncode == expected, (block.text, done.stdout, done.stderr)
