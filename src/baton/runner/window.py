"""Waiting for the scores of many cases at once, in memory that does not grow with them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from baton.model import CaseResult

from .collect import Results
from .loop import GRACE, entered, run_anywhere
from .plan import Plan
from .scoring import Unfinished

Scored = CaseResult | Unfinished


class _Place(NamedTuple):
    """A case in its place: there already, or a task that gets it."""

    result: CaseResult | asyncio.Task[CaseResult]
    unfinished: Unfinished | None = None

    @property
    def there(self) -> bool:
        """Tell whether nothing has to be waited for."""
        return isinstance(self.result, CaseResult) or self.result.done()

    @property
    def whole(self) -> bool:
        """Tell whether nothing went wrong with it."""
        if isinstance(self.result, CaseResult):
            return True
        task = self.result
        return task.done() and not task.cancelled() and task.exception() is None

    def take(self) -> CaseResult:
        """Return what is there; raises what its task did."""
        found = self.result
        return found if isinstance(found, CaseResult) else found.result()


def finish_all(plan: Plan, scored: Iterator[Scored], results: Results) -> None:
    """Hand over results in the order of their traces, in an event loop made for that."""
    run_anywhere(_finish_all(plan, scored, results))


async def _finish_all(plan: Plan, scored: Iterator[Scored], results: Results) -> None:
    """Wait for up to ``plan.window`` cases at once; reading goes on meanwhile."""
    line: deque[_Place] = deque()
    async with entered(plan.context.judge):
        try:
            for each in scored:
                line.append(_started(each))
                await asyncio.sleep(0)
                while line and (line[0].there or len(line) > plan.window):
                    await _hand_over(line, results)
            while line:
                await _hand_over(line, results)
        finally:
            await _give_up(line, results)


def _started(scored: Scored) -> _Place:
    if isinstance(scored, CaseResult):
        return _Place(scored)
    return _Place(asyncio.ensure_future(scored.finish()), scored)


async def _hand_over(line: deque[_Place], results: Results) -> None:
    first = line[0]
    if isinstance(first.result, asyncio.Task):
        await asyncio.wait([first.result])
    line.popleft()
    results.add(first.take())


async def _give_up(line: deque[_Place], results: Results) -> None:
    """Keep the cases that are done, and stop asking for the others."""
    tasks = [place.result for place in line if isinstance(place.result, asyncio.Task)]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=GRACE)
    for place in line:
        if place.unfinished is not None:
            place.unfinished.close()
        if place.whole:
            results.add(place.take())
