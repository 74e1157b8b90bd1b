"""Scoring recorded traces: match traces with cases, and report every planned case once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from baton.datasets.recorded_dispatches import WRITTEN_OUT
from baton.formats.evaluation_header import Header
from baton.model import (
    Case,
    CaseResult,
    Content,
    Dataset,
    DispatchCase,
    Evaluation,
    ExpectedTurn,
    InputError,
    Trace,
    content_version,
    counted,
)
from baton.model.redact import ON, Redaction, is_redacted
from baton.store import EvaluationWriter, repeat_of

from .collect_results import FolderResults, MemoryResults, Results
from .plan import Plan, check_overrides
from .scoring import Unfinished, start_scoring


class Match(msgspec.Struct, frozen=True):
    """The place of a trace's case; or why there is none."""

    position: int | None
    problem: str | None = None


def find_case(trace: Trace, dataset: Dataset, redaction: Redaction = ON) -> Match:
    """Find the case of a trace: by its case id, its own id, else its first user message.

    The message of a redacted trace is compared with the case's message after redaction.
    """
    by = ""
    for case_id in (trace.case, trace.id):
        places = dataset.places(case_id) if case_id else []
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


def kept_traces(
    keep_case: Callable[[Case], bool], dataset: Dataset | None, redaction: Redaction
) -> Callable[[Trace], bool]:
    """Return a test for the traces of selected cases; without cases, by the traces' ids."""
    if dataset is None:
        return lambda trace: keep_case(Case(id=trace.case or trace.id, turns=[]))
    places = {place for place, case in enumerate(dataset) if keep_case(case)}
    return lambda trace: find_case(trace, dataset, redaction).position in places


def none_chosen(traces: int) -> InputError:
    """Return the error that none of the traces was selected."""
    return InputError(f"none of {counted(traces, 'trace')} is among the selected cases")


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
    redacted = redaction.text(message)  # before truncation: a partial key is not recognised
    quoted = redacted if len(redacted) <= 60 else f"{redacted[:57]}..."
    if places:
        return places, f"the first message “{quoted}”"
    reason = f"none has its id or its first message “{quoted}”"
    later = dataset.by_later_session(message)
    if later is not None:
        reason += (
            f"; it holds a later session of `{dataset.ids[later]}`, and a case is scored from one "
            "trace that has all its turns"
        )
    return [], reason


def score_recorded(
    plan: Plan, traces: Iterable[Trace], dataset: Dataset | None
) -> Iterator[CaseResult | Unfinished]:
    """Score recorded traces as they are read; cases with pending scores are yielded unfinished.

    With a dataset, each trace is scored against its case. A case without a trace, a trace with no
    case or several, and two traces of one case are errors, each in a separate result; a later
    result of a case replaces an earlier one. Traces of an evaluation state the repeat of their
    case.
    """
    merge = Merge(dataset)
    for trace in traces:
        match = Match(None) if dataset is None else find_case(trace, dataset, plan.redaction)
        repeat = repeat_of(trace) if dataset is not None else 0
        placed = merge.place(match.position, repeat, trace.id, trace.source.location)
        if placed.problem is None:
            yield _scored(plan, trace, dataset, match, placed.position, repeat)
        else:
            yield merge.second(placed, repeat, plan.redaction.trace(trace))
    yield from merge.unmet()


def score_one(plan: Plan, trace: Trace, dataset: Dataset | None) -> CaseResult | Unfinished:
    """Score one of many traces independently; a :class:`Merge` combines the results.

    The position is that of the case; -1 without a dataset, and if no case or several match.
    """
    match = Match(None) if dataset is None else find_case(trace, dataset, plan.redaction)
    repeat = repeat_of(trace) if match.position is not None else 0
    position = -1 if match.position is None else match.position
    return _scored(plan, trace, dataset, match, position, repeat)


def _scored(
    plan: Plan, trace: Trace, dataset: Dataset | None, match: Match, position: int, repeat: int
) -> CaseResult | Unfinished:
    """Score a trace against its case; without a dataset alone."""
    if dataset is not None and match.position is None:
        trace = plan.redaction.trace(trace)
        return error_result(trace.case or trace.id, position, match.problem or "", trace)
    case = dataset.cases[match.position] if dataset and match.position is not None else None
    if case is not None and case.dispatch is not None:
        plan, case = _for_dispatch(plan, trace, case, case.dispatch)
    scored = start_scoring(plan, trace, case, position)
    scored.repeat = repeat
    # Cases have their own hash; for recordings without cases this is the version of the set.
    scored.content = content_version(trace) if dataset is None else None
    return scored


def _for_dispatch(
    plan: Plan, trace: Trace, case: Case, dispatch: DispatchCase
) -> tuple[Plan, Case]:
    """Score only the dispatch of a case, in a trace with its surroundings.

    The case's expectations apply to the turn of the dispatch; other turns expect nothing.
    """
    at = dispatch.at or WRITTEN_OUT
    for place, turn in enumerate(trace.turns):
        made = next((each for each in turn.dispatches if each.id == at), None)
        if made is None:
            continue
        about = frozenset({at, *made.runs, turn.id, trace.id})
        context = msgspec.structs.replace(plan.context, only=about)
        before = [ExpectedTurn(input=each.input or Content()) for each in trace.turns[:place]]
        return (
            msgspec.structs.replace(plan, context=context),
            msgspec.structs.replace(case, turns=[*before, *case.turns]),
        )
    return plan, case


