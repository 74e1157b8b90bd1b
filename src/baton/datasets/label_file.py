"""A file of labels that grows while somebody labels."""

from __future__ import annotations

from pathlib import Path

import msgspec

from baton.formats.own_files import make_folder, naming, write_whole
from baton.model import InputError, Problem

from .labels import LabelLine, label_lines


class LabelFile:
    """Adds labels at the end of a file, and takes the last one back.

    What is added is out of this process at once.
    """

    def __init__(self, path: Path) -> None:
        """Read what is there; raises InputError for each line that is wrong."""
        self.path = path
        self._lines: list[LabelLine] = []
        if path.exists():
            problems: list[Problem] = []
            self._lines = [line for _, line in label_lines(path, problems)]
            if problems:
                raise InputError(problems)

    def labelled(self, rubric: str, by: str | None) -> list[tuple[str, str]]:
        """Return the ids of traces, and of what in them this person labelled by a rubric."""
        return [
            (line.trace, line.dispatch or line.subject or line.trace)
            for line in self._lines
            if line.rubric == rubric and line.by == by
        ]

    def add(self, line: LabelLine) -> None:
        """Write one more label."""
        text = msgspec.json.encode(line) + b"\n"
        make_folder(self.path.parent)
        with naming(self.path), self.path.open("ab+") as file:
            if file.tell():
                file.seek(-1, 2)
                text = text if file.read(1) == b"\n" else b"\n" + text
            file.write(text)
        self._lines.append(line)

    def take_back(self, rubric: str, by: str | None) -> LabelLine | None:
        """Remove the last line and return it; ``None`` when it is of somebody or something else."""
        if not self._lines or (self._lines[-1].rubric, self._lines[-1].by) != (rubric, by):
            return None
        data = self.path.read_bytes().rstrip()
        write_whole(self.path, data[: data.rfind(b"\n") + 1])
        return self._lines.pop()
