"""What a command says beside its result."""

from __future__ import annotations

import sys
from contextlib import suppress


def note(text: str) -> None:
    """Say something on standard error, which is never part of a report."""
    say(f"note: {text}")


def say(text: str) -> None:
    """Print a line on standard error; that nobody reads it any more changes nothing else.

    A pipe may be closed, and a terminal (then writing is an input/output error).
    """
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)
