"""Scoring one trace: at once where no evaluator has to wait, else as a task of its own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

import msgspec

from baton.analysis.routing import routed
from baton.model import Case, CaseResult, Evaluator, JudgeError, Score, Trace, route_of
from baton.model.views import indexed

from .agents import agent_scores, agent_values
from .efficiency import efficiency_of
from .plan import Plan, PlannedEvaluator
from .prices import fill_costs
from .verdict import broken_turn, verdict

_LEFT_OUT = (
    "this was decided by a text that is redacted here: `--no-redact` shows it, and the reason"
)


class _Waiting(NamedTuple):
    """Scores of one evaluator that are still to come."""

    planned: PlannedEvaluator
    evaluator: Evaluator
    answer: Awaitable[list[Score]]


class _Raw(NamedTuple):
    """A trace and its case before secrets were taken out of them."""

    trace: Trace
    case: Case | None


class Unfinished:
    """A case some of whose scores are still to come."""

    def __init__(
        self,
        plan: Plan,
        trace: Trace,
        case: Case | None,
        position: int,
        parts: Sequence[list[Score] | _Waiting],
    ) -> None:
        self._plan, self.trace, self._case = plan, trace, case
        self._position, self._parts = position, parts
        self.repeat = 0

    async def finish(self) -> CaseResult:
        """Wait for all scores, those of several evaluators at the same time."""
        import asyncio  # not needed where nothing is waited for

        try:
            waiting = [_awaited(part) for part in self._parts if isinstance(part, _Waiting)]
            came = iter(await asyncio.gather(*waiting))
        finally:
            self.close()
        scores = [
            score
            for part in self._parts
            for score in (next(came) if isinstance(part, _Waiting) else part)
        ]
        result = _result(self._plan, self.trace, self._case, self._position, scores)
        result.repeat = self.repeat
        return result

    def close(self) -> None:
        """Let go of what was not asked yet."""
        for part in self._parts:
            if isinstance(part, _Waiting) and inspect.iscoroutine(part.answer):
                if inspect.getcoroutinestate(part.answer) == inspect.CORO_CREATED:
                    part.answer.close()


def start_scoring(
    plan: Plan, trace: Trace, case: Case | None, position: int
) -> CaseResult | Unfinished:
    """Score one trace with every evaluator of the plan, as far as none has to wait.

    A turn that broke makes the case an error, whatever could be scored all the same. From here on
    trace and case are redacted: judges see them so, and results hold them so.
    """
    as_recorded = _Raw(trace, case)
    trace, case = plan.redaction.trace_and_case(trace, case)
    raw = None if trace is as_recorded.trace else as_recorded
    if plan.prices is not None:
        trace = fill_costs(trace, plan.prices, plan.default_model)
    parts: list[list[Score] | _Waiting] = []
    scores: list[Score] = []
    waits = False
    with indexed(trace):
        for planned in plan.evaluators_for(case.where if case else None):
            part = _evaluate(planned, planned.for_case(case), trace, case, plan)
            if raw is not None and not isinstance(part, _Waiting):
                part = _as_without_redaction(plan, planned, part, raw)
            parts.append(part)
            if isinstance(part, _Waiting):
                waits = True
            else:
                scores += part
    if waits:
        return Unfinished(plan, trace, case, position, parts)
    return _result(plan, trace, case, position, scores)


def _result(
    plan: Plan, trace: Trace, case: Case | None, position: int, scores: list[Score]
) -> CaseResult:
    scores = [plan.redaction.value(score) for score in scores]
    status, mean = verdict(plan.pass_rule, scores)
    broken = broken_turn(trace)
    return CaseResult(
        case_id=case.id if case else trace.case or trace.id,
        position=position,
        status=status if broken is None else "error",
        scores=scores,
        trace=trace,
        error=broken,
        mean=mean,
        efficiency=efficiency_of(trace),
        routing=routed(scores),
        by_agent=agent_scores(plan, scores) if plan.by_agent else [],
        agents=agent_values(plan, scores),
        route=route_of(trace),
        where=case.where if case else None,
        tags=case.tags if case else [],
    )


def _evaluate(
    planned: PlannedEvaluator, evaluator: Evaluator, trace: Trace, case: Case | None, plan: Plan
) -> list[Score] | _Waiting:
    """Run one evaluator; whatever it raises is an error, never a score and never a gap."""
    try:
        answer = evaluator.evaluate(trace, case, plan.context)
        if isinstance(answer, Awaitable):
            return _Waiting(planned, evaluator, answer)
        return _renamed(planned, answer)
    except Exception as error:  # noqa: BLE001 - whatever it raises is this score's error
        return [_error(planned, evaluator, error)]


def _as_without_redaction(
    plan: Plan, planned: PlannedEvaluator, scores: list[Score], raw: _Raw
) -> list[Score]:
    """Return the verdicts that the evaluator comes to without redaction, and no secret.

    Most are the same. They differ where a case speaks of a part of a secret: the answer must not
    hold `sk-live`, and the answer with a tag in it does not. The words of such a verdict quote
    what was redacted, so they are left out.
    """
    evaluator = planned.for_case(raw.case)
    found = _evaluate(planned, evaluator, raw.trace, raw.case, plan)
    if isinstance(found, _Waiting):
        return scores
    verdicts = [(score.status, score.value) for score in found]
    if verdicts == [(score.status, score.value) for score in scores]:
        return scores
    return [msgspec.structs.replace(s, reason=_LEFT_OUT, details={}, evidence=[]) for s in found]


async def _awaited(waiting: _Waiting) -> list[Score]:
    import asyncio

    planned, evaluator, answer = waiting
    try:
        return _renamed(planned, await answer)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return [_error(planned, evaluator, error)]
    except Exception as error:  # noqa: BLE001 - whatever it raises is this score's error
        return [_error(planned, evaluator, error)]


def _renamed(planned: PlannedEvaluator, scores: list[Score]) -> list[Score]:
    name = planned.evaluator.name
    return [msgspec.structs.replace(score, evaluator=name) for score in scores]


def _error(planned: PlannedEvaluator, evaluator: Evaluator, error: BaseException) -> Score:
    """Word what an evaluator raised; the trouble of a judge keeps its kind."""
    kind = error.kind if isinstance(error, JudgeError) else None
    return Score(
        evaluator=planned.evaluator.name,
        type=evaluator.type,
        version=evaluator.version,
        unit=evaluator.unit,
        status="error",
        reason=str(error) if kind else f"{type(error).__name__}: {error}",
        details={"judge_error": kind} if kind else {},
    )
