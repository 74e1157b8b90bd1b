"""Single keys from a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

ENTER = ("\r", "\n")
ENDS = ("\x03", "\x04", "")
"""Ctrl-C, Ctrl-D, and the end of the input."""


def has_terminal() -> bool:
    """Tell whether somebody sits there: both what is read and what is printed are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def single_keys() -> Iterator[None]:
    """Let keys arrive as they are pressed, without Enter; the terminal is put back at the end."""
    if os.name == "nt":
        yield
        return
    import termios
    import tty

    place = sys.stdin.fileno()
    before = termios.tcgetattr(place)
    try:
        tty.setcbreak(place)
        yield
    finally:
        termios.tcsetattr(place, termios.TCSADRAIN, before)


def read_key() -> str:
    """Wait for a key and return its character; empty when the input has ended."""
    if os.name == "nt":
        import msvcrt

        return str(getattr(msvcrt, "getwch")())  # noqa: B009 - there on Windows only
    typed = os.read(sys.stdin.fileno(), 1)
    while typed and typed[0] >= 0xC0 and not _whole(typed):
        typed += os.read(sys.stdin.fileno(), 1)
    return typed.decode(errors="replace")


def _whole(typed: bytes) -> bool:
    """Tell whether the bytes of one character of UTF-8 are all there."""
    wanted = 2 if typed[0] < 0xE0 else 3 if typed[0] < 0xF0 else 4
    return len(typed) >= wanted
