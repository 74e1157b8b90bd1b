"""A copy of the package with a file more: what ARCHITECTURE.md says is enough to add something."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import baton

ROOT = Path(__file__).resolve().parent.parent


class Copy:
    """The package in its own folder; commands run in that folder with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(Path(baton.__file__).parent, folder / "src" / "baton")

    def add(self, path: str, text: str) -> None:
        """Write a file; ``path`` starts in the folder of the repository."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ``baton``."""
        return self.python("-m", "baton", *words)

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run Python."""
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder / "src")},
            capture_output=True,
            text=True,
            check=False,
        )


def how_to_add(thing: str) -> tuple[str, str]:
    """Return the path and the text of the file that ARCHITECTURE.md shows below ``### A thing``."""
    (block,) = re.findall(r"```[a-z]+\n# (src/\S+)\n(.+?)```", section_of(thing), re.DOTALL)
    path, text = block
    return path, text


def section_of(thing: str) -> str:
    """Return what ARCHITECTURE.md says below ``### A thing``."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    return re.split(rf"^### {thing}\n", text, flags=re.MULTILINE)[1].split("\n##")[0].strip()