class Placed(msgspec.Struct, frozen=True):
    """The place of a trace in an evaluation; its case may already have a trace (``problem``)."""

    position: int
    problem: str | None = None


class _Met(msgspec.Struct, frozen=True):
    """A trace with a case: its id, if different from the case's, and its source."""

    trace_id: str | None
    location: str | None


class Merge:
    """Matches traces and cases: every planned case and every trace is reported once.

    It gets all traces in their order, wherever they are scored. Cases keep the places of the
    dataset; traces without a case come after them. It is small for very many cases, as few are
    repeated.
    """

    def __init__(self, dataset: Dataset | None) -> None:
        self._dataset = dataset
        self._first: list[_Met | None] = [None] * (len(dataset) if dataset is not None else 0)
        self._later: dict[tuple[int, int], _Met] = {}
        self._names: dict[_Met, _Met] = {}
        self._repeats = 1
        self._without_case = 0

    def place(
        self, position: int | None, repeat: int, trace_id: str, location: str | None
    ) -> Placed:
        """Record a trace and the place of its case (``None`` for no case); return its own place.

        A second trace of one case and repeat is a problem, and is not recorded.
        """
        if position is None or self._dataset is None:
            self._without_case += 1
            return Placed(len(self._first) + self._without_case - 1)
        earlier = self._later.get((position, repeat)) if repeat else self._first[position]
        case_id = self._dataset.ids[position]
        if earlier is not None:
            first = name_of(earlier.trace_id or case_id, earlier.location)
            second = name_of(trace_id, location)
            return Placed(position, f"two traces for case `{case_id}`: {first} and {second}")
        met = _Met(trace_id if trace_id != case_id else None, location)
        met = self._names.setdefault(met, met)
        if repeat:
            self._later[position, repeat] = met
            self._repeats = max(self._repeats, repeat + 1)
        else:
            self._first[position] = met
        return Placed(position)

    def second(self, placed: Placed, repeat: int, trace: Trace) -> CaseResult:
        """Return the error of a case with a second trace."""
        return self._error(placed.position, repeat, placed.problem or "", trace)

    def unmet(self) -> Iterator[CaseResult]:
        """Yield an error for each case and repeat without a trace."""
        # One trace that claims to be repeat 2,000,000,000 must not make that many missing: beyond
        # 100, no more repeats are expected than there are traces.
        expected = max(100, len(self._later) + 1)
        met_repeats = {repeat for _, repeat in self._later}
        repeats = range(1, self._repeats) if self._repeats <= expected else sorted(met_repeats)
        for position, met in enumerate(self._first):
            if met is None:
                yield self._error(position, 0, self._no_trace(position), None)
            for repeat in repeats:
                if (position, repeat) not in self._later:
                    problem = f"{self._no_trace(position)}, repeat {repeat + 1}"
                    yield self._error(position, repeat, problem, None)

    def _no_trace(self, position: int) -> str:
        return f"no trace for case `{self._case(position).id}`"

    def _case(self, position: int) -> Case:
        assert self._dataset is not None  # noqa: S101 - only cases of a dataset have places
        return self._dataset.cases[position]

    def _error(self, position: int, repeat: int, problem: str, trace: Trace | None) -> CaseResult:
        case = self._case(position)
        result = error_result(case.id, position, problem, trace, case)
        result.repeat = repeat
        return result


def error_result(
    case_id: str, position: int, problem: str, trace: Trace | None, case: Case | None = None
) -> CaseResult:
    """Return the result of a trace or case that cannot be scored."""
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
    """Pass on results in the order of their traces.

    An event loop is only created when a case has to wait for a score.
    """
    for each in scored:
        if isinstance(each, Unfinished):
            # Most evaluations never wait, and need no asyncio.
            from .pending_scores import finish_all

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
    header: Header,
    input_problems: list[str],
    repeats: int = 1,
    folder: Path | None = None,
    keep_traces: bool = False,
    on_start: Callable[[Path], None] = lambda _: None,
) -> Path:
    """Score traces as they are read and write each result at once; return the folder.

    With ``folder`` it is that one, and it stores the traces, as with ``keep_traces``. ``on_start``
    is called with the folder.

    ``input_problems`` are filled by the generator of traces while reading; any problem makes the
    evaluation an error. ``repeats`` is the maximum number of plays of a case.
    """
    if dataset is not None:
        check_overrides(plan, dataset)
    # The first trace is read before the folder is created, so that bad input leaves none behind.
    rest = iter(traces)
    read = itertools.chain(list(itertools.islice(rest, 1)), rest)
    writer = EvaluationWriter(
        root,
        name,
        header=header,
        keep_traces=keep_traces or folder is not None,
        repeats=repeats,
        folder=folder,
    )
    on_start(writer.folder)
    with FolderResults(plan, writer, input_problems) as results:
        collect(plan, score_recorded(plan, read, dataset), results)
    return writer.folder
