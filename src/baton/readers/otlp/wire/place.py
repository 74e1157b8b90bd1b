"""Where in a file something stands."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_CHUNK = 1 << 20


class Place(NamedTuple):
    """A part of a file: its first ``line`` where it has lines, else what it is called."""

    line: int | None = None
    name: str = ""

    def at(self, data: bytes | memoryview, offset: int) -> Place:
        """Return the place of an offset in the data that starts here."""
        if self.line is None:
            return Place(None, ", ".join(filter(None, [self.name, f"byte {offset}"])))
        return Place(self.line + lines_between(data, 0, offset))

    def __str__(self) -> str:
        return self.name if self.line is None else f"line {self.line}"


def offset_of(part: Any, data: bytes | memoryview) -> int:
    """Return where a part of ``data`` stands in it: 0 when it is none."""
    start = re.escape(bytes(memoryview(part)[:400]))
    match = re.search(start, data)
    return match.start() if match else 0


def lines_between(data: bytes | memoryview, start: int, end: int) -> int:
    """Count the ends of lines in a part of ``data``."""
    view = memoryview(data)
    starts = range(start, end, _CHUNK)
    return sum(bytes(view[at : min(at + _CHUNK, end)]).count(b"\n") for at in starts)
