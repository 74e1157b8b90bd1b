"""An evaluation while it runs: when to stop, what to repeat, how many cases at once."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol, Self

import msgspec

from baton.http.patience import LONGEST_WAIT
from baton.model import CaseResult, Trace


class Slot(msgspec.Struct, frozen=True):
    """One playing of one case."""

    position: int
    repeat: int


class Wanted(Protocol):
    """The options that matter here."""

    @property
    def retry_errors(self) -> int:
        """How often what was an error is played again."""

    @property
    def fail_fast(self) -> bool:
        """Whether to stop at the first case that fails or errs."""

    @property
    def max_agent_cost(self) -> float | None:
        """USD that the agents may cost."""


class Takes(Protocol):
    """Takes results."""

    def add(self, result: CaseResult) -> None:
        """Take one result."""


class First(NamedTuple):
    """The first case that did not pass."""

    case_id: str
    status: str


class Watch:
    """Passes results on, and keeps an eye on them."""

    def __init__(self, results: Takes, wanted: Wanted) -> None:
        self.stopped = asyncio.Event()
        self.first: First | None = None
        self.played = 0
        self._results = results
        self._wanted = wanted
        self._left = wanted.retry_errors
        self._errors: list[Slot] = []
        self._again = 0
        self._refused: set[Slot] = set()
        self._cost = 0.0
        self._unpriced = 0

    def add(self, result: CaseResult) -> None:
        """Pass a result on."""
        self._results.add(result)
        self.played += 1
        is_final = True
        slot = Slot(result.position, result.repeat)
        if result.status == "error" and self._left and slot not in self._refused:
            self._errors.append(slot)
            is_final = False
        if self._wanted.fail_fast and is_final and result.status in ("failed", "error"):
            self.first = self.first or First(result.case_id, result.status)
            self.stopped.set()

    def errors(self) -> list[Slot]:
        """Return what is to be played again now; nothing when that was done often enough."""
        if self.stopped.is_set():
            return []
        again, self._errors = sorted(self._errors, key=lambda s: (s.repeat, s.position)), []
        self._left -= 1
        self._again += len(again)
        return again

    def count(self, trace: Trace | None) -> None:
        """Add up what a case cost, where that is known."""
        usage = trace.usage if trace is not None else None
        if usage is not None and usage.cost_usd is not None:
            self._cost += usage.cost_usd
        if usage is None or usage.cost_usd is None or not usage.complete:
            self._unpriced += 1

    def refuse(self, slot: Slot) -> str | None:
        """Say why a case cannot be played any more, when all is spent."""
        limit = self._wanted.max_agent_cost
        if limit is None or self._cost < limit:
            return None
        self._refused.add(slot)
        return (
            f"budget: the agents cost {self._cost:.4g} USD, and `max_agent_cost` is {limit:g} USD"
        )

    def notes(self) -> list[str]:
        """Say for a report what was done beside playing each case once."""
        found = []
        if self._again:
            found.append(f"{self._again} errors were played again (`retry_errors`)")
        limit = self._wanted.max_agent_cost
        if limit is not None and self._unpriced:
            found.append(
                f"`max_agent_cost` does not know all that {self._unpriced} cases cost: no source "
                "or price tells it"
            )
        return found


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
