"""How many cases are in play at once: fewer while a server asks for patience, then more again."""

from __future__ import annotations

import asyncio
from typing import Self

from baton.http.patience import LONGEST_WAIT

_PAUSE = 1.0
"""Seconds that nothing starts after a 429 that names no time."""
_STEP = 0.5
"""How many more may be in play for each case that no server complained of."""


class Throttle:
    """Lets up to ``most`` cases be in play; entered for each.

    Whenever a server asks for patience nothing is sent for as long as it says, and only half as
    many may be in play after that. Cases that are played without complaint make it more again.
    """

    def __init__(self, most: int) -> None:
        """Start with as many as there may be."""
        self.most = most
        self.complaints = 0
        self.lowest = most
        self._limit = float(most)
        self._in_play = 0
        self._until = 0.0
        self._changed = asyncio.Event()

    @property
    def limit(self) -> int:
        """How many may be in play now."""
        return max(1, int(self._limit))

    async def __aenter__(self) -> Self:
        while True:
            await self.wait()
            if self._in_play < self.limit:
                self._in_play += 1
                return self
            self._changed.clear()
            await self._changed.wait()

    async def __aexit__(self, *_: object) -> None:
        self._in_play -= 1
        if self._limit < self.most and _now() >= self._until:
            self._limit = min(float(self.most), self._limit + _STEP)
        self._changed.set()

    def slow(self, seconds: float | None) -> None:
        """Hear of a complaint; those that come during one pause are of the same trouble."""
        self.complaints += 1
        now = _now()
        if now >= self._until:
            self._limit = max(1.0, min(self._limit, float(self._in_play)) / 2)
            self.lowest = min(self.lowest, self.limit)
        # Who asks for longer is given up by its own case; it does not hold up all others.
        pause = _PAUSE if seconds is None or seconds > LONGEST_WAIT else seconds
        self._until = max(self._until, now + pause)

    async def wait(self) -> None:
        """Wait for the end of a pause."""
        while (left := self._until - _now()) > 0:
            await asyncio.sleep(left)

    def notes(self) -> list[str]:
        """Say for a report that it took longer, if it did."""
        if not self.complaints:
            return []
        times = f"{self.complaints} times (429)"
        return [f"servers asked for patience {times}: down to {self.lowest} of {self.most} at once"]


def _now() -> float:
    return asyncio.get_running_loop().time()
