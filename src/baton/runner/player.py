"""Playing one case: calling the provider, and making a result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import NamedTuple

import msgspec

from baton.http.rate_limits import tell_of
from baton.model import (
    Case,
    CaseResult,
    Dataset,
    InputError,
    Problem,
    Provider,
    ProviderError,
    RunOptions,
    Trace,
    integrity_problems,
)
from baton.model.dataset import NEEDS, Need
from baton.model.mask_known_secrets import mask
from baton.model.trace import SESSION
from baton.providers.base_provider import CaseCancelled, ConfiguredProvider
from baton.providers.user_functions import call, is_async, named, text_of, worded

from .loop import stop
from .pending_scores import Complete
from .plan import Plan
from .scoring import Unfinished, start_scoring


class Slot(msgspec.Struct, frozen=True):
    """One play of one case."""

    position: int
    repeat: int


class Played(NamedTuple):
    """The trace of a play, and its problem; at least one of them.

    If a case was ``cut_short``, that is its reason, whatever its last turn looks like. ``busy``: a
    server refused it, and may accept it later.
    """

    trace: Trace | None
    problem: str | None
    cut_short: bool = False
    busy: bool = False


class Attempt(NamedTuple):
    """The result of a case, or its unfinished scores with a function to complete it.

    ``busy``: a server refused it, and may accept it later.
    """

    scored: CaseResult | Unfinished
    complete: Complete
    busy: bool


class Player:
    """Plays one case at a time for each caller, and turns errors into messages."""

    def __init__(
        self,
        plan: Plan,
        provider: Provider,
        dataset: Dataset,
        timeout: float | None,
        grace: float,
    ) -> None:
        self._plan = plan
        self._provider = provider
        self._dataset = dataset
        self._timeout = timeout
        self._grace = grace
        self._is_async = is_async(provider)
        self._is_ours = isinstance(provider, ConfiguredProvider)
        judge = plan.context.judge
        self._imagining: Callable[[], AbstractContextManager[None]] = nullcontext
        if judge is not None:
            from .llm_stand_ins import imagining_by  # not loaded if no model is called

            self._imagining = partial(imagining_by, judge)

    async def prepare(self) -> None:
        """Prepare the provider for the next call."""
        if isinstance(self._provider, ConfiguredProvider):
            await self._provider.prepare()

    def unplayed(self, slot: Slot, problem: str) -> CaseResult:
        """Return the result of a case that is not played."""
        result = _unplayed(self._dataset.ids[slot.position], Played(None, problem))
        result.position, result.repeat = slot.position, slot.repeat
        try:
            case = self._dataset.cases[slot.position]
            result.where, result.tags = case.where, case.tags
        except (OSError, InputError):
            pass  # its file can no longer be read
        return result

    async def play(self, slot: Slot) -> Attempt:
        """Play a case."""
        started, clock = time.time(), time.perf_counter()
        scored, case, played = await self._play(slot)
        case_id = self._dataset.ids[slot.position]
        seconds = time.perf_counter() - clock
        timings = {"started": round(started, 3), "seconds": round(seconds, 6)}

        def complete(result_or_error: CaseResult | Exception) -> CaseResult:
            result = _with_problem(result_or_error, case_id, played)
            result.position, result.repeat = slot.position, slot.repeat
            result.timings = timings
            if case is not None:
                result.where, result.tags = case.where, case.tags
            return result

        return Attempt(scored, complete, played.busy)

    async def _play(self, slot: Slot) -> tuple[CaseResult | Unfinished, Case | None, Played]:
        try:
            case = self._dataset.cases[slot.position]
        except (OSError, InputError) as error:
            played = Played(None, f"the case can no longer be read: {error}")
            case_id = self._dataset.ids[slot.position]
            return _unplayed(case_id, played), None, played
        # The provider is called in a separate task, which it may cancel.
        task = asyncio.ensure_future(self._ask(case))
        try:
            await asyncio.wait([task], timeout=self._timeout)
        except asyncio.CancelledError:
            await stop(task, self._grace)
            raise
        if task.done():
            played = _played(task)
        else:
            await stop(task, self._grace)
            seen = _played(task).trace if task.done() else None
            problem = f"the case did not end within {self._timeout:g} s (`timeout`)"
            played = Played(seen, problem, cut_short=True)
        if played.trace is not None:
            played = played._replace(trace=_with_start(played.trace, case))
        if played.problem is not None:
            problem = mask(self._plan.redaction.text(played.problem))
            played = played._replace(problem=problem)
        scored: CaseResult | Unfinished
        if played.trace is None:
            scored = _unplayed(case.id, played)
        else:
            try:
                scored = start_scoring(self._plan, played.trace, case, slot.position)
            except Exception as error:  # noqa: BLE001 - a user's own provider may fill a trace with anything
                scored = _with_problem(error, case.id, played)
        return scored, case, played

    async def _ask(self, case: Case) -> Played:
        try:
            with self._imagining():
                if self._is_async:
                    answer = await self._provider(case)  # type: ignore[misc]
                else:
                    answer = await call(self._provider, case)
        except KeyboardInterrupt:
            raise
        except ProviderError as error:
            busy = tell_of(error)
            return Played(_trace_of(error), _encodable(text_of(error)), busy=busy)
        except CaseCancelled as error:
            return Played(_trace_of(error), _raised(error.__cause__ or error))
        except BaseException as error:  # noqa: BLE001 - whatever it raises is the case's error
            return Played(None, _raised(error), busy=tell_of(error))
        # Baton's own providers have checked the result.
        if not isinstance(answer, Trace):
            return Played(None, f"the provider returned {type(answer).__name__}, not a Trace")
        if self._is_ours:
            return Played(answer, None)
        try:
            problems = integrity_problems(answer)
        except Exception as error:  # noqa: BLE001 - a trace made by hand may hold anything
            return Played(
                None, _encodable(f"the trace that came back is malformed: {named(error)}")
            )
        if not problems:
            return Played(answer, None)
        return Played(
            answer, _encodable(f"the trace that came back contradicts itself: {problems[0]}")
        )


def _unplayed(case_id: str, played: Played) -> CaseResult:
    return CaseResult(case_id=case_id, status="error", error=played.problem)


def _with_problem(scored: CaseResult | Exception, case_id: str, played: Played) -> CaseResult:
    """Add the problem of a case to its result."""
    if isinstance(scored, Exception):
        message = _encodable(f"the trace cannot be scored: {named(scored)}")
        return CaseResult(case_id=case_id, status="error", error=played.problem or message)
    if played.trace is not None and played.problem is not None:
        reason = played.problem if played.cut_short else scored.error or played.problem
        scored.status, scored.error = "error", reason
    return scored


def _played(task: asyncio.Task[Played]) -> Played:
    if task.cancelled():
        return Played(None, _raised(asyncio.CancelledError()))
    return task.result()


def _with_start(trace: Trace, case: Case) -> Trace:
    """Add the start that the case states, as far as the provider did not record it.

    A case that is drafted from the trace then starts in the same way.
    """
    values = {"app": case.session.app, "user": case.session.user, "state": case.state}
    stated = {name: value for name, value in values.items() if value}
    if not stated or not isinstance(trace.attributes, dict):  # a trace made by hand
        return trace
    recorded = trace.attributes.get(SESSION)
    begins = stated | (recorded if isinstance(recorded, dict) else {})
    return msgspec.structs.replace(trace, attributes={**trace.attributes, SESSION: begins})


def _trace_of(error: ProviderError | CaseCancelled) -> Trace | None:
    return error.trace if isinstance(error.trace, Trace) else None


def _raised(error: BaseException) -> str:
    return _encodable(f"the provider raised {worded(error)}")


def _encodable(text: str) -> str:
    """Replace lone surrogates, which file names may contain: they cannot be written."""
    return text.encode(errors="replace").decode()


_WORDS: dict[Need, str] = {
    "restart": "a turn restarts the agents' server",
    "new_session": "a turn opens a new session",
    "same_session": "a turn continues a conversation",
}


def check_sessions(provider: Provider, dataset: Dataset) -> None:
    """Raise InputError for cases that a provider cannot play as intended.

    A user's function that gets whole cases handles everything itself.
    """
    if not isinstance(provider, ConfiguredProvider):
        return
    problems = []
    for need in NEEDS:
        first = dataset.first_with(need)
        reason = provider.lacks(need) if first is not None else None
        if first is not None and reason is not None:
            case_id, where = first
            problems.append(
                Problem(
                    file=where.file if where else dataset.name,
                    line=where.line if where else None,
                    path=f"case `{case_id}`",
                    message=f"{_WORDS[need]}: {reason}",
                )
            )
    if problems:
        raise InputError(problems)


def one_at_a_time(
    provider: Provider, dataset: Dataset, options: RunOptions
) -> tuple[RunOptions, list[str]]:
    """Play no other case while one restarts the server; return a note if that slows down."""
    restarts = isinstance(provider, ConfiguredProvider) and provider.options.restart is not None
    if not restarts or options.concurrency == 1 or dataset.first_with("restart") is None:
        return options, []
    note = "cases are played one at a time, as some restart the server (`concurrency` is 1)"
    return msgspec.structs.replace(options, concurrency=1), [note]
