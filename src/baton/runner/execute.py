"""Scoring: every planned case is reported once, whatever happens to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from baton.analysis.routing import routed
from baton.model import (
    Case,
    CaseResult,
    Dataset,
    Evaluator,
    Score,
    Trace,
)

from .efficiency import efficiency_of
from .pairing import find_case, name_of
from .plan import Plan, PlannedEvaluator
from .prices import fill_costs
from .verdict import broken_turn, verdict


class Met(NamedTuple):
    """A trace that met a case, by an id that is not the case's and where it was read from."""

    trace_id: str | None
    location: str | None


def score_trace(plan: Plan, trace: Trace, case: Case | None, position: int) -> CaseResult:
    """Score one trace with every evaluator of the plan.

    A turn that broke makes the case an error, whatever could be scored all the same.
    """
    if plan.prices is not None:
        trace = fill_costs(trace, plan.prices, plan.default_model)
    scores = [
        score
        for planned in plan.evaluators_for(case.where if case else None)
        for score in _evaluate(planned, planned.for_case(case), trace, case, plan)
    ]
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
    )


def score_recorded(
    plan: Plan, traces: Iterable[Trace], dataset: Dataset | None
) -> Iterator[CaseResult]:
    """Score recorded traces as they are read.

    With a dataset, each trace is scored against its case. A case that no trace meets, a trace
    that meets no case or several, and two traces that meet one case are errors, each in a
    result of its own; a later result of a case takes the place of an earlier one. Traces of an
    evaluation say which repeat of their case they are.
    """
    if dataset is None:
        for position, trace in enumerate(traces):
            yield score_trace(plan, trace, None, position)
        return
    seen = _Seen(len(dataset))
    strangers = 0
    for trace in traces:
        match = find_case(trace, dataset)
        if match.position is None:
            position = len(dataset) + strangers
            strangers += 1
            yield _error(trace.case or trace.id, position, match.problem or "", trace)
            continue
        case, repeat = dataset.cases[match.position], repeat_of(trace)
        twice = seen.add(match.position, repeat, trace, case.id)
        if twice is None:
            result = score_trace(plan, trace, case, match.position)
        else:
            result = _error(case.id, match.position, twice, trace)
        result.repeat = repeat
        yield result
    for position, repeat in seen.missing():
        case_id = dataset.ids[position]
        again = f", repeat {repeat + 1}" if repeat else ""
        result = _error(case_id, position, f"no trace for case `{case_id}`{again}", None)
        result.repeat = repeat
        yield result


def repeat_of(trace: Trace) -> int:
    """Return which repeat of its case a trace is, from 0."""
    repeat = trace.attributes.get("repeat", 0)
    return repeat if isinstance(repeat, int) and repeat > 0 else 0


class _Seen:
    """Which cases were met, by what; small for very many cases, as few are repeated."""

    def __init__(self, cases: int) -> None:
        self._first: list[Met | None] = [None] * cases
        self._later: dict[tuple[int, int], Met] = {}
        self._names: dict[Met, Met] = {}
        self._repeats = 1

    def add(self, position: int, repeat: int, trace: Trace, case_id: str) -> str | None:
        """Note a trace; say so when its case, in this repeat, was met before."""
        later = self._later.get((position, repeat))
        earlier = later if repeat else self._first[position]
        if earlier is not None:
            first = name_of(earlier.trace_id or case_id, earlier.location)
            second = name_of(trace.id, trace.source.location)
            return f"two traces for case `{case_id}`: {first} and {second}"
        name = Met(trace.id if trace.id != case_id else None, trace.source.location)
        name = self._names.setdefault(name, name)
        if repeat:
            self._later[position, repeat] = name
            self._repeats = max(self._repeats, repeat + 1)
        else:
            self._first[position] = name
        return None

    def missing(self) -> Iterator[tuple[int, int]]:
        """Yield the cases and repeats that no trace met."""
        for position, met in enumerate(self._first):
            if met is None:
                yield position, 0
            for repeat in range(1, self._repeats):
                if (position, repeat) not in self._later:
                    yield position, repeat


def _evaluate(
    planned: PlannedEvaluator, evaluator: Evaluator, trace: Trace, case: Case | None, plan: Plan
) -> list[Score]:
    """Run one evaluator; whatever it raises is an error, never a score and never a gap."""
    try:
        scores = evaluator.evaluate(trace, case, plan.context)
        name = planned.evaluator.name
        return [msgspec.structs.replace(score, evaluator=name) for score in scores]
    except Exception as error:  # noqa: BLE001 - whatever it raises is this score's error
        return [
            Score(
                evaluator=planned.evaluator.name,
                type=evaluator.type,
                version=evaluator.version,
                unit=evaluator.unit,
                status="error",
                reason=f"{type(error).__name__}: {error}",
            )
        ]


def _error(case_id: str, position: int, problem: str, trace: Trace | None) -> CaseResult:
    return CaseResult(
        case_id=case_id, position=position, status="error", trace=trace, error=problem
    )
