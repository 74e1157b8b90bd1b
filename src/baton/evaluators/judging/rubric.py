"""A rubric as data, the options of every rubric, and what makes an evaluator of the two."""

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
"""The name of the section that lists what is labelled one by one."""


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a rubric: an unknown key is a fault."""


class Label(Strict, frozen=True, kw_only=True):
    """What a label scores, and when it applies; a score of ``None`` gives no verdict."""

    score: float | None
    means: str = ""


Labels = dict[str, Label | float | None]


class Scale(Strict, frozen=True, kw_only=True):
    """Numbers from ``min`` to ``max``, or named ``levels`` with the number of each.

    The score is put between 0 and 1, unless ``normalise`` is false. ``guide`` says what numbers
    mean.
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
        """The least and the greatest number."""
        numbers = [score for label in self.levels.values() if (score := _score(label)) is not None]
        low = min(numbers, default=0.0) if self.min is None else self.min
        high = max(numbers, default=1.0) if self.max is None else self.max
        return low, high

    def normal(self, number: float) -> float:
        """Put a number of this scale between 0 and 1, if that is asked for."""
        low, high = self.bounds
        return (number - low) / (high - low) if self.normalise else number


class Each(Strict, frozen=True, kw_only=True):
    """Several statements, each with a label, in one answer; the score is their mean.

    ``items`` stand in the rubric. Without them they are those of the config, the case and the turn;
    of the latter two only those of this ``type`` and those without one (all, if it is ``None``).
    """

    choices: Labels
    items: dict[str, str] = msgspec.field(default_factory=dict)
    type: str | None = None


class Claims(Strict, frozen=True, kw_only=True):
    """A label for each sentence of an input (or for each of its pieces); the score is their mean.

    ``of`` is the name of the input. Labels without a score do not count.
    """

    of: str
    choices: Labels
    by: Literal["sentence", "piece"] = "sentence"


class Answer(Strict, frozen=True, kw_only=True):
    """What a judge is to answer: one of the four."""

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
        """The labels there are, ``None`` for a scale of numbers."""
        if self.scale is not None:
            return full(self.scale.levels) if self.scale.levels else None
        kind = self.each or self.claims
        return full(kind.choices if kind is not None else self.choices or {})

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest score there may be."""
        if self.scale is not None:
            low, high = self.scale.bounds
            return self.scale.normal(low), self.scale.normal(high)
        scores = [label.score for label in (self.labels or {}).values() if label.score is not None]
        return min(scores), max(scores)

    def score_of(self, label: str) -> float | None:
        """Return what a label scores; raises KeyError when there is no such label."""
        score = (self.labels or {})[label].score
        return score if self.scale is None or score is None else self.scale.normal(score)


class Alias(Strict, frozen=True, kw_only=True):
    """Another tool's name for a rubric; as :class:`baton.plugins.Alias`, as data."""

    name: str
    class_name: str | None = None
    presets: dict[str, Any] = msgspec.field(default_factory=dict)
    renames: dict[str, str] = msgspec.field(default_factory=dict)
    values: dict[str, dict[str, dict[str, Any]]] = msgspec.field(default_factory=dict)
    unused: list[str] = msgspec.field(default_factory=list)


class Example(Strict, frozen=True, kw_only=True):
    """What a rubric should say of something: of texts given as inputs, or of a trace.

    ``trace`` is a file, seen from that of the rubric, ``subject`` the id of what in it is meant.
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

    ``file`` is what `baton rubrics examples` wrote; a server takes the labels of the project
    instead. ``max_tokens`` is for all examples of a question together. Only those of ``project``
    are shown (without one, those that name none).
    """

    file: str | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=20)] = 3
    max_tokens: Annotated[int, msgspec.Meta(ge=100, le=20_000)] = 1_000
    project: str | None = None


class DistilledOptions(Strict, frozen=True, kw_only=True):
    """The classifier that answers before the judge.

    ``file`` is what `baton distill` wrote. It answers where its error is at most ``max_error``.
    The judge is asked as well about a share ``audit`` of what it answers, to see whether it still
    agrees; there the verdict of the judge counts.
    """

    file: str
    max_error: Annotated[float, msgspec.Meta(gt=0, le=0.5)]
    audit: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.05


class Rubric(Strict, frozen=True, kw_only=True):
    """A question to a judge, and what is made of the answer.

    ``inputs`` name what the judge is shown; one that ends in ``?`` may be unknown. ``findings``
    are given as evidence, and settle the question by the labels that stand at their kinds.
    ``kinds`` are those of the dispatches that it is about. ``hides`` says what may be in the part
    of an input (or ``INPUT.KIND``) that is too long to be shown: a ``fault`` (then a pass does not
    count), an ``excuse`` (then a failure does not), ``either`` or ``nothing`` that matters.
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
        """Say what a part of an input that is not shown may hide; a fault, unless it is stated."""
        if self.answer.claims is not None and name == LISTED:
            name = self.answer.claims.of
        return self.hides.get(f"{name}.{kind}") or self.hides.get(name, "fault")

    @property
    def wanted(self) -> list[tuple[str, bool]]:
        """The inputs, each with whether it has to be known."""
        return [(name.removesuffix("?"), not name.endswith("?")) for name in self.inputs]


def full(labels: Mapping[str, Label | float | None]) -> dict[str, Label]:
    """Return labels with all that may be said of them."""
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
    """Options; what is ``None`` is as the rubric has it.

    ``judge`` overrides settings of the judge. ``rubric`` is the text that stands for ``{rubric}``
    in a prompt: one, or one for each agent. ``rubrics`` are statements to check. ``cascade``: where
    a finding settles the question, no judge is asked. ``order``: judge also dispatches known only
    from the order of runs; ``kinds``: judge dispatches of these kinds; ``agents``: judge only
    dispatches to these (runs and tool calls: of these). ``input_mapping``: names that the user's
    text uses, and the input that each stands for; the judge is shown these inputs alone, of the
    unit that has them. ``max_chars``: how much material a judge is shown, the rest is cut from the
    middle of what is longest. ``examples``: show the judge earlier cases on which people decided,
    the nearest ones. ``distilled``: a small classifier answers before the judge if it is sure
    enough. The others replace parts of the rubric. The marks say what files of data may set: see
    :mod:`baton.plugins.data_limits`.
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
        """What replaces parts of the rubric that make it another question."""
        parts = {name: getattr(self, name) for name in ("unit", "inputs", "prompt", "answer")}
        return {name: part for name, part in parts.items() if part is not None}
