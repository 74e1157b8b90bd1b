"""A judge's verdicts on single things, and asking it about labelled ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar, NamedTuple, Self

import msgspec

from baton.evaluators.judged import Judged
from baton.evaluators.judging.judge_prompt import Question
from baton.evaluators.judging.subject import Subject
from baton.evaluators.judging.verdicts import JudgedDetails, UnitDetails, details_of
from baton.model import (
    Case,
    CaseResult,
    EvalContext,
    Evaluator,
    InputError,
    Judge,
    Problem,
    Score,
    Status,
    Trace,
)
from baton.stats.calibration import Key, Terms, Votes
from baton.store import StoredEvaluation


class Shown(NamedTuple):
    """The place of a thing in its trace, from 1, and the number of characters shown to a judge."""

    position: int
    length: int | None


class JudgedThing(msgspec.Struct, frozen=True, kw_only=True):
    """One score of a rubric, about one thing in one trace.

    ``model`` is ``None`` if no judge answered: findings or a distilled judge did (``settled``), or
    something went wrong (``trouble``, and ``why``). ``asked`` is the model that was called first,
    if known. ``agent`` is the thing's receiver. ``position`` counts from 1 in its trace, ``length``
    is the number of judged characters.
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
    why: str | None = None

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
    """Return the scores of one trace, without those about no subject."""
    singles = [single for score in scores for single in _singles(score)]
    return _things(trace.id, case_id, singles, shown)


def of_evaluation(
    evaluation: StoredEvaluation,
    rubric: str,
    shown: Mapping[str, Mapping[str, Shown]] | None = None,
) -> list[JudgedThing]:
    """Return the scores of a rubric in a stored evaluation.

    ``shown`` has, by trace id, what a judge was shown of each thing.
    """
    things: list[JudgedThing] = []
    for result in evaluation:
        trace = trace_id(result)
        if trace is not None:
            scores = [score for score in result.scores if score.type == rubric]
            singles = [single for score in scores for single in _singles(score)]
            things += _things(trace, result.case_id, singles, (shown or {}).get(trace, {}))
    return things


def judged_types(evaluation: StoredEvaluation) -> list[str]:
    """Return the rubrics of an evaluation, in order."""
    types: dict[str, None] = {}
    for result in evaluation:
        for score in result.scores:
            if score.judge is not None or {"settled_by", "distilled"} & score.details.keys():
                types[score.type] = None
    return list(types)


def trace_id(result: CaseResult) -> str | None:
    """Return the id of the trace that a result holds or refers to."""
    held = result.trace or result.recorded
    return None if held is None else held.id


class _Single(NamedTuple):
    score: Score
    details: JudgedDetails | UnitDetails


def _singles(score: Score) -> Iterator[_Single]:
    """Yield a score, or those that it sums up.

    Raises:
        InputError: its details are not those of a rubric: the file is forged.
    """
    try:
        details = details_of(score)
        if details.units is msgspec.UNSET:
            yield _Single(score, details)
            return
        for unit in details.units:
            single = msgspec.structs.replace(
                score,
                status=unit.status,
                value=None if unit.value is msgspec.UNSET else unit.value,
                subject=score.subject if unit.subject is msgspec.UNSET else unit.subject,
            )
            yield _Single(single, unit)
    except (msgspec.ValidationError, ValueError) as error:
        message = f"a score of `{score.evaluator}` is damaged: {error}"
        raise InputError(Problem(message=message, damaged=True)) from None


def _things(
    trace: str, case: str, singles: Iterable[_Single], shown: Mapping[str, Shown]
) -> list[JudgedThing]:
    things = []
    about = (single for single in singles if single.score.subject)
    for position, (score, details) in enumerate(about, 1):
        subject = score.subject[0]
        judged = shown.get(subject, Shown(position, None))
        small = details.distilled
        alone = small is not msgspec.UNSET and small.agreed is msgspec.UNSET
        settled = alone or details.settled_by is not msgspec.UNSET
        trouble = None
        if score.status == "error":
            trouble = details.judge_error or "error"
        elif score.status == "skipped" and details.label is msgspec.UNSET:
            trouble = "skipped"
        votes = Votes(counts=details.votes, spread=details.spread or 0.0) if details.votes else None
        to = details.to if isinstance(details, JudgedDetails) else None
        things.append(
            JudgedThing(
                trace=trace,
                case=case,
                subject=subject,
                agent=to or details.agent or None,
                position=judged.position,
                status=score.status,
                label=None if details.label is msgspec.UNSET else details.label,
                value=score.value,
                model=None if score.judge is None or settled else score.judge.model,
                version=score.version,
                settled=settled,
                trouble=trouble,
                votes=votes,
                length=judged.length,
                why=score.reason if score.status == "error" else None,
            )
        )
    return things


