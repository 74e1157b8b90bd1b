"""An error as one line for people; the whole of it stays in the record."""

from __future__ import annotations

import re

_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?::[ \t].*)?$", re.MULTILINE)


def in_short(error: str, limit: int = 200) -> str:
    """Fold an error into one line of at most ``limit`` characters, and leave out tracebacks.

    What stands before a traceback says it all; where nothing does, the exception at its end.
    """
    said, traceback, frames = error.partition(_TRACEBACK)
    if traceback and not said.strip():
        raised = _RAISED.findall(frames)
        said = raised[-1] if raised else error
    line = " ".join(said.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
