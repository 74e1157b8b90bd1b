"""The evaluator that asks a judge; its question is a rubric, which is data."""

from __future__ import annotations

import asyncio
import copy
import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import msgspec

from baton.evaluators.judging.material import omission_text
from baton.findings.finding import Answer
from baton.formats.explain_mistakes import checked
from baton.judges.votes import judge_use, poll
from baton.model import (
    Case,
    EvalContext,
    InputError,
    Judge,
    JudgeError,
    Problem,
    Score,
    Trace,
    Unit,
    digest,
)
from baton.plugins import Entry, Origin, refused_options

from .base_evaluator import EvaluatorTraits, not_played, nothing_to_judge
from .judging.distilled import distilled_in
from .judging.evidence import answers_of, evidence_pieces, settled_by
from .judging.inputs import Missing
from .judging.judge_prompt import Question, cant_tell, inputs_of, question_of, sections_of
from .judging.labelled_examples import Examples, LabelledExample, examples_in
from .judging.rubric import Rubric, RubricOptions
from .judging.rubric_files import checks_of, names_of, revised, rubric_text
from .judging.subject import Subject, subjects
from .judging.verdicts import (
    DistilledDetails,
    JudgedDetails,
    Scorer,
    decisions,
    details_of,
    items_of,
    note_not_shown,
    reader,
    verdict_of,
    worst_first,
)
from .registry import requested_evaluator

AT_ONCE = 64
"""The number of questions about one trace that are kept in memory at a time."""
_NONE: dict[Unit, str] = {
    "dispatch": "no dispatch",
    "tool_call": "no tool call",
    "run": "no agent at work",
    "turn": "no turn",
    "trace": "no trace",
}


