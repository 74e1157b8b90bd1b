"""Several models judge by one rubric. The majority of labels or the median of numbers counts."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

import msgspec

from baton.formats.explain_mistakes import checked
from baton.judges.votes import Vote, tally
from baton.model import Case, EvalContext, InputError, Problem, Score, Trace, Unit
from baton.model.score import passes
from baton.plugins import Alias, Entry, Origin, refused_options

from .base_evaluator import EvaluatorTraits, describe
from .judged import Judged, of_keyword, rubric_of
from .judging.labelled_examples import LabelledExample
from .judging.rubric import RubricOptions
from .judging.verdicts import JudgedDetails, details_of, summed, worst_first
from .registry import evaluator_entry


class PanelOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of `panel`."""

    rubric: Annotated[str, describe("The rubric to ask.")]
    models: Annotated[
        list[str | dict[str, Any]],
        describe("Two or more models to ask: each a name, or settings of a judge with `model`."),
    ]
    options: Annotated[
        dict[str, Any],
        msgspec.Meta(extra={"options_of": RubricOptions}),
        describe("Options of the rubric."),
    ] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [_name(model) for model in self.models]
        if len(names) < 2 or "" in names:
            raise ValueError("a panel has at least two `models`, each with its name")
        if len(set(names)) < len(names):
            raise ValueError("`models` names a model twice: it would have two votes")


