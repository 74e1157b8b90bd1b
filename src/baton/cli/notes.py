"""What a command says beside its result."""

from __future__ import annotations

import sys


def note(text: str) -> None:
    """Say something on standard error, which is never part of a report."""
    print(f"note: {text}", file=sys.stderr)
