"""Playing the cases of a dataset against a provider, several at once."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any

import msgspec

from baton.model import Case, CaseResult, Dataset, InputError, Provider, ProviderError, Trace
from baton.providers.functions import Raised, call, is_async, worded

from .collect import Results
from .execute import score_trace
from .plan import Plan

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a dataset is played: each case ``repeat`` times, ``concurrency`` of them at once.

    ``timeout`` is in seconds, for one case; ``None`` waits for ever.
    """

    concurrency: Count = 4
    repeat: Count = 1
    timeout: Seconds | None = 600


class Slot(msgspec.Struct, frozen=True):
    """One playing of one case."""

    position: int
    repeat: int


async def play_all(
    plan: Plan, provider: Provider, dataset: Dataset, options: RunOptions, results: Results
) -> None:
    """Play every case and hand each result over as it comes; the provider has to be entered.

    A case that cannot be played is an error result, and the others go on. All first repeats
    come before all second ones.
    """
    slots = (
        Slot(position, repeat)
        for repeat, position in itertools.product(range(options.repeat), range(len(dataset)))
    )
    player = _Player(plan, provider, dataset, options.timeout)
    total = len(dataset) * options.repeat
    workers = [
        asyncio.ensure_future(_work(player, slots, results))
        for _ in range(min(options.concurrency, total))
    ]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


@asynccontextmanager
async def entered(provider: Provider) -> AsyncIterator[None]:
    """Open what a provider holds, where it has something to open."""
    if isinstance(provider, AbstractAsyncContextManager):
        async with provider:
            yield
    else:
        yield


async def _work(player: _Player, slots: Iterator[Slot], results: Results) -> None:
    for slot in slots:
        results.add(await player.play(slot))


class _Player:
    def __init__(
        self, plan: Plan, provider: Provider, dataset: Dataset, timeout: float | None
    ) -> None:
        self._plan = plan
        self._provider = provider
        self._dataset = dataset
        self._timeout = timeout
        self._is_async = is_async(provider)

    async def play(self, slot: Slot) -> CaseResult:
        started, clock = time.time(), time.perf_counter()
        result = await self._play(slot)
        seconds = time.perf_counter() - clock
        result.position, result.repeat = slot.position, slot.repeat
        result.timings = {"started": round(started, 3), "seconds": round(seconds, 6)}
        return result

    async def _play(self, slot: Slot) -> CaseResult:
        try:
            case = self._dataset.cases[slot.position]
        except (OSError, InputError) as error:
            problem = f"the case can be read no more: {error}"
            case_id = self._dataset.ids[slot.position]
            return CaseResult(case_id=case_id, status="error", error=problem)
        trace, trouble = await self._trace(case)
        return self._scored(case, slot, trace, trouble)

    def _scored(
        self, case: Case, slot: Slot, trace: Trace | None, problem: str | None
    ) -> CaseResult:
        if trace is None:
            return CaseResult(case_id=case.id, status="error", error=problem)
        try:
            result = score_trace(self._plan, trace, case, slot.position)
        except Exception as error:  # noqa: BLE001 - a user's own provider may fill a trace with anything
            message = f"the trace cannot be scored: {type(error).__name__}: {error}"
            return CaseResult(case_id=case.id, status="error", error=problem or message)
        if problem is not None:
            result.status, result.error = "error", result.error or problem
        return result

    async def _trace(self, case: Case) -> tuple[Trace | None, str | None]:
        """Return what happened, and what was wrong with it; at least one of them."""
        answer, problem, trace = None, None, None
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                answer = await self._ask(case)
        except ProviderError as error:
            trace, problem = error.trace, str(error)
        except BaseException as error:
            if _is_for_us(error):
                raise
            problem = _raised(error)
        if limit.expired():
            return trace, f"the case did not end within {self._timeout:g} s (`timeout`)"
        if problem is not None:
            return trace, _encodable(problem)
        if not isinstance(answer, Trace):
            return None, f"the provider returned {type(answer).__name__}, not a Trace"
        return answer, None

    async def _ask(self, case: Case) -> Any:
        if not self._is_async:
            return await call(self._provider, case)
        try:
            return await self._provider(case)  # type: ignore[misc]
        except SystemExit as error:
            raise Raised(error) from error


def _is_for_us(error: BaseException) -> bool:
    """Tell an order to stop from what a provider raised: its own cancellations are its own."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


def _raised(error: BaseException) -> str:
    return f"the provider raised {worded(error)}"


def _encodable(text: str) -> str:
    """Replace lone surrogates, as file names may hold them: they cannot be written."""
    return text.encode(errors="replace").decode()
