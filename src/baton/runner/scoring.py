"""Scoring one trace: its scores, their values by agent, and the case's counters."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from baton.evaluators.usage_limits import known_cost, total_usage, unpriced
from baton.model import (
    STATUSES,
    AgentRun,
    AgentScores,
    AgentValue,
    BatonError,
    Case,
    CaseResult,
    DistilledUse,
    Efficiency,
    Evaluator,
    JudgeError,
    Low,
    Placed,
    Score,
    Status,
    ToolCall,
    Trace,
    Turn,
    Usage,
    known,
    named_evidence,
    route_of,
)
from baton.model.redact import redaction_in
from baton.model.score import agent_of
from baton.model.views import indexed, token_count
from baton.safe_output import show_traceback
from baton.stats.routing import routed

from .costs import fill_costs
from .plan import Plan, PlannedEvaluator, broken_turn, verdict


class _Verdict(msgspec.Struct, frozen=True):
    """A verdict on one thing: a score, or a part of a score that sums several up."""

    agent: str | None
    status: Status
    value: float | None
    subject: list[str]
    steps: list[str]


def agent_scores(
    plan: Plan, scores: Sequence[Score], places: Mapping[str, Placed]
) -> list[AgentScores]:
    """Sum up the scores of the plan's ``by_agent`` evaluators, by evaluator and agent.

    The agent is the receiver according to the score (``to``, else ``agent``). ``places`` name what
    failed scores are about.
    """
    sums: dict[tuple[str, str | None], AgentScores] = {}

    def sum_of(evaluator: str, agent: str | None) -> AgentScores:
        name = plan.context.agent_names.get(agent, agent) if agent is not None else None
        key = (evaluator, name)
        if key not in sums:
            sums[key] = AgentScores(evaluator=evaluator, agent=name)
        return sums[key]

    lower = plan.gate.lower
    for score in scores:
        if score.evaluator not in plan.by_agent:
            continue
        verdicts = list(_verdicts(score))
        for one in verdicts:
            total = sum_of(score.evaluator, one.agent)
            total.count(one.status, one.value)
            if one.value is not None:
                # Keep the worst verdict of the case.
                value = one.value or 0.0
                worse = not total.worst or (
                    value > (total.worst[0].value or 0.0)
                    if score.evaluator in lower
                    else value < (total.worst[0].value or 0.0)
                )
                if worse:
                    ids = dict.fromkeys([*one.subject[:_PLACED], *one.steps])
                    at = ", ".join(places[id_].named(id_) for id_ in ids if id_ in places)
                    low = Low(value=value, subject=one.subject, steps=one.steps, at=at)
                    total.worst = [low]
        agents = {one.agent for one in verdicts}
        total = sum_of(score.evaluator, agents.pop() if len(agents) == 1 else None)
        total.settled += "settled_by" in score.details
        for use in distilled_uses(score.details):
            total.add_distilled(use)
        if score.judge is not None:
            total.asked.add(score.judge)
    return list(sums.values())


def agent_values(plan: Plan, scores: Sequence[Score]) -> list[AgentValue]:
    """Sum up the values of all other evaluators that are about one agent."""
    sums: dict[tuple[str, str], tuple[float, int]] = {}
    for score in scores:
        agent = agent_of(score.details)
        if score.value is None or agent is None or score.evaluator in plan.by_agent:
            continue
        key = score.evaluator, plan.context.agent_names.get(agent, agent)
        total, scored = sums.get(key, (0.0, 0))
        sums[key] = total + score.value, scored + 1
    return [AgentValue(*key, *total_and_count) for key, total_and_count in sums.items()]


def _verdicts(score: Score) -> Iterator[_Verdict]:
    """Yield the parts of a score that sums several up; otherwise the score itself."""
    parts = score.details.get("units")
    shaped = isinstance(parts, list) and all(
        isinstance(part, Mapping) and part.get("status") in STATUSES for part in parts
    )
    if not parts or not shaped:
        agent = agent_of(score.details)
        steps = named_evidence(score)
        yield _Verdict(agent, score.status, score.value, score.subject, steps)
        return
    for part in parts:
        subject = part.get("subject", [])
        yield _Verdict(agent_of(part), part["status"], part.get("value"), subject, [])


def distilled_uses(details: Mapping[str, Any]) -> Iterator[DistilledUse]:
    """Yield the uses of a distilled judge, for a score or for those that it sums up."""
    parts = details.get("units")
    for part in parts if isinstance(parts, list) else [details]:
        use = part.get("distilled") if isinstance(part, Mapping) else None
        if isinstance(use, Mapping):
            agreed = use.get("agreed")
            limit = use.get("limit")
            yield DistilledUse(
                answered=int(agreed is None),
                audited=int(agreed is not None),
                agreed=int(agreed is True),
                limit=float(limit) if isinstance(limit, int | float) else 0.0,
            )


def efficiency_of(trace: Trace) -> Efficiency:
    """Count dispatches, tool calls, model calls, tokens and seconds of a trace.

    Partly known counters are marked as lower bounds; unknown ones are ``None``.
    """
    efficiency = Efficiency()
    turns = trace.turns
    runs = [run for turn in turns for run in turn.runs]
    # An unfinished turn, or unrecorded runs, may have more than what is counted here.
    ended = all(turn.status != "incomplete" for turn in turns)
    all_runs = ended and _all_known(trace, turns, "runs")
    made = calls = 0
    for turn in turns:
        for dispatch in turn.dispatches:
            made += dispatch.kind != "return"
    for run in runs:
        for step in run.steps:
            calls += type(step) is ToolCall and step.dispatch is None
    _put(efficiency, "dispatches", made, ended and _all_known(trace, turns, "dispatches"))
    _put(efficiency, "tool_calls", calls, all_runs and _all_known(trace, runs, "steps.tool_call"))
    # Requests and tokens as the source sums them up, else over the runs.
    whole = trace.usage
    usages = [run.usage for run in runs if run.usage is not None]
    for name, count_of in _SPENT:
        count = count_of(whole) if whole is not None else None
        if whole is not None and count is not None:
            _put(efficiency, name, count, ended and whole.complete)
            continue
        of_runs = [count for usage in usages if (count := count_of(usage)) is not None]
        if of_runs:
            silent = any(run.usage is None and not known(trace, run, "usage") for run in runs)
            every = len(of_runs) == len(usages) and all(usage.complete for usage in usages)
            _put(efficiency, name, sum(of_runs), all_runs and every and not silent)
    cost = known_cost(trace)
    if cost is not None:
        efficiency.cost_usd = cost
        total = total_usage(trace)
        every = total is not None and total.cost_usd is not None and total.complete
        if not ended or not every or unpriced(trace):
            efficiency.at_least.append("cost_usd")
    efficiency.models = sorted({run.model for run in runs if run.model is not None})
    seconds = _seconds(trace) if ended else None
    if seconds is not None:
        efficiency.timings["seconds"] = seconds
    return efficiency


_SPENT: tuple[tuple[str, Callable[[Usage], int | None]], ...] = (
    ("model_calls", attrgetter("requests")),
    ("tokens", token_count),
)


def _all_known(trace: Trace, objects: Sequence[Turn] | Sequence[AgentRun], field: str) -> bool:
    """Tell whether a list is known for all objects; most have the `unknown` of the one before."""
    checked: list[str] | None = None
    for one in objects:
        if one.unknown != checked:
            if not known(trace, one, field):
                return False
            checked = one.unknown
    return True


def _put(efficiency: Efficiency, name: str, count: int, whole: bool) -> None:
    if whole or count:
        setattr(efficiency, name, count)
    if count and not whole:
        efficiency.at_least.append(name)


def _seconds(trace: Trace) -> float | None:
    taken = []
    for turn in trace.turns:
        if turn.started is None or turn.ended is None or turn.ended < turn.started:
            return None
        taken.append(turn.ended - turn.started)
    return round(math.fsum(taken), 6) if taken else None


_LEFT_OUT = (
    "this was decided by a text that is redacted here: `--no-redact` shows it, and the reason"
)


class _Waiting(msgspec.Struct, frozen=True):
    """Pending scores of one evaluator."""

    planned: PlannedEvaluator
    evaluator: Evaluator
    answer: Awaitable[list[Score]]


class _Raw(msgspec.Struct, frozen=True):
    """A trace and its case before redaction."""

    trace: Trace
    case: Case | None


class Unfinished:
    """A case with pending scores."""

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
        self.content: str | None = None

    async def finish(self) -> CaseResult:
        """Wait for all scores, those of several evaluators at the same time."""
        import asyncio  # not needed without pending scores

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
        result.repeat, result.content = self.repeat, self.content
        return result

    def close(self) -> None:
        """Abandon pending scores."""
        for part in self._parts:
            if isinstance(part, _Waiting) and inspect.iscoroutine(part.answer):
                if inspect.getcoroutinestate(part.answer) == inspect.CORO_CREATED:
                    part.answer.close()


def start_scoring(
    plan: Plan, trace: Trace, case: Case | None, position: int
) -> CaseResult | Unfinished:
    """Score one trace with every evaluator of the plan, without waiting for pending scores.

    A broken turn makes the case an error, even if some scores exist. From here on trace and case
    are redacted, for judges and in results.
    """
    written = redaction_in(case) if case is not None else None
    if written is not None:  # a case with tags, such as `[key:a4f3]`, for a recording without
        trace = written.trace(trace)
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
    scores = plan.redaction.value(scores)
    status, mean = verdict(plan.pass_rule, scores)
    broken = broken_turn(trace)
    places = _places(plan, trace, scores)
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
        by_agent=agent_scores(plan, scores, places) if plan.by_agent else [],
        agents=agent_values(plan, scores),
        route=route_of(trace),
        where=case.where if case else None,
        tags=case.tags if case else [],
        places=places,
    )


_PLACED = 3
"""The most subjects, and the most pieces of evidence, that are named for each score."""


def _places(plan: Plan, trace: Trace, scores: Sequence[Score]) -> dict[str, Placed]:
    """Return the agents of the subjects of failed scores, and of their first evidence."""
    wanted: set[str] = set()
    for score in scores:
        if score.status in ("failed", "error"):
            wanted.update(score.subject[:_PLACED])
            wanted.update(named_evidence(score))
    if not wanted:
        return {}
    names = plan.context.agent_names
    places: dict[str, Placed] = {}
    for turn in trace.turns:
        for made in turn.dispatches:
            if made.id in wanted:
                sender = made.from_agent and names.get(made.from_agent, made.from_agent)
                to = names.get(made.to_agent, made.to_agent)
                places[made.id] = Placed("dispatch", to, sender)
        for run in turn.runs:
            agent = names.get(run.agent, run.agent)
            if run.id in wanted:
                places[run.id] = Placed("run", agent)
            places.update((s.id, Placed("step", agent)) for s in run.steps if s.id in wanted)
    return places


def _evaluate(
    planned: PlannedEvaluator, evaluator: Evaluator, trace: Trace, case: Case | None, plan: Plan
) -> list[Score] | _Waiting:
    """Run one evaluator; an exception becomes an error, never a score and never a gap."""
    try:
        answer = evaluator.evaluate(trace, case, plan.context)
        if type(answer) is not list and isinstance(answer, Awaitable):
            return _Waiting(planned, evaluator, answer)
        return _renamed(planned, answer)
    except Exception as error:  # noqa: BLE001 - whatever it raises is this score's error
        return [_error(planned, evaluator, error)]


def _as_without_redaction(
    plan: Plan, planned: PlannedEvaluator, scores: list[Score], raw: _Raw
) -> list[Score]:
    """Return the evaluator's verdicts without redaction, but without any secret.

    Most are the same. They differ if a case mentions a part of a secret: the answer must not
    contain `sk-live`, and the redacted answer does not. The reason of such a verdict quotes the
    secret, so it is left out.
    """
    evaluator = planned.for_case(raw.case)
    unredacted = _evaluate(planned, evaluator, raw.trace, raw.case, plan)
    if isinstance(unredacted, _Waiting):
        return scores
    verdicts = [(score.status, score.value) for score in unredacted]
    if verdicts == [(score.status, score.value) for score in scores]:
        return scores
    return [
        msgspec.structs.replace(score, reason=_LEFT_OUT, details={}, evidence=[])
        for score in unredacted
    ]


async def _awaited(waiting: _Waiting) -> list[Score]:
    import asyncio

    planned, evaluator = waiting.planned, waiting.evaluator
    try:
        return _renamed(planned, await waiting.answer)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return [_error(planned, evaluator, error)]
    except Exception as error:  # noqa: BLE001 - whatever it raises is this score's error
        return [_error(planned, evaluator, error)]


def _renamed(planned: PlannedEvaluator, scores: list[Score]) -> list[Score]:
    name = planned.evaluator.name
    return [
        score
        if type(score) is Score and score.evaluator == name
        else msgspec.structs.replace(score, evaluator=name)
        for score in scores
    ]


def _error(planned: PlannedEvaluator, evaluator: Evaluator, error: BaseException) -> Score:
    """Return the message for an evaluator's exception; a judge's error keeps its kind."""
    kind = error.kind if isinstance(error, JudgeError) else None
    if not isinstance(error, BatonError):
        show_traceback(error)
    return Score(
        evaluator=planned.evaluator.name,
        type=evaluator.type,
        version=evaluator.version,
        unit=evaluator.unit,
        status="error",
        reason=str(error) if kind else f"{type(error).__name__}: {error}",
        details={"judge_error": kind} if kind else {},
    )
