"""The terminal that reports are written to."""

from __future__ import annotations

from typing import IO

from rich.console import Console

_WIDE = 400


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command line, where Rich would end the process with code 1."""
        raise BrokenPipeError


def console_for(out: IO[str]) -> Console:
    """Return a console; what goes to a file or a pipe is not cut to a screen's width."""
    console = _Console(file=out, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _WIDE
    return console
