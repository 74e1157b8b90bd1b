"""What a guard and a recorder have in common: who is asked, and where decisions are noted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Protocol


class Watcher(Protocol):
    """What is asked before a marked function runs, and before its answer is read: a guard.

    Each raises ``RefusedError`` for what may not happen.
    """

    def dispatch(self, to: str, prompt: Any = None) -> AbstractContextManager[Any]:
        """Ask for a dispatch; in the block the receiver is at work."""

    def tool(self, name: str, arguments: Any = None) -> Any:
        """Ask for a call of a tool."""

    def output(self, answer: Any) -> Any:
        """Return what the caller may read of an answer."""

    async def output_later(self, answer: Any) -> Any:
        """Do what :meth:`output` does, while other tasks go on."""


WATCHER: ContextVar[Watcher | None] = ContextVar("baton_watcher", default=None)
"""The guard that marked functions ask."""
DECISIONS: ContextVar[list[dict[str, Any]] | None] = ContextVar("baton_decisions", default=None)
"""Where decisions of the turn that is recorded are noted; then ``Trace.attributes["guard"]``."""


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Have marked functions ask a guard in this block."""
    token = WATCHER.set(watcher)
    try:
        yield
    finally:
        WATCHER.reset(token)
