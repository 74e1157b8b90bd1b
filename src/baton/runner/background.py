"""Waiting for the scores of cases while further ones are played."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from baton.model import CaseResult

from .loop import GRACE
from .scoring import Unfinished
from .watch import Takes

Complete = Callable[[CaseResult | Exception], CaseResult]
"""Puts to a result what is known of how its case was played; or makes one of what was raised."""


class Background:
    """Finishes up to ``most`` cases at once, and hands each over as it is done."""

    def __init__(self, results: Takes, most: int) -> None:
        self._results = results
        self._slots = asyncio.Semaphore(most)
        self._tasks: dict[asyncio.Task[None], Unfinished] = {}
        self._fault: BaseException | None = None

    async def add(self, unfinished: Unfinished, complete: Complete) -> None:
        """Finish a case in the background; raises what handing an earlier one over did."""
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
        """Wait for all that were added; raises what handing one over did."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._fault is not None:
            raise self._fault

    async def stop(self) -> None:
        """Let go of what is not finished."""
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
