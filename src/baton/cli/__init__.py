"""The ``baton`` command: one file a verb."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence

from baton import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code (the console script exits with it)."""
    # Not `list(...)`: once `cli/list.py` is imported, that name is the module here.
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    if words in (["--version"], ["-V"]):  # scripts often call this; it loads nothing else
        print(__version__)
        return 0
    # Imports and decoding make millions of objects and no cycles. Collecting garbage less often
    # halves the time of a large load. At exit, Python would scan all objects once more: 60 ms, for
    # memory that the system frees anyway.
    gc.set_threshold(500_000, 50, 1000)
    atexit.register(gc.freeze)
    if words in ([], ["--help"], ["-h"]):  # as frequent, and runs none of the user's code
        from .verbs import app

        try:
            app(words, exit_on_error=False, result_action="return_value")
            sys.stdout.flush()
            return 0
        except (OSError, SystemExit):  # reader gone, or disk full: reported below
            pass
    from .app import main as run

    return run(words)
