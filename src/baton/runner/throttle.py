"""How many cases are in play: fewer while a server is busy."""

from __future__ import annotations

import asyncio
from typing import Self

from baton.http.rate_limits import LONGEST_WAIT, loop_time
from baton.model import counted

_PAUSE = 1.0
"""Seconds without new cases after a 429 that states no time."""


_STEP = 0.5
"""How much the limit grows for each case without a complaint of a server."""


class Throttle:
    """Lets up to ``most`` cases be in play; entered for each.

    When a server is overloaded, nothing is sent for as long as it asks, and the limit is halved.
    Cases without complaints raise it again.
    """

    def __init__(self, most: int) -> None:
        """Start with the maximum."""
        self.most = most
        self.complaints = 0
        self.lowest = most
        self._limit = float(most)
        self._in_play = 0
        self._until = 0.0
        self._changed = asyncio.Event()

    @property
    def limit(self) -> int:
        """The current limit of cases in play."""
        return max(1, int(self._limit))

    async def __aenter__(self) -> Self:
        await self._enter()
        return self

    async def _enter(self) -> None:
        while True:
            await self.wait()
            if self._in_play < self.limit:
                self._in_play += 1
                return
            self._changed.clear()
            await self._changed.wait()

    async def enter_again(self) -> None:
        """Give up the turn of a case in play, and wait for the next one."""
        self._in_play -= 1
        self._changed.set()
        try:
            await self._enter()
        except BaseException:
            self._in_play += 1  # it counts as in play until it leaves
            raise

    async def __aexit__(self, *_: object) -> None:
        self._in_play -= 1
        if self._limit < self.most and loop_time() >= self._until:
            self._limit = min(float(self.most), self._limit + _STEP)
        self._changed.set()

    def slow(self, seconds: float | None) -> None:
        """Handle a complaint; those during one pause have the same cause."""
        self.complaints += 1
        now = loop_time()
        if now >= self._until:
            self._limit = max(1.0, min(self._limit, float(self._in_play)) / 2)
            self.lowest = min(self.lowest, self.limit)
        # A longer wait is its own error case, and does not delay all others.
        pause = _PAUSE if seconds is None or seconds > LONGEST_WAIT else seconds
        self._until = max(self._until, now + pause)

    async def wait(self) -> None:
        """Wait for the end of a pause."""
        while (left := self._until - loop_time()) > 0:
            await asyncio.sleep(left)

    def notes(self) -> list[str]:
        """Return a note for the report if it slowed down."""
        if not self.complaints:
            return []
        times = f"{counted(self.complaints, 'time')} (429, 503)"
        return [f"servers asked to slow down {times}: down to {self.lowest} of {self.most} at once"]
