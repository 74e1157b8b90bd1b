"""What a command says beside its result."""

from __future__ import annotations

import sys
from contextlib import suppress
from contextvars import ContextVar

from baton.model.secrets import mask
from baton.model.visible import visible_line

DEBUG = "--debug"
"""The option of all commands that shows the traceback of a fault of Baton."""
debugging: ContextVar[bool] = ContextVar("debugging", default=False)
"""Whether it was given."""


def note(text: str) -> None:
    """Say something on standard error, which is never part of a report."""
    say(f"note: {text}")


def say(text: str) -> None:
    """Print one line on standard error; that nobody reads it any more changes nothing else.

    A newline in an id or a file name is shown as an escape: it starts no line of its own. A pipe
    may be closed, and a terminal (then writing is an input/output error).
    """
    with suppress(OSError):
        print(visible_line(mask(text)), file=sys.stderr, flush=True)
