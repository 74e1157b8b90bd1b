"""What a command says beside its result."""

from __future__ import annotations

import sys
from contextlib import suppress

from baton.model.visible import visible_line


def note(text: str) -> None:
    """Say something on standard error, which is never part of a report."""
    say(f"note: {text}")


def say(text: str) -> None:
    """Print one line on standard error; that nobody reads it any more changes nothing else.

    A newline in an id or a file name is shown as an escape: it starts no line of its own.
    """
    with suppress(BrokenPipeError):
        print(visible_line(text), file=sys.stderr, flush=True)
