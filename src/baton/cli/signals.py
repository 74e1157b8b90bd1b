"""Signals that end a command: SIGTERM, and SIGHUP when its terminal is closed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from baton.model import Terminated

from .usage_messages import note

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_SAID = {"SIGTERM": "terminated", "SIGHUP": "terminated: the terminal was closed"}


@contextmanager
def terminable() -> Iterator[None]:
    """Make these signals raise Terminated, so that everything is cleaned up.

    Only the first signal does: a service manager may send both. A process that was started to
    outlive its terminal (``nohup``) ignores SIGHUP, and continues to. A fork of this process made
    by agents (``os.fork``) has nothing to clean up, and ends as if there were no handler.
    """
    here = os.getpid()

    def end(number: int, _: FrameType | None) -> None:
        if os.getpid() != here:
            os._exit(128 + number)
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise Terminated(number)

    before: dict[signal.Signals, Any] = {}
    try:
        for each in ENDING:
            if signal.getsignal(each) is not signal.SIG_IGN:
                before[each] = signal.signal(each, end)
    except ValueError:  # only the main thread gets signals
        before.clear()
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def note_ignored_interrupts() -> None:
    """Say how to end this process if Ctrl-C does not.

    A shell without job control starts what is put in the background with SIGINT ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        note(f"interrupts are ignored here, as in the background of a shell: kill {os.getpid()}")


def exit_of(ended: Terminated) -> tuple[str, int]:
    """Return what to say, and the exit code that shells have for it (143, 129)."""
    name = signal.Signals(ended.signal).name
    return _SAID.get(name, f"ended by {name}"), 128 + ended.signal
