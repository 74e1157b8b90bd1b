"""Response headers with what a request has cost so far, for ASGI programs.

    app = RequestGuard(app, guard)

It opens a tree for each HTTP request; all agents that the request starts are in it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .runtime import Guard
from .state import FAILURES

__all__ = ["RequestGuard"]

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class RequestGuard:
    """Guards each request, and adds headers with its counts at the start of the response.

    The headers are ``baton-guard-tree``, ``-dispatches``, ``-seconds``, and ``-tokens`` and
    ``-cost-usd`` if they were reported; ``-failed`` when the state cannot be read. A streaming
    response starts before all work is done. If a closed guard cannot start a tree, the request
    raises.

    Args:
        app: the application.
        guard: the guard of its agents.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._guard.run() as tree:

            async def sent(message: _Message) -> None:
                if message["type"] == "http.response.start":
                    message = {
                        **message,
                        "headers": [*message.get("headers", ()), *self._headers(tree)],
                    }
                await send(message)

            await self._app(scope, receive, sent)

    def _headers(self, tree: str) -> list[tuple[bytes, bytes]]:
        try:
            spent = self._guard.store.spent(tree)
        except FAILURES:
            return [(b"baton-guard-failed", b"true")]
        values = {
            "tree": tree,
            "dispatches": spent.dispatches,
            "tokens": spent.tokens,
            "cost-usd": None if spent.cost_usd is None else f"{spent.cost_usd:.6f}",
            "seconds": None if spent.seconds is None else f"{spent.seconds:.3f}",
        }
        return [
            (f"baton-guard-{name}".encode(), str(value).encode())
            for name, value in values.items()
            if value is not None
        ]