class Judged(EvaluatorTraits):
    """Asks a judge about each subject of a rubric.

    The rubric is named as in a config: by one of its names (``Judged("correctness")``), or by its
    file, relative to the current folder (``Judged("rubrics/polite.yaml")``). It may also be a
    :class:`Rubric` in memory. All other options are keywords, those of a rubric in a config::

        Judged("correctness", threshold=0.7, samples=3)

    ``name`` distinguishes two with the same rubric.
    """

    needs_judge: ClassVar[bool] = True
    every_sample: ClassVar[bool] = False
    options_type: ClassVar[type[RubricOptions]] = RubricOptions

    __slots__ = ("distilled", "examples", "name", "options", "rubric", "shape")

    def __init__(
        self,
        rubric: str | os.PathLike[str] | Rubric,
        /,
        *,
        name: str | None = None,
        **options: Any,
    ) -> None:
        """Take a rubric and its options.

        Raises:
            InputError: no rubric has this name, its file is faulty, or an option is wrong.
        """
        try:
            if isinstance(rubric, Rubric):
                self._set(rubric, name, options)
            else:
                self._set_named(os.fspath(rubric), name, options)
        except InputError as error:
            raise InputError(map(of_keyword, error.problems)) from None

    @classmethod
    def from_options(cls, rubric: Rubric, name: str | None, options: Mapping[str, Any]) -> Self:
        """Create an evaluator from plain-data options of a config. Raises InputError."""
        made = cls.__new__(cls)
        made._set(rubric, name, options)
        return made

    def _set_named(self, rubric: str, name: str | None, options: Mapping[str, Any]) -> None:
        entry, asked = requested_evaluator(rubric)
        alias = entry.asked_as(asked)
        values = alias.completed(options)
        try:
            self._set(rubric_of(entry), name or asked, values)
        except InputError as error:
            raise alias.in_its_words(error) from None

    def _set(self, rubric: Rubric, name: str | None, options: Mapping[str, Any]) -> None:
        self.shape = rubric
        self.name = name or rubric.name
        self.options = checked(dict(options), RubricOptions, ("config",))
        self.rubric = revised(rubric, self.options)
        examples = self.options.examples
        self.examples = (
            examples_in(examples, names_of(rubric), self.rubric.answer)
            if examples is not None
            else None
        )
        small = self.options.distilled
        self.distilled = distilled_in(small, self.rubric) if small is not None else None

    @property
    def type(self) -> str:
        """The name of the rubric."""
        return self.rubric.name

    @property
    def version(self) -> str:
        """The version of the rubric. Options, examples and a distilled judge change it."""
        version = self.rubric.version
        if self.examples is not None:
            version += f"+x{self.examples.version}"
        return version if self.distilled is None else f"{version}+d{self.distilled.version}"

    @property
    def unit(self) -> Unit:
        """What one score is about."""
        return self.scorer.unit

    @property
    def scorer(self) -> Scorer:
        """The type of what makes its scores."""
        return Scorer(self.name, msgspec.structs.replace(self.rubric, version=self.version))

    @property
    def threshold(self) -> float:
        """The lowest value that passes, or the highest with ``lower``."""
        return self.rubric.threshold

    @property
    def checks(self) -> frozenset[str]:
        """The statements of a case that this checks."""
        return checks_of(self.rubric)

    @property
    def judge_options(self) -> tuple[Mapping[str, Any], ...]:
        """The evaluator's own judge settings."""
        return (self.options.judge,)

    @property
    def rubric_hash(self) -> str:
        """The hash of the rubric with its options, the examples and the distilled model."""
        plain = self.version == self.rubric.version
        return digest(self.rubric if plain else [self.rubric, self.version])

    @property
    def lower_is_better(self) -> bool:
        """Whether a low value passes."""
        return self.rubric.direction == "lower"

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest possible value; 0 stands for a label without a score."""
        low, high = self.rubric.answer.bounds
        return min(low, 0.0), max(high, 0.0)

    @property
    def lacks(self) -> str | None:
        """A message if examples are requested without a file."""
        if self.options.examples is None or self.examples is not None:
            return None
        return "`examples` needs a `file` here: `baton rubrics examples` writes one"

    def refused_options(self, options: Mapping[str, Any], origin: Origin) -> list[str]:
        """Return the options that data may not set."""
        return refused_options(RubricOptions, options, origin)

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return a copy with some options replaced. Raises InputError for a wrong option."""
        if not override:
            return self
        values = {**msgspec.to_builtins(self.options), **override}
        return self.from_options(self.shape, self.name, values)

    def with_examples(self, items: Iterable[LabelledExample], project: str) -> Self:
        """Return a copy that shows examples from a server project, if the options request them."""
        if self.options.examples is None:
            return self
        made = copy.copy(self)
        options = msgspec.structs.replace(self.options.examples, project=project)
        made.examples = Examples(items, names_of(self.shape), self.rubric.answer, options)
        return made

    async def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        """Judge every subject of the rubric's unit. Scores without a verdict state the reason."""
        wanted = self.subjects(trace, case, context)
        places = asyncio.Semaphore(AT_ONCE)

        async def one(subject: Subject) -> Score:
            async with places:
                return await self.judged(subject, context)

        scores = list(await asyncio.gather(*map(one, wanted)))
        missing = not_played(trace, case) if case is not None else None
        if missing is not None and self.rubric.unit in ("turn", "trace"):
            scores.append(self.scorer.unscored("error", missing))
        if not scores:
            nothing = nothing_to_judge(trace, _NONE[self.rubric.unit])
            return [self.scorer.unscored(nothing.status, nothing.reason)]
        if self.rubric.report == "each":
            return scores
        return [self.scorer.mean(scores, {subject.id: subject.agent for subject in wanted})]

    def subjects(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Subject]:
        """Return the parts of a trace to judge."""
        options = self.options
        chosen = list(
            subjects(
                self.rubric.unit,
                trace,
                case,
                context.agent_names,
                order=options.order,
                kinds=self.rubric.kinds,
                agents=options.agents,
            )
        )
        if self.rubric.select == "last":
            chosen = chosen[-1:]
        if context.only is not None:
            chosen = [subject for subject in chosen if subject.id in context.only]
        return chosen

    def question(
        self, subject: Subject, answers: Mapping[str, Answer] | None = None
    ) -> Question | Missing:
        """Return the question for a judge about a subject, or why there can't be one.

        ``answers`` are the findings from the record, which the judge gets as evidence. They are
        computed if left out.
        """
        if answers is None:
            answers = answers_of(self.rubric, subject)
        rubric = self.rubric
        text = rubric_text(self.options, subject)
        if isinstance(text, Missing):
            return text
        inputs = inputs_of(rubric, subject)
        for name, required in rubric.wanted:
            answer = inputs[name]
            if required and isinstance(answer, Missing):
                return answer
        items = items_of(rubric, self.options, subject, inputs)
        if isinstance(items, Missing):
            return items
        sections = sections_of(rubric, inputs, evidence_pieces(answers))
        examples = self.examples.nearest(sections, subject.trace.id) if self.examples else ()
        return question_of(rubric, sections, items, text, self.options.max_chars, examples)

    async def judged(self, subject: Subject, context: EvalContext) -> Score:
        """Judge one subject. The score states any reason why there is no verdict."""
        try:
            score = await self._score(subject, context)
        except Exception as error:  # noqa: BLE001 - an error must not stop the other subjects
            score = self.scorer.unscored("error", f"{type(error).__name__}: {error}")
        score.subject = [subject.id]
        details, made = details_of(score), subject.dispatch
        if made is not None:
            details.from_, details.to, details.kind = made.from_agent, made.to_agent, made.kind
        elif subject.agent is not None:
            details.agent = subject.agent
        score.details = details.mapping()
        return score

    def plan(self, subject: Subject) -> Score | Question:
        """Return the question for a judge about a subject, or the score if no judge is needed."""
        trouble = subject.broken()
        if trouble is not None:
            return self.scorer.unscored("error", trouble)
        answers = answers_of(self.rubric, subject)
        settled = settled_by(self.rubric, answers)
        if settled is not None and self.options.cascade:
            return self.scorer.settled(settled)
        try:
            question = self.question(subject, answers)
        except ValueError as error:
            return self.scorer.unscored("error", str(error))
        if isinstance(question, Missing):
            return self.scorer.unscored("skipped", question.says)
        # The omitted part may decide, and a classifier cannot report that it can't tell.
        if self.distilled is None or not self.options.cascade or question.left_out:
            return question
        guess = self.distilled.guess(question.sections, answers)
        if guess.answers and not guess.audited:
            return self.scorer.guessed(guess)
        return question._replace(guess=guess)

    async def _score(self, subject: Subject, context: EvalContext) -> Score:
        planned = self.plan(subject)
        if isinstance(planned, Score):
            return planned
        if context.judge is None:
            return self.scorer.unscored(
                "error", "no judge is configured: give `judge: {model: ...}`"
            )
        try:
            return await self.ask(planned, context.judge)
        except JudgeError as error:
            return self.scorer.unscored("error", str(error), JudgedDetails(judge_error=error.kind))

    async def ask(self, question: Question, judge: Judge) -> Score:
        """Take samples and combine them. Raises JudgeError if there is no verdict."""
        rubric, override = self.rubric, self.options.judge
        judge = judge.with_options(override) if override else judge
        answer, items = rubric.answer, question.items
        taken = await poll(
            judge,
            question.request,
            reader(answer, items),
            samples=self.options.samples or override.get("samples") or rubric.samples,
            worst_first=worst_first(answer, rubric.direction),
            every_sample=self.every_sample,
        )
        decided = decisions(answer, items, taken, rubric.direction)
        verdict = verdict_of(decided, items, question.sections)
        unknown = [section.name for section in question.sections if section.missing]
        details = msgspec.structs.replace(verdict.details)
        if unknown:
            details.unknown = unknown
        guess = question.guess
        if guess is not None and guess.answers:
            details.distilled = DistilledDetails.of(guess, agreed=details.label == guess.label)
        note_not_shown(details, question.left_out)
        if taken.errors:
            details.unanswered = [str(each) for each in taken.errors]
        use = judge_use(taken.answers, question.request)
        passes = verdict.value is None or self.scorer.passes(verdict.value)
        if cant_tell(rubric, question, passes=passes):
            return self.scorer.cant_tell(question.left_out, verdict, details, use, passes=passes)
        if verdict.value is None:
            return self.scorer.unscored("skipped", verdict.reason, details, use)
        reason = verdict.reason
        if question.left_out:
            reason += f" (not shown to the judge: {omission_text(question.left_out)})"
        return self.scorer.scored(verdict.value, reason, details, verdict.evidence, use)


class RubricEntry(msgspec.Struct, frozen=True):
    """Creates the evaluator for a rubric from a config, as classes do for other evaluators."""

    options_type: ClassVar[type[RubricOptions]] = RubricOptions

    rubric: Rubric

    def from_options(self, name: str | None, options: Mapping[str, Any]) -> Judged:
        """Create the evaluator. Raises InputError for each wrong option."""
        return Judged.from_options(self.rubric, name, options)


def rubric_of(entry: Entry) -> Rubric:
    """Return the rubric that an evaluator asks. Raises InputError if it is not a rubric."""
    if not isinstance(entry.target, RubricEntry):
        raise InputError(f"`{entry.type}` is not a rubric; `baton rubrics list` shows all of them")
    return entry.target.rubric


def of_keyword(problem: Problem) -> Problem:
    """Name an option as in Python: `threshold`, which is `config.threshold` in a config."""
    path = problem.path.removeprefix("config").removeprefix(".")
    return msgspec.structs.replace(problem, path=path)
