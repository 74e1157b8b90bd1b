"""A rubric as data, and the options that every rubric has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from baton.model import CaseRubric, Unit
from baton.plugins import FROM_CASES, FROM_CONFIGS, FROM_FILES, JUDGE_FROM_FILES

Direction = Literal["higher", "lower"]
Report = Literal["each", "mean", "pooled"]
Kind = Literal["transfer", "delegate", "sequence"]
Hidden = Literal["fault", "excuse", "either", "nothing"]
Samples = Annotated[int, msgspec.Meta(ge=1, le=99)]


LISTED = "listed"
"""The name of the section that lists the items to label one by one."""


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of the parts of a rubric. An unknown key is a fault."""


class Label(Strict, frozen=True, kw_only=True):
    """A label's score, and when the label applies. A score of ``None`` gives no verdict."""

    score: float | None
    means: str = ""


Labels = dict[str, Label | float | None]


class Scale(Strict, frozen=True, kw_only=True):
    """Numbers from ``min`` to ``max``, or named ``levels`` with a number each.

    The score is mapped to 0 to 1, unless ``normalise`` is false. ``guide`` explains the
    numbers.
    """

    min: float | None = None
    max: float | None = None
    levels: Labels = msgspec.field(default_factory=dict)
    guide: dict[str, str] = msgspec.field(default_factory=dict)
    normalise: bool = True

    def __post_init__(self) -> None:
        if any(_score(label) is None for label in self.levels.values()):
            raise ValueError("`levels` need a number each")
        low, high = self.bounds
        if not low < high:
            raise ValueError("`min` has to be below `max`; or name at least two `levels`")

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest number."""
        numbers = [score for label in self.levels.values() if (score := _score(label)) is not None]
        low = min(numbers, default=0.0) if self.min is None else self.min
        high = max(numbers, default=1.0) if self.max is None else self.max
        return low, high

    def normal(self, number: float) -> float:
        """Map a number on this scale to 0 to 1, if ``normalise`` is true."""
        low, high = self.bounds
        return (number - low) / (high - low) if self.normalise else number


class Each(Strict, frozen=True, kw_only=True):
    """Several statements, each with a label, in one answer. The score is their mean.

    ``items`` are the statements of the rubric. Without them, the config, the case and the turn
    supply the statements. From the case and the turn, only statements with this ``type`` or
    without a type count (all, if ``type`` is ``None``).
    """

    choices: Labels
    items: dict[str, str] = msgspec.field(default_factory=dict)
    type: str | None = None


class Claims(Strict, frozen=True, kw_only=True):
    """A label for each sentence of an input (or for each of its pieces). The score is their mean.

    ``of`` is the name of the input. Labels without a score do not count.
    """

    of: str
    choices: Labels
    by: Literal["sentence", "piece"] = "sentence"


class Answer(Strict, frozen=True, kw_only=True):
    """The form of a judge's answer: exactly one of the four fields."""

    choices: Labels | None = None
    scale: Scale | None = None
    each: Each | None = None
    claims: Claims | None = None

    def __post_init__(self) -> None:
        if sum(kind is not None for kind in (self.choices, self.scale, self.each, self.claims)) - 1:
            raise ValueError("an answer is one of `choices`, `scale`, `each` and `claims`")
        labels = self.labels
        if labels is not None and len(labels) < 2:
            raise ValueError("`choices` need at least two labels")
        scores = [label.score for label in (labels or {}).values() if label.score is not None]
        if not all(map(math.isfinite, scores)):
            raise ValueError("a score has to be finite")
        if labels is not None and not scores:
            raise ValueError("`choices` need a label with a score")

    @property
    def labels(self) -> dict[str, Label] | None:
        """The possible labels, or ``None`` for a scale of numbers."""
        if self.scale is not None:
            return full(self.scale.levels) if self.scale.levels else None
        kind = self.each or self.claims
        return full(kind.choices if kind is not None else self.choices or {})

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest possible score."""
        if self.scale is not None:
            low, high = self.scale.bounds
            return self.scale.normal(low), self.scale.normal(high)
        scores = [label.score for label in (self.labels or {}).values() if label.score is not None]
        return min(scores), max(scores)

    def score_of(self, label: str) -> float | None:
        """Return the score of a label. Raises KeyError if there is no such label."""
        score = (self.labels or {})[label].score
        return score if self.scale is None or score is None else self.scale.normal(score)


class Alias(Strict, frozen=True, kw_only=True):
    """Another tool's name for a rubric: :class:`baton.plugins.Alias` as data."""

    name: str
    class_name: str | None = None
    presets: dict[str, Any] = msgspec.field(default_factory=dict)
    renames: dict[str, str] = msgspec.field(default_factory=dict)
    values: dict[str, dict[str, dict[str, Any]]] = msgspec.field(default_factory=dict)
    unused: list[str] = msgspec.field(default_factory=list)


class Example(Strict, frozen=True, kw_only=True):
    """The expected verdict of a rubric, on texts given as inputs or on a trace.

    ``trace`` is a file, relative to the rubric's file. ``subject`` is the id of the judged part.
    ``label`` or ``score`` is expected.
    """

    name: str
    inputs: dict[str, str] = msgspec.field(default_factory=dict)
    trace: str | None = None
    subject: str | None = None
    config: dict[str, Any] = msgspec.field(default_factory=dict)
    label: str | None = None
    score: float | None = None

    def __post_init__(self) -> None:
        if bool(self.inputs) == bool(self.trace):
            raise ValueError("an example has either `inputs` or a `trace`")
        if (self.label is None) == (self.score is None):
            raise ValueError("an example expects either a `label` or a `score`")


