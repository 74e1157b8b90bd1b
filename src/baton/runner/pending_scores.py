"""Waiting for the scores of many cases at once, in bounded memory.

Recorded cases are passed on in the order of their traces, played ones as they finish.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from baton.model import CaseResult

from .collect_results import Results
from .loop import GRACE, entered, run_anywhere
from .plan import Plan
from .scoring import Unfinished

Scored = CaseResult | Unfinished


class _Place(NamedTuple):
    """A case in its place: finished, or a task that will finish it."""

    result: CaseResult | asyncio.Task[CaseResult]
    unfinished: Unfinished | None = None

    @property
    def there(self) -> bool:
        """Tell whether the result is available."""
        return isinstance(self.result, CaseResult) or self.result.done()

    @property
    def whole(self) -> bool:
        """Tell whether it has no exception."""
        if isinstance(self.result, CaseResult):
            return True
        task = self.result
        return task.done() and not task.cancelled() and task.exception() is None

    def take(self) -> CaseResult:
        """Return the result; raises its task's exception."""
        result = self.result
        return result if isinstance(result, CaseResult) else result.result()


def finish_all(plan: Plan, scored: Iterator[Scored], results: Results) -> None:
    """Pass on results in the order of their traces, in a new event loop."""
    run_anywhere(_finish_all(plan, scored, results))


async def _finish_all(plan: Plan, scored: Iterator[Scored], results: Results) -> None:
    """Wait for up to ``plan.window`` cases at once; reading continues meanwhile."""
    line: deque[_Place] = deque()
    async with entered(plan.context.judge):
        try:
            for each in scored:
                if isinstance(each, CaseResult):
                    place = _Place(each)
                else:
                    place = _Place(asyncio.ensure_future(each.finish()), each)
                line.append(place)
                await asyncio.sleep(0)
                while line and (line[0].there or len(line) > plan.window):
                    await _hand_over(line, results)
            while line:
                await _hand_over(line, results)
        finally:
            # Finished cases are kept; the others are abandoned.
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


async def _hand_over(line: deque[_Place], results: Results) -> None:
    first = line[0]
    if isinstance(first.result, asyncio.Task):
        await asyncio.wait([first.result])
    line.popleft()
    results.add(first.take())


Complete = Callable[[CaseResult | Exception], CaseResult]
"""Adds the data of the play to a result; or makes a result from an exception."""


class Background:
    """Finishes up to ``most`` cases at once, and passes each on as it finishes."""

    def __init__(self, results: Results, most: int) -> None:
        self._results = results
        self._slots = asyncio.Semaphore(most)
        self._tasks: dict[asyncio.Task[None], Unfinished] = {}
        self._fault: BaseException | None = None

    async def add(self, unfinished: Unfinished, complete: Complete) -> None:
        """Finish a case in the background; raises an exception from passing on an earlier one."""
        try:
            await self._slots.acquire()
            if self._fault is not None:
                raise self._fault
        except BaseException:
            unfinished.close()
            raise
        task = asyncio.ensure_future(self._finish(unfinished, complete))
        self._tasks[task] = unfinished
        task.add_done_callback(self._ended)

    async def wait(self) -> None:
        """Wait for all added cases; raises an exception from passing one on."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._fault is not None:
            raise self._fault

    async def stop(self) -> None:
        """Abandon unfinished cases."""
        left = dict(self._tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=GRACE)
        for unfinished in left.values():
            unfinished.close()

    async def _finish(self, unfinished: Unfinished, complete: Complete) -> None:
        try:
            result = complete(await unfinished.finish())
        except Exception as error:  # noqa: BLE001 - a user's own provider may fill a trace with anything
            result = complete(error)
        self._results.add(result)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._slots.release()
        if not task.cancelled() and task.exception() is not None:
            self._fault = self._fault or task.exception()
