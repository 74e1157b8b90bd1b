"""What is asked of a server once for all cases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from baton.model import ProviderError

T = TypeVar("T")
REMEMBERED = 5.0  # seconds


class Told:
    """Answers by their question; a failure holds for some seconds, then it is asked again.

    Otherwise each case would try a server that is down as often, and wait as long, as the first.
    """

    def __init__(self, remembered: float = REMEMBERED) -> None:
        self._remembered = remembered
        self._asked: dict[str, asyncio.Future[Any]] = {}

    async def once(self, question: str, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Ask, unless somebody did; who waits may be cancelled without ending the asking.

        Raises:
            ProviderError: asking failed; each case gets an error of its own to add to.
        """
        future: asyncio.Future[T] | None = self._asked.get(question)
        if future is None:
            future = self._asked[question] = asyncio.ensure_future(ask())
            future.add_done_callback(lambda done: self._forget_failure(question, done))
        try:
            return await asyncio.shield(future)
        except ProviderError as error:
            raise ProviderError(str(error)) from error

    def close(self) -> None:
        """Ask no more."""
        for future in self._asked.values():
            future.cancel()

    def _forget_failure(self, question: str, done: asyncio.Future[Any]) -> None:
        if done.cancelled() or done.exception() is not None:
            done.get_loop().call_later(self._remembered, self._asked.pop, question, None)
