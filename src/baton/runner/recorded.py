"""Scoring recorded traces: every trace meets its case, and every planned case is reported once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from baton.model import Case, CaseResult, Dataset, Evaluation, Trace
from baton.model.redact import ON, Redaction, is_redacted
from baton.store import EvaluationWriter

from .collect import FolderResults, MemoryResults, Results
from .plan import Plan, check_overrides
from .scoring import Unfinished, start_scoring


class Match(NamedTuple):
    """The place of a trace's case; or, without one, why there is none."""

    position: int | None
    problem: str | None = None


def find_case(trace: Trace, dataset: Dataset, redaction: Redaction = ON) -> Match:
    """Find the case of a trace: by its case id, its own id, else its first user message.

    The message of a trace that was redacted before meets that of a case as it would be redacted.
    """
    by = ""
    for case_id in (trace.case, trace.id):
        places = dataset.by_id(case_id) if case_id else []
        if places:
            by = f"the id `{case_id}`"
            break
    else:
        places, by = _by_first_input(trace, dataset, redaction)
    if len(places) == 1:
        return Match(places[0])
    name = name_of(trace.id, trace.source.location)
    if not places:
        return Match(None, redaction.text(f"no case for {name}: {by}"))
    names = ", ".join(f"`{dataset.cases[place].id}`" for place in places[:5])
    return Match(None, redaction.text(f"{len(places)} cases for {name}: {names} share {by}"))


def name_of(trace_id: str, location: str | None) -> str:
    """Name a trace by its id and where it was read from."""
    return f"trace `{trace_id}`" + (f" ({location})" if location else "")


def _by_first_input(trace: Trace, dataset: Dataset, redaction: Redaction) -> tuple[list[int], str]:
    first = trace.turns[0].input if trace.turns else None
    if first is None or not first.plain():
        return [], "none has its id, and it does not hold the user's first message"
    message = first.plain()
    places = dataset.by_input(message)
    if not places and is_redacted(message):
        places = dataset.by_redacted_input(message, redaction.text)
    told = redaction.text(message)  # before it is shortened: half a key is not known as one
    quoted = told if len(told) <= 60 else f"{told[:57]}..."
    if places:
        return places, f"the first message “{quoted}”"
    said = f"none has its id or its first message “{quoted}”"
    later = dataset.by_later_session(message)
    if later is not None:
        said += (
            f"; it holds a later session of `{dataset.ids[later]}`, and a case is scored from one "
            "trace that has all its turns"
        )
    return [], said


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


def collect(plan: Plan, scored: Iterator[CaseResult | Unfinished], results: Results) -> None:
    """Hand over results in the order of their traces.

    An event loop is made when the first case has to wait for a score, and not before.
    """
    for each in scored:
        if isinstance(each, Unfinished):
            from .window import finish_all

            finish_all(plan, itertools.chain([each], scored), results)
            return
        results.add(each)


def score_in_memory(
    plan: Plan, traces: Iterable[Trace], dataset: Dataset | None, name: str
) -> Evaluation:
    """Score traces and keep all results, in the order of the dataset."""
    if dataset is not None:
        check_overrides(plan, dataset)
    results = MemoryResults(plan)
    collect(plan, score_recorded(plan, traces, dataset), results)
    return results.evaluation(name)


def score_to_folder(
    plan: Plan,
    traces: Iterable[Trace],
    dataset: Dataset | None,
    *,
    root: Path,
    name: str,
    header: dict[str, Any],
    input_problems: list[str],
    repeats: int = 1,
) -> Path:
    """Score traces as they are read and write each result at once; return the folder.

    ``input_problems`` are filled by whoever yields the traces while they are read; any makes
    the evaluation an error. ``repeats`` is how often cases were played at the most.
    """
    if dataset is not None:
        check_overrides(plan, dataset)
    # The first trace is read before a folder is made, so that bad input leaves none behind.
    rest = iter(traces)
    read = itertools.chain(list(itertools.islice(rest, 1)), rest)
    writer = EvaluationWriter(root, name, header=header, repeats=repeats)
    with FolderResults(plan, writer, input_problems) as results:
        collect(plan, score_recorded(plan, read, dataset), results)
    return writer.folder
