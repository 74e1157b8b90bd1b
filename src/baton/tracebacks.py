"""Tracebacks of code that is not Baton's: kept quiet until `--debug` asks for them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_shown = False


def show_traceback(error: BaseException) -> None:
    """Print the traceback of what an agent or an evaluator raised, where they are shown.

    A result words an error in one line; the author of the code needs the way there.
    """
    if _shown:
        import traceback

        traceback.print_exception(error, file=sys.stderr)


def are_shown() -> bool:
    """Tell whether they are, for a process that is started."""
    return _shown


@contextmanager
def tracebacks_shown(wanted: bool = True) -> Iterator[None]:
    """Show them for as long as this is entered, in every thread."""
    global _shown  # noqa: PLW0603 - a context variable would not reach the threads of agents
    before, _shown = _shown, wanted
    try:
        yield
    finally:
        _shown = before
