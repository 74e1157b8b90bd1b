"""What a judge said of single things, and asking it about what has a label."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar, NamedTuple, Self

import msgspec

from baton.evaluators.judged import Judged
from baton.evaluators.judging.question import Question
from baton.evaluators.judging.rubric import Scale
from baton.evaluators.judging.subject import Subject
from baton.model import (
    Case,
    EvalContext,
    Evaluator,
    InputError,
    Judge,
    Problem,
    Score,
    Status,
    Trace,
)
from baton.stats.agreement import Key
from baton.stats.calibration import Terms, Votes
from baton.store import StoredEvaluation, score_row

_DETAILS = ("label", "agent", "votes", "spread", "settled_by", "judge_error")


class Shown(NamedTuple):
    """The place of a thing in its trace, from 1, and how many characters a judge is shown of it."""

    position: int
    length: int | None


class JudgedThing(msgspec.Struct, frozen=True, kw_only=True):
    """One score of a rubric, about one thing in one trace.

    ``model`` is ``None`` when no judge answered: findings settled it, or something went wrong
    (``trouble``). ``asked`` is the model that was asked first, where that is known. ``agent`` is
    who the thing was given to. ``position`` counts from 1 in its trace, ``length`` the characters
    that were judged.
    """

    trace: str
    case: str
    subject: str
    agent: str | None
    position: int
    version: str
    status: Status = "skipped"
    label: str | None = None
    value: float | None = None
    model: str | None = None
    settled: bool = False
    trouble: str | None = None
    votes: Votes | None = None
    asked: str | None = None
    length: int | None = None

    @property
    def key(self) -> Key:
        """The ids of the trace and of the thing."""
        return self.trace, self.subject

    @property
    def passed(self) -> bool | None:
        """Whether it passed; ``None`` without a verdict."""
        return {"passed": True, "failed": False}.get(self.status)


def of_scores(
    trace: Trace, case_id: str, scores: Iterable[Score], shown: Mapping[str, Shown]
) -> list[JudgedThing]:
    """Return what the scores of one trace say, those about nothing left out."""
    return list(_things(trace.id, case_id, [score_row(score) for score in scores], shown))


def of_evaluation(
    evaluation: StoredEvaluation,
    rubric: str,
    shown: Mapping[str, Mapping[str, Shown]] | None = None,
) -> list[JudgedThing]:
    """Return what the scores of a rubric say in a stored evaluation.

    ``shown`` has, by the id of the trace, what a judge was shown of each thing.
    """
    found: list[JudgedThing] = []
    for row, body in evaluation.entries():
        trace = trace_id(body)
        if trace is not None:
            rows = [score for score in body["scores"] if score["type"] == rubric]
            found += _things(trace, row.case_id, rows, (shown or {}).get(trace, {}))
    return found


def judged_types(evaluation: StoredEvaluation) -> list[str]:
    """Return the rubrics that an evaluation was judged by, in the order they come."""
    found: dict[str, None] = {}
    for _, body in evaluation.entries():
        for score in body["scores"]:
            if "judge" in score or "settled_by" in score["details"]:
                found[score["type"]] = None
    return list(found)


def trace_id(body: Mapping[str, Any]) -> str | None:
    """Return the id of the trace that a body holds or points at."""
    held = body.get("trace") or body.get("recorded")
    return None if held is None else str(held["id"])


def _things(
    trace: str, case: str, rows: Sequence[Mapping[str, Any]], shown: Mapping[str, Shown]
) -> Iterator[JudgedThing]:
    singles = [_checked(single) for row in rows for single in _singles(row)]
    for position, row in enumerate((row for row in singles if row.get("subject")), 1):
        yield _thing(trace, case, row, shown.get(row["subject"][0], Shown(position, None)))


class _Details(msgspec.Struct):
    label: str | None = None
    to: str | None = None
    agent: str | None = None
    votes: dict[str, int] | None = None
    spread: float = 0.0
    judge_error: str | None = None


class _JudgedBy(msgspec.Struct):
    model: str


class _Single(msgspec.Struct):
    status: Status
    version: str
    score: float | None
    details: _Details
    subject: list[str] = msgspec.field(default_factory=list)
    judge: _JudgedBy | None = None


def _checked(single: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a score of a rubric; raises InputError for one that a folder of others made up."""
    try:
        msgspec.convert(single, _Single)
    except msgspec.ValidationError as error:
        message = f"a score of `{single.get('evaluator_type')}` is damaged: {error}"
        raise InputError(Problem(message=message, damaged=True)) from None
    return single


