"""The link between guards and recorders: the current guard, and the list of its decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Protocol


class Watcher(Protocol):
    """The interface of a guard, asked before a marked function runs, and before its answer is read.

    Each method raises ``RefusedError`` if the action is not allowed.
    """

    def dispatch(self, to: str, prompt: Any = None) -> AbstractContextManager[Any]:
        """Check a dispatch; in the block the receiver is running."""

    def tool(self, name: str, arguments: Any = None) -> Any:
        """Check a tool call."""

    def output(self, answer: Any) -> Any:
        """Return what the caller may read of an answer."""

    async def output_later(self, answer: Any) -> Any:
        """Like :meth:`output`, without blocking other tasks."""


WATCHER: ContextVar[Watcher | None] = ContextVar("baton_watcher", default=None)
"""The guard that marked functions ask."""
DECISIONS: ContextVar[list[dict[str, Any]] | None] = ContextVar("baton_decisions", default=None)
"""The list of decisions of the recorded turn; becomes ``Trace.attributes["guard"]``."""
AROUND: list[Callable[[], Any]] = []
"""Functions that return the OpenTelemetry span in which the program is, or ``None``: of recorders
that do not make their spans the current ones, as LangChain runs callbacks in other contexts."""
GUARD_NOTES = "baton-guard.jsonl"
"""A guard's decisions in the folder of a session of Claude Code, one per line, by its hook."""


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Make marked functions ask a guard in this block."""
    token = WATCHER.set(watcher)
    try:
        yield
    finally:
        WATCHER.reset(token)
