"""Scoring: every planned case is reported once, whatever happens to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from baton.model import (
    Case,
    CaseResult,
    Dataset,
    Evaluator,
    Score,
    Trace,
)

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
    )


def score_recorded(
    plan: Plan, traces: Iterable[Trace], dataset: Dataset | None
) -> Iterator[CaseResult]:
    """Score recorded traces as they are read.

    With a dataset, each trace is scored against its case. A case that no trace meets, a trace
    that meets no case or several, and two traces that meet one case are errors, each in a
    result of its own; a later result of a case takes the place of an earlier one.
    """
    if dataset is None:
        for position, trace in enumerate(traces):
            yield score_trace(plan, trace, None, position)
        return
    met: list[Met | None] = [None] * len(dataset)
    names: dict[Met, Met] = {}
    strangers = 0
    for trace in traces:
        match = find_case(trace, dataset)
        if match.position is None:
            position = len(dataset) + strangers
            strangers += 1
            yield _error(trace.case or trace.id, position, match.problem or "", trace)
            continue
        case = dataset.cases[match.position]
        earlier = met[match.position]
        if earlier is not None:
            first = name_of(earlier.trace_id or case.id, earlier.location)
            second = name_of(trace.id, trace.source.location)
            problem = f"two traces for case `{case.id}`: {first} and {second}"
            yield _error(case.id, match.position, problem, trace)
            continue
        name = Met(trace.id if trace.id != case.id else None, trace.source.location)
        met[match.position] = names.setdefault(name, name)
        yield score_trace(plan, trace, case, match.position)
    for position, case_id in enumerate(dataset.ids):
        if met[position] is None:
            yield _error(case_id, position, f"no trace for case `{case_id}`", None)


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
