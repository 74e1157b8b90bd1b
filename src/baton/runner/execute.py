"""Scoring: every planned case is reported once, whatever happens to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from baton.model import Case, CaseResult, Dataset, Trace

from .pairing import Match, find_case, name_of
from .plan import Plan
from .scoring import Unfinished, start_scoring


class Met(NamedTuple):
    """A trace that met a case, by an id that is not the case's and where it was read from."""

    trace_id: str | None
    location: str | None


def score_recorded(
    plan: Plan, traces: Iterable[Trace], dataset: Dataset | None
) -> Iterator[CaseResult | Unfinished]:
    """Score recorded traces as they are read; what has to wait comes unfinished.

    With a dataset, each trace is scored against its case. A case that no trace meets, a trace
    that meets no case or several, and two traces that meet one case are errors, each in a
    result of its own; a later result of a case takes the place of an earlier one. Traces of an
    evaluation say which repeat of their case they are.
    """
    if dataset is None:
        for position, trace in enumerate(traces):
            yield start_scoring(plan, trace, None, position)
        return
    seen = Seen(len(dataset))
    strangers = 0
    for trace in traces:
        match = find_case(trace, dataset, plan.redaction)
        if match.position is None:
            yield stranger(plan.redaction.trace(trace), len(dataset) + strangers, match)
            strangers += 1
            continue
        case, repeat = dataset.cases[match.position], repeat_of(trace)
        twice = seen.add(match.position, repeat, trace, case.id)
        if twice is None:
            scored = start_scoring(plan, trace, case, match.position)
        else:
            redacted = plan.redaction.trace(trace)
            scored = error_result(case.id, match.position, twice, redacted, case)
        scored.repeat = repeat
        yield scored
    yield from unmet(dataset, seen)


def score_one(plan: Plan, trace: Trace, dataset: Dataset | None) -> CaseResult | Unfinished:
    """Score one of many traces, where nobody knows of the others.

    The position is that of the case; -1 without a dataset, and where no case or several are met.
    """
    if dataset is None:
        return start_scoring(plan, trace, None, -1)
    match = find_case(trace, dataset, plan.redaction)
    if match.position is None:
        return stranger(plan.redaction.trace(trace), -1, match)
    scored = start_scoring(plan, trace, dataset.cases[match.position], match.position)
    scored.repeat = repeat_of(trace)
    return scored


def settled(results: Iterable[CaseResult], dataset: Dataset | None) -> Iterator[CaseResult]:
    """Turn what :func:`score_one` made of all traces into what :func:`score_recorded` yields."""
    if dataset is None:
        for position, result in enumerate(results):
            result.position = position
            yield result
        return
    seen = Seen(len(dataset))
    strangers = 0
    for result in results:
        trace, position = result.trace, result.position
        if trace is None or position < 0:
            result.position = len(dataset) + strangers
            strangers += 1
            yield result
            continue
        case_id = dataset.ids[position]
        twice = seen.add(position, result.repeat, trace, case_id)
        if twice is None:
            yield result
            continue
        again = error_result(case_id, position, twice, trace, dataset.cases[position])
        again.repeat = result.repeat
        yield again
    yield from unmet(dataset, seen)


def unmet(dataset: Dataset, seen: Seen) -> Iterator[CaseResult]:
    """Yield an error for each case and repeat that no trace met."""
    for position, repeat in seen.missing():
        case = dataset.cases[position]
        again = f", repeat {repeat + 1}" if repeat else ""
        problem = f"no trace for case `{case.id}`{again}"
        result = error_result(case.id, position, problem, None, case)
        result.repeat = repeat
        yield result


def stranger(trace: Trace, position: int, match: Match) -> CaseResult:
    """Return the error of a trace that met no case, or several."""
    return error_result(trace.case or trace.id, position, match.problem or "", trace)


_MOST_REPEATS = 1 << 31
"""Numbers from here on are no repeats: an index has no room for them."""


def repeat_of(trace: Trace) -> int:
    """Return which repeat of its case a trace is, from 0."""
    repeat = trace.attributes.get("repeat", 0)
    return repeat if isinstance(repeat, int) and 0 < repeat < _MOST_REPEATS else 0


class Seen:
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
        # One trace that says it is repeat 2,000,000,000 does not make as many missing: beyond
        # 100, no more repeats are expected than traces were met; of others, only those met.
        expected = max(100, len(self._later) + 1)
        met_repeats = {repeat for _, repeat in self._later}
        repeats = range(1, self._repeats) if self._repeats <= expected else sorted(met_repeats)
        for position, met in enumerate(self._first):
            if met is None:
                yield position, 0
            for repeat in repeats:
                if (position, repeat) not in self._later:
                    yield position, repeat


def error_result(
    case_id: str, position: int, problem: str, trace: Trace | None, case: Case | None = None
) -> CaseResult:
    """Return the result of what cannot be scored."""
    return CaseResult(
        case_id=case_id,
        position=position,
        status="error",
        trace=trace,
        error=problem,
        where=case.where if case else None,
        tags=case.tags if case else [],
    )
