"""Asking a judge about what has a label, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Self

import msgspec

from baton.analysis.judges import Key
from baton.analysis.quality import Terms
from baton.evaluators.judged import Judged
from baton.evaluators.judging.question import Question
from baton.evaluators.judging.rubric import Scale
from baton.evaluators.judging.subject import Subject
from baton.model import Case, EvalContext, Evaluator, InputError, Judge, Trace

from .judged import JudgedThing, Shown, of_scores


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