def _singles(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a score, or the several that it sums up."""
    units = row["details"].get("units")
    if not isinstance(units, list) or not all(isinstance(unit, dict) for unit in units):
        yield row
        return
    for unit in units:
        details = {key: unit[key] for key in _DETAILS if key in unit}
        yield {**row, **unit, "score": unit.get("value"), "details": details}


def _thing(trace: str, case: str, row: Mapping[str, Any], shown: Shown) -> JudgedThing:
    details, subject, judge = row["details"], row["subject"][0], row.get("judge")
    settled = "settled_by" in details
    counts = details.get("votes")
    return JudgedThing(
        trace=trace,
        case=case,
        subject=subject,
        agent=details.get("to") or details.get("agent"),
        position=shown.position,
        status=row["status"],
        label=details.get("label"),
        value=row["score"],
        model=None if judge is None or settled else judge["model"],
        version=row["version"],
        settled=settled,
        trouble=_trouble(row),
        votes=None if not counts else Votes(counts=counts, spread=details.get("spread", 0.0)),
        length=shown.length,
    )


def _trouble(row: Mapping[str, Any]) -> str | None:
    """Say in a word or two why there is no verdict."""
    if row["status"] == "error":
        return str(row["details"].get("judge_error") or "error")
    without_label = row["status"] == "skipped" and row["details"].get("label") is None
    return "skipped" if without_label else None


def judged(evaluator: Evaluator) -> Judged:
    """Return an evaluator that asks a judge; raises InputError for any other."""
    if isinstance(evaluator, Judged):
        return evaluator
    raise InputError(f"`{evaluator.name}` asks no judge: there is nothing to calibrate")


def terms_of(evaluator: Judged) -> Terms:
    """Return what a rubric answers with; several verdicts in one answer have a mean, no label."""
    rubric = evaluator.rubric
    whole = rubric.answer.each is None and rubric.answer.claims is None
    names = (rubric.answer.labels or {}) if whole else {}
    scale = rubric.answer.scale
    told = [score for name in names if (score := rubric.answer.score_of(name)) is not None]
    return Terms(
        bounds=(min(told), max(told)) if told and scale is None else _bounds(scale),
        normalise=scale is not None and scale.normalise,
        labels={name: rubric.answer.score_of(name) for name in names},
        threshold=evaluator.threshold,
        higher=rubric.direction == "higher",
    )


def _bounds(scale: Scale | None) -> tuple[float, float]:
    return (0.0, 1.0) if scale is None else scale.bounds


def things_of(
    evaluator: Judged, trace: Trace, case: Case | None, context: EvalContext
) -> list[JudgedThing]:
    """Return what of a trace may be judged, before it is."""
    return [
        JudgedThing(
            trace=trace.id,
            case=case_id(trace, case),
            subject=subject.id,
            agent=subject.dispatch.to_agent if subject.dispatch is not None else subject.agent,
            position=position,
            version=evaluator.version,
        )
        for position, subject in enumerate(evaluator.subjects(trace, case, context), 1)
    ]


def case_id(trace: Trace, case: Case | None) -> str:
    """Return the id of the case of a trace; without one, what the trace says."""
    return case.id if case is not None else trace.case or trace.id


class Chosen(Judged):
    """Judges only things that are ``wanted``, by the ids of their trace and their own.

    Every sample is asked for, so that it shows how far the judge agrees with itself.
    """

    __slots__ = ("wanted",)
    every_sample: ClassVar[bool] = True

    def __init__(self, evaluator: Judged, wanted: Set[Key], more: Mapping[str, Any]) -> None:
        """Take an evaluator, and options that replace some of its own."""
        options = {**msgspec.to_builtins(evaluator.options), **more}
        super().__init__(evaluator.shape, evaluator.name, options)
        self.wanted = wanted

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return a copy with some options replaced; raises InputError for a wrong one."""
        return self.__class__(self, self.wanted, override)

    def subjects(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Subject]:
        """Return what is wanted of a trace."""
        found = super().subjects(trace, case, context)
        return [one for one in found if (trace.id, one.id) in self.wanted]


def chosen(evaluator: Judged, wanted: Set[Key], samples: int | None = None) -> Chosen:
    """Return it so that the judge itself is asked about what is wanted, one thing at a time."""
    more = {} if samples is None else {"samples": samples}
    return Chosen(evaluator, wanted, {"cascade": False, "report": "each", **more})


def with_model(evaluator: Chosen, model: str) -> Chosen:
    """Return it so that another model is asked."""
    return evaluator.with_options({"judge": {**evaluator.options.judge, "model": model}})


def with_reversed_order(evaluator: Chosen) -> Chosen:
    """Return it with its labels, and what it is shown, in reverse order."""
    rubric = evaluator.rubric
    answer: dict[str, Any] = msgspec.to_builtins(rubric.answer)
    for part in ("choices", "scale", "each", "claims"):
        if answer.get(part) is not None:
            answer[part] = _reversed(part, answer[part])
    kept = {part: given for part, given in answer.items() if given is not None}
    return evaluator.with_options({"answer": kept, "inputs": rubric.inputs[::-1]})


async def ask(
    evaluator: Judged,
    traces: Sequence[tuple[Trace, Case | None]],
    judge: Judge,
    context: EvalContext,
) -> list[JudgedThing]:
    """Let a judge give its verdicts on everything in some traces that a rubric is about."""
    context = msgspec.structs.replace(context, judge=judge)

    async def one(trace: Trace, case: Case | None) -> list[JudgedThing]:
        scores = await evaluator.evaluate(trace, case, context)
        shown = shown_of(evaluator, trace, case, context)
        return of_scores(trace, case_id(trace, case), scores, shown)

    found = await asyncio.gather(*(one(trace, case) for trace, case in traces))
    asked = evaluator.options.judge.get("model", judge.model)
    return [msgspec.structs.replace(thing, asked=asked) for things in found for thing in things]


def shown_of(
    evaluator: Judged, trace: Trace, case: Case | None, context: EvalContext
) -> dict[str, Shown]:
    """Return what a judge is shown of each thing, by its id; places are those in the trace."""
    everything = Judged.subjects(evaluator, trace, case, context)
    places = {subject.id: place for place, subject in enumerate(everything, 1)}
    return {
        subject.id: Shown(places[subject.id], _length(evaluator, subject))
        for subject in evaluator.subjects(trace, case, context)
    }


def _length(evaluator: Judged, subject: Subject) -> int | None:
    try:
        question = evaluator.question(subject)
    except ValueError:
        return None
    return len(question.request.content) if isinstance(question, Question) else None


def _reversed(part: str, given: Any) -> Any:
    if part == "choices":
        return dict(reversed(given.items()))
    name = "levels" if part == "scale" else "choices"
    return {**given, name: dict(reversed(given[name].items()))} if given.get(name) else given
