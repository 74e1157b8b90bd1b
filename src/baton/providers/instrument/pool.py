"""As many worker processes as cases are in play at once, used again for the cases after them."""

from __future__ import annotations

import asyncio
import weakref
from contextlib import suppress

from baton.model import Case, InputError, ProviderError, Trace
from baton.providers.base import CaseCancelled
from baton.providers.functions import call
from baton.providers.plain import NOT_JSON, as_json

from .process import Worker, WorkerEnded
from .wire import Setup


class Pool:
    """Plays cases in processes of their own, where nothing of one case reaches another."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._idle: list[Worker] = []
        self._kept: list[Worker] = []
        self._workers: set[Worker] = set()
        self._last_resort = weakref.finalize(self, _kill, self._workers)

    async def open(self) -> None:
        """Load the program once, so that what is wrong with it is told before any case.

        Raises:
            InputError: it cannot be loaded.
        """
        self._idle.append(await self._start())

    async def prepare(self) -> None:
        """Keep a process for the case that is played next, as loading may take long."""
        with suppress(ProviderError):  # it is told when the case is played
            self._kept.append(await self._take())

    async def close(self) -> None:
        """End all processes."""
        try:
            await asyncio.gather(*(call(worker.end) for worker in self._idle + self._kept))
        finally:
            self._idle.clear()
            self._kept.clear()
            _kill(self._workers)

    async def play(self, case: Case) -> Trace:
        """Play a case; a process that dies is the error of its case only.

        Raises:
            ProviderError: it could not be played.
            CaseCancelled: with what was seen until then. The process is ended.
        """
        try:
            as_json(case)
        except NOT_JSON as error:
            raise ProviderError(f"the case cannot be sent to a process: {error}") from error
        worker = self._kept.pop() if self._kept else await self._take()
        try:
            played = await worker.play(case)
        except WorkerEnded as error:
            self._drop(worker)
            raise ProviderError(str(error)) from None
        except asyncio.CancelledError as cancelled:
            try:
                seen = await worker.cut()
            finally:
                self._drop(worker)
            raise CaseCancelled(seen.trace) from cancelled
        except BaseException:
            self._drop(worker)
            raise
        self._idle.append(worker)
        if played.problem is not None or played.trace is None:
            raise ProviderError(played.problem or "the worker process sent no trace", played.trace)
        return played.trace

    async def _take(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if not worker.has_ended:
                return worker
            self._drop(worker)
        try:
            return await self._start()
        except InputError as error:
            raise ProviderError(str(error)) from error

    async def _start(self) -> Worker:
        worker = Worker(self._setup)
        self._workers.add(worker)
        try:
            await worker.loaded()
        except BaseException:
            self._drop(worker)
            raise
        return worker

    def _drop(self, worker: Worker) -> None:
        worker.kill()
        self._workers.discard(worker)


def _kill(workers: set[Worker]) -> None:
    while workers:
        workers.pop().kill()