class ExampleOptions(Strict, frozen=True, kw_only=True):
    """Whether earlier cases are shown to the judge, and how many.

    ``file`` was written by `baton rubrics examples`. A server uses the labels of the project
    instead. ``max_tokens`` limits all examples of a question together. Only examples of
    ``project`` are shown (if it is unset, only those that name no project).
    """

    file: str | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=20)] = 3
    max_tokens: Annotated[int, msgspec.Meta(ge=100, le=20_000)] = 1_000
    project: str | None = None


class DistilledOptions(Strict, frozen=True, kw_only=True):
    """The classifier that answers before the judge.

    ``file`` was written by `baton distill`. The classifier answers if its error is at most
    ``max_error``. For a share ``audit`` of its answers, the judge is called too, to check whether
    it still agrees. The judge's verdict then counts.
    """

    file: str
    max_error: Annotated[float, msgspec.Meta(gt=0, le=0.5)]
    audit: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.05


class Rubric(Strict, frozen=True, kw_only=True):
    """A question to a judge, and how its answer is scored.

    ``inputs`` name the material shown to the judge. An input that ends in ``?`` may be unknown.
    ``findings`` are given as evidence. A finding whose kind has a label settles the question with
    that label. ``kinds`` are the kinds of dispatches the rubric is about. ``hides`` states what
    the omitted part of a long input (or ``INPUT.KIND``) can contain: a ``fault`` (then a pass does
    not count), an ``excuse`` (then a failure does not count), ``either``, or ``nothing`` relevant.
    """

    name: str
    summary: str
    unit: Unit
    version: str
    inputs: list[str]
    prompt: str
    answer: Answer
    threshold: float
    aliases: list[str | Alias] = msgspec.field(default_factory=list)
    direction: Direction = "higher"
    samples: Samples | None = None
    select: Literal["all", "last"] = "all"
    kinds: list[Kind] | None = None
    report: Report = "each"
    findings: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    hides: dict[str, Hidden] = msgspec.field(default_factory=dict)
    tests: list[Example] = msgspec.field(default_factory=list)

    def hidden(self, name: str, kind: str) -> Hidden:
        """Return what an omitted part of an input may hide, by default a fault."""
        if self.answer.claims is not None and name == LISTED:
            name = self.answer.claims.of
        return self.hides.get(f"{name}.{kind}") or self.hides.get(name, "fault")

    @property
    def wanted(self) -> list[tuple[str, bool]]:
        """The inputs, each with a flag for whether it has to be known."""
        return [(name.removesuffix("?"), not name.endswith("?")) for name in self.inputs]


def full(labels: Mapping[str, Label | float | None]) -> dict[str, Label]:
    """Return labels in their full form."""
    return {
        name: label if isinstance(label, Label) else Label(score=label)
        for name, label in labels.items()
    }


def _score(label: Label | float | None) -> float | None:
    return label.score if isinstance(label, Label) else label


class StatedRubric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A statement that answers are compared with."""

    text: str
    id: str | None = None
    type: str | None = None


class RubricOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a rubric. An option that is ``None`` leaves the rubric's setting unchanged.

    ``judge`` overrides settings of the judge. ``rubric`` is the text that replaces ``{rubric}`` in
    a prompt: one text, or one for each agent. ``rubrics`` are statements to check. ``cascade``: if
    a finding settles the question, no judge is called. ``order``: also judge dispatches known only
    from the order of runs. ``kinds``: judge dispatches of these kinds. ``agents``: judge only
    dispatches to these agents (or runs and tool calls of these agents). ``input_mapping``: names
    in the user's text, and the input that each stands for. The judge is shown only these inputs,
    of the unit that has them. ``max_chars``: how much material a judge is shown. The rest is cut
    from the middle of the longest parts. ``examples``: show the judge the most similar earlier
    cases that people decided. ``distilled``: a small classifier answers before the judge if it is
    sure enough. The other options replace parts of the rubric. The marks state what data files may
    set: see :mod:`baton.plugins.data_limits`.
    """

    judge: Annotated[dict[str, Any], JUDGE_FROM_FILES] = msgspec.field(default_factory=dict)
    threshold: float | None = None
    samples: Annotated[Samples | None, FROM_FILES] = None
    cascade: bool = True
    rubric: Annotated[str | dict[str, str] | None, FROM_CASES] = None
    rubrics: Annotated[list[StatedRubric | str], FROM_CASES] = msgspec.field(default_factory=list)
    order: bool = False
    kinds: list[Kind] | None = None
    agents: Annotated[list[str] | None, FROM_CASES] = None
    max_chars: Annotated[int, msgspec.Meta(ge=200), FROM_CONFIGS] = 60_000
    examples: Annotated[ExampleOptions | None, FROM_CONFIGS] = None
    distilled: Annotated[DistilledOptions | None, FROM_CONFIGS] = None
    report: Annotated[Report | None, FROM_FILES] = None
    unit: Annotated[Unit | None, FROM_FILES] = None
    inputs: Annotated[list[str] | None, FROM_FILES] = None
    input_mapping: Annotated[dict[str, str], FROM_FILES] = msgspec.field(default_factory=dict)
    prompt: Annotated[str | None, FROM_FILES] = None
    answer: Annotated[Answer | None, FROM_FILES] = None
    direction: Annotated[Direction | None, FROM_FILES] = None

    @property
    def statements(self) -> list[CaseRubric]:
        """The ``rubrics``, each as a case would state it."""
        return [
            CaseRubric(text=each)
            if isinstance(each, str)
            else CaseRubric(text=each.text, id=each.id, type=each.type)
            for each in self.rubrics
        ]

    @property
    def parts(self) -> dict[str, Any]:
        """The options that replace parts of the rubric and so change its question."""
        parts = {name: getattr(self, name) for name in ("unit", "inputs", "prompt", "answer")}
        return {name: part for name, part in parts.items() if part is not None}