class PanelDetails(JudgedDetails, kw_only=True):
    """Details of the model nearest to the verdict, with the votes of all models.

    ``models`` has each model's answer (a label, a number, or why there is none). ``dissent`` has
    the models with a different answer.
    """

    dissent: list[str] | msgspec.UnsetType = msgspec.UNSET
    models: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class Panel(EvaluatorTraits):
    """Asks several models the same question, and gives one score from their verdicts.

    If labels tie, the worst one counts, and the score notes the tie. Dissenting models are named
    with their reasons. A model without an answer is an unknown vote. So is a model whose answer
    does not count because it was not shown everything. The score is an error if an unknown vote
    could have changed the label, and always for numbers.
    """

    type: ClassVar[str] = "panel"
    summary: ClassVar[str] = "several models judge by one rubric, and the majority decides"
    aliases: ClassVar[tuple[Alias, ...]] = ()
    runs_code: ClassVar[bool] = False
    needs_judge: ClassVar[bool] = True
    takes_rubrics: ClassVar[bool] = True
    options_type: ClassVar[Any] = PanelOptions

    __slots__ = ("_members", "_rubrics", "name", "options")

    def __init__(
        self, *, name: str | None = None, rubrics: Sequence[Entry] = (), **options: Any
    ) -> None:
        """Take options and the user's rubrics. Raises InputError for wrong ones."""
        try:
            self._set(name, options, rubrics, ("config",))
        except InputError as error:
            raise InputError(map(of_keyword, error.problems)) from None

    @classmethod
    def from_options(
        cls,
        name: str | None,
        options: Mapping[str, Any],
        path: tuple[str, ...] = ("config",),
        *,
        rubrics: Sequence[Entry] = (),
    ) -> Self:
        """Create an evaluator from plain-data options found at ``path``. Raises InputError."""
        made = cls.__new__(cls)
        made._set(name, options, rubrics, path)
        return made

    def _set(
        self,
        name: str | None,
        options: Mapping[str, Any],
        rubrics: Sequence[Entry],
        path: tuple[str, ...],
    ) -> None:
        self.name = name or self.type
        self.options = checked(dict(options), PanelOptions, path)
        self._rubrics = tuple(rubrics)
        self._members = {
            _name(model): _member(self.options, model, rubrics) for model in self.options.models
        }

    @property
    def version(self) -> str:
        """The version of the panel and of its rubric."""
        return f"1/{self._first.version}"

    @property
    def unit(self) -> Unit:
        """What one score is about."""
        return self._first.unit

    @property
    def checks(self) -> frozenset[str]:
        """The statements of a case that this checks."""
        return self._first.checks

    @property
    def rubric_hash(self) -> str:
        """The hash of the rubric with its options. It is the same for all models."""
        return self._first.rubric_hash

    @property
    def lower_is_better(self) -> bool:
        """Whether a low value passes."""
        return self._first.lower_is_better

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest possible value."""
        return self._first.bounds

    @property
    def lacks(self) -> str | None:
        """What the panel's rubric is missing."""
        return self._first.lacks

    def with_examples(self, items: Iterable[LabelledExample], project: str) -> Self:
        """Return a copy whose models are shown examples, if the options request them."""
        made = copy.copy(self)
        items = list(items)
        made._members = {
            model: member.with_examples(items, project) for model, member in self._members.items()
        }
        return made

    @property
    def members(self) -> tuple[Judged, ...]:
        """The evaluators of the models, one for each."""
        return tuple(self._members.values())

    @property
    def judge_options(self) -> tuple[Mapping[str, Any], ...]:
        """The judge settings, one for each model."""
        return tuple(own for one in self._members.values() for own in one.judge_options)

    def refused_options(self, options: Mapping[str, Any], origin: Origin) -> list[str]:
        """Return the options that data may not set."""
        return refused_options(PanelOptions, options, origin)

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return a copy with some options replaced. Raises InputError for a wrong option."""
        if not override:
            return self
        values = {**msgspec.structs.asdict(self.options), **override}
        return self.from_options(self.name, values, rubrics=self._rubrics)

    async def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        """Ask all models, and combine their answers about each subject."""
        members = self._members.values()
        results = await asyncio.gather(*(one.evaluate(trace, case, context) for one in members))
        return [
            self._summed(dict(zip(self._members, scores, strict=True)))
            for scores in zip(*results, strict=True)
        ]

    @property
    def _first(self) -> Judged:
        return next(iter(self._members.values()))

    def _summed(self, scores: Mapping[str, Score]) -> Score:
        """Combine the scores of all models on the same subject."""
        failed = {model: score for model, score in scores.items() if score.status == "error"}
        voters = {
            model: score
            for model, score in scores.items()
            if score.judge is not None and model not in failed
        }
        if not voters:
            return self._as_own(next(iter(failed.values()), next(iter(scores.values()))), scores)
        rubric = self._first.rubric
        worst = worst_first(rubric.answer, rubric.direction)
        votes: dict[str, Vote] = {}
        for model, score in voters.items():
            label = details_of(score).label
            votes[model] = label if isinstance(label, str) else float(score.value or 0.0)
        labels = all(isinstance(vote, str) for vote in votes.values())
        outcome = tally(list(votes.values()), worst)
        ranked = sorted(outcome.counts.values(), reverse=True)
        ahead = ranked[0] - (ranked[1] if len(ranked) > 1 else 0)
        if failed and (not labels or ahead <= len(failed)):
            return self._as_own(next(iter(failed.values())), scores)
        nearest = min(voters, key=lambda model: _distance(votes[model], outcome.value))
        chosen = voters[nearest]
        value = chosen.value if labels else float(outcome.value)
        dissent = [model for model, vote in votes.items() if vote != outcome.value]
        reason = chosen.reason
        for model in dissent:
            vote = votes[model]
            words = f"`{vote}`" if isinstance(vote, str) else f"{vote:g}"
            reason += f"; {model} says {words}: {voters[model].reason}"
        details = _panel_details(chosen)
        details.votes, details.tie, details.spread = outcome.counts, outcome.tie, outcome.spread
        if dissent:
            details.dissent = dissent
        status = chosen.status
        if not labels:
            first, median = self._first, float(outcome.value)
            higher = first.rubric.direction == "higher"
            status = "passed" if passes(median, first.threshold, higher=higher) else "failed"
        score = msgspec.structs.replace(
            chosen,
            value=value,
            status=status,
            reason=reason,
            details=details.mapping(),
        )
        return self._as_own(score, scores)

    def _as_own(self, score: Score, scores: Mapping[str, Score]) -> Score:
        uses = [each.judge for each in scores.values() if each.judge is not None]
        use = summed(uses)
        if use is not None:
            use = msgspec.structs.replace(use, model=", ".join(each.model for each in uses))
        details = _panel_details(score)
        models: dict[str, Any] = {}
        for model, each in scores.items():
            if each.status == "error":
                models[model] = f"error: {each.reason}"
            else:
                label = details_of(each).label
                models[model] = each.value if label is msgspec.UNSET else label
        details.models = models
        return msgspec.structs.replace(
            score,
            evaluator=self.name,
            type=self.type,
            version=self.version,
            details=details.mapping(),
            judge=use,
        )


def _member(options: PanelOptions, model: str | dict[str, Any], rubrics: Sequence[Entry]) -> Judged:
    """Create the evaluator for one model.

    Raises:
        InputError: the rubric does not exist, or its options are wrong.
    """
    try:
        entry = evaluator_entry(options.rubric, rubrics)
        rubric = rubric_of(entry)
    except InputError as error:
        raise InputError(Problem(path="config.rubric", message=str(error))) from None
    if options.options.get("judge", {}).get("model") is not None:
        message = "the models of a panel belong under `models`"
        raise InputError(Problem(path="config.options.judge.model", message=message))
    alias = entry.asked_as(options.rubric)
    own = {"model": model} if isinstance(model, str) else model
    judge = {**options.options.get("judge", {}), **own}
    values = alias.completed({**options.options, "judge": judge})
    try:
        return Judged.from_options(rubric, alias.name, values)
    except InputError as error:
        raise InputError(map(_of_options, error.problems)) from None


def _of_options(problem: Problem) -> Problem:
    """Name an option of the rubric by its place in a panel: `config.options.threshold`."""
    path = problem.path.replace("config", "config.options", 1)
    return msgspec.structs.replace(problem, path=path)


def _name(model: str | dict[str, Any]) -> str:
    return model if isinstance(model, str) else str(model.get("model", ""))


def _panel_details(score: Score) -> PanelDetails:
    return msgspec.convert(score.details, PanelDetails)


def _distance(vote: Vote, verdict: Vote) -> float:
    if isinstance(vote, float) and isinstance(verdict, float):
        return abs(vote - verdict)
    return float(vote != verdict)
