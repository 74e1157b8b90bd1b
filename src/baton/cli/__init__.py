"""The ``baton`` command: one file a verb."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from baton import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code (the console script exits with it)."""
    # Not `list(...)`: once `cli/list.py` is imported, that name is the module here.
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    if words == ["--version"]:  # asked by scripts, often; loads nothing else
        print(__version__)
        return 0
    from .app import main as run

    return run(words)
