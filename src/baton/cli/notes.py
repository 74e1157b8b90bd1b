"""What a command says beside its result."""

from __future__ import annotations

import sys
from contextlib import suppress

from baton.model.secrets import mask


def note(text: str) -> None:
    """Say something on standard error, which is never part of a report."""
    say(f"note: {text}")


def say(text: str) -> None:
    """Print a line on standard error; that nobody reads it any more changes nothing else."""
    with suppress(BrokenPipeError):
        print(mask(text), file=sys.stderr, flush=True)