def judged(evaluator: Evaluator) -> Judged:
    """Return an evaluator that asks a judge; raises InputError for any other."""
    if isinstance(evaluator, Judged):
        return evaluator
    raise InputError(f"`{evaluator.name}` asks no judge: there is nothing to calibrate")


def terms_of(evaluator: Judged) -> Terms:
    """Return the scale of a rubric; several verdicts in one answer have a mean, no label."""
    rubric = evaluator.rubric
    whole = rubric.answer.each is None and rubric.answer.claims is None
    names = (rubric.answer.labels or {}) if whole else {}
    scale = rubric.answer.scale
    scores = [score for name in names if (score := rubric.answer.score_of(name)) is not None]
    return Terms(
        bounds=(min(scores), max(scores))
        if scores and scale is None
        else ((0.0, 1.0) if scale is None else scale.bounds),
        normalise=scale is not None and scale.normalise,
        labels={name: rubric.answer.score_of(name) for name in names},
        threshold=evaluator.threshold,
        higher=rubric.direction == "higher",
    )


def things_of(
    evaluator: Judged, trace: Trace, case: Case | None, context: EvalContext
) -> list[JudgedThing]:
    """Return the subjects of a trace that may be judged."""
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
    """Return the id of a trace's case; without a case, the trace's own value."""
    return case.id if case is not None else trace.case or trace.id


class Chosen(Judged):
    """Judges only things that are ``wanted``, by the ids of their trace and their own.

    All samples are taken, to show how far the judge agrees with itself.
    """

    __slots__ = ("wanted",)
    every_sample: ClassVar[bool] = True

    def __init__(self, evaluator: Judged, wanted: Set[Key], more: Mapping[str, Any]) -> None:
        """Take an evaluator, and options that override some of its own."""
        options = {**msgspec.to_builtins(evaluator.options), **more}
        self._set(evaluator.shape, evaluator.name, options)
        self.wanted = wanted

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return a copy with some options replaced; raises InputError for a wrong one."""
        return self.__class__(self, self.wanted, override)

    def subjects(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Subject]:
        """Return the wanted subjects of a trace."""
        every = super().subjects(trace, case, context)
        return [one for one in every if (trace.id, one.id) in self.wanted]


def chosen(evaluator: Judged, wanted: Set[Key], samples: int | None = None) -> Chosen:
    """Return a copy that asks the judge itself about the wanted things, one at a time."""
    more = {} if samples is None else {"samples": samples}
    return Chosen(evaluator, wanted, {"cascade": False, "report": "each", **more})


def with_model(evaluator: Chosen, model: str) -> Chosen:
    """Return a copy that uses another model."""
    return evaluator.with_options({"judge": {**evaluator.options.judge, "model": model}})


def with_reversed_order(evaluator: Chosen) -> Chosen:
    """Return a copy with its labels and material in reverse order."""
    rubric = evaluator.rubric
    answer: dict[str, Any] = msgspec.to_builtins(rubric.answer)
    for part in ("choices", "scale", "each", "claims"):
        if answer.get(part) is not None:
            value = answer[part]
            if part == "choices":
                answer[part] = dict(reversed(value.items()))
            else:
                name = "levels" if part == "scale" else "choices"
                if value.get(name):
                    answer[part] = {**value, name: dict(reversed(value[name].items()))}
    kept = {part: value for part, value in answer.items() if value is not None}
    return evaluator.with_options({"answer": kept, "inputs": rubric.inputs[::-1]})


async def ask(
    evaluator: Judged,
    traces: Sequence[tuple[Trace, Case | None]],
    judge: Judge,
    context: EvalContext,
) -> list[JudgedThing]:
    """Get a judge's verdicts on all subjects of a rubric in traces."""
    context = msgspec.structs.replace(context, judge=judge)

    async def one(trace: Trace, case: Case | None) -> list[JudgedThing]:
        scores = await evaluator.evaluate(trace, case, context)
        shown = shown_of(evaluator, trace, case, context)
        return of_scores(trace, case_id(trace, case), scores, shown)

    by_trace = await asyncio.gather(*(one(trace, case) for trace, case in traces))
    model = evaluator.options.judge.get("model", judge.model)
    return [msgspec.structs.replace(thing, asked=model) for things in by_trace for thing in things]


def shown_of(
    evaluator: Judged, trace: Trace, case: Case | None, context: EvalContext
) -> dict[str, Shown]:
    """Return what a judge is shown of each thing, by id; places are those in the trace."""
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
