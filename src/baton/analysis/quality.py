"""How good a judge is: its verdicts beside the labels of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from .agreement import ClassQuality, agreement, classes, confusion, kappa, squared_weight
from .effects import (
    Effects,
    Placed,
    Reliability,
    SelfAgreement,
    Votes,
    effects,
    reliability,
    self_agreement,
)
from .evidence import lacking
from .intervals import Estimate, mean_of, rank_correlation

PASSED, FAILED = "passed", "failed"
_PLAIN = {PASSED: 1.0, FAILED: 0.0}


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a rubric answers with: its labels and their scores, none for a scale of numbers.

    A score passes from ``threshold`` on, or up to it where less is better (``higher`` is false).
    ``bounds`` are those of the scale that people and judges answer on; scores are put between 0
    and 1 with ``normalise``.
    """

    labels: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    threshold: float = 0.5
    higher: bool = True
    bounds: tuple[float, float] = (0.0, 1.0)
    normalise: bool = False

    def passes(self, score: float) -> bool:
        """Tell whether a score passes (to 1e-9)."""
        return score >= self.threshold - 1e-9 if self.higher else score <= self.threshold + 1e-9

    def score(self, answer: float) -> float:
        """Turn a number on the scale into a score.

        Raises:
            ValueError: it is not on the scale.
        """
        low, high = self.bounds
        if not low <= answer <= high:
            raise ValueError(f"{answer:g} is not on the scale, which goes from {low:g} to {high:g}")
        return (answer - low) / (high - low) if self.normalise else answer


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """What people say of one item: a label of the rubric, ``passed`` or ``failed``, or a score."""

    label: str | None = None
    score: float | None = None


class JudgeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge says of one item.

    ``votes`` are its samples, where there were several, ``length`` is how many characters it
    judged, ``position`` the place of the item among those of its trace, from 1.
    """

    label: str | None
    score: float | None
    passed: bool | None
    votes: Votes | None = None
    length: int | None = None
    position: int = 1


Item = tuple[Opinion, JudgeVerdict]
Scheme = Literal["labels", "verdicts"]


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """A judge over labelled items; figures that cannot be worked out are ``None``.

    ``compared`` says what the figures count: the rubric's ``labels``, or ``verdicts`` (passed or
    failed). ``asked`` items had a label, ``n`` of them a verdict as well. ``weighted_kappa``
    weighs labels by their scores, squared. ``distance`` is the mean absolute difference of
    scores, ``rank`` their rank correlation. ``lacking`` says why this is no evidence.
    """

    asked: int
    n: int
    compared: Scheme
    agreement: Estimate | None
    kappa: Estimate | None
    weighted_kappa: Estimate | None
    classes: list[ClassQuality]
    confusion: list[tuple[str, str, int]]
    distance: Estimate | None
    rank: Estimate | None
    reliability: Reliability | None
    self_agreement: SelfAgreement | None
    effects: Effects
    lacking: list[str]

    @property
    def is_evidence(self) -> bool:
        """Whether the labels are enough to speak of."""
        return not self.lacking


def scheme_of(opinions: Sequence[Opinion], terms: Terms) -> Scheme:
    """Return what to compare: labels, where the rubric has some and people used them."""
    plain = {PASSED, FAILED} - set(terms.labels)
    if not terms.labels or (opinions and all(one.label in plain for one in opinions)):
        return "verdicts"
    return "labels"


def opinion_fault(opinion: Opinion, scheme: Scheme, terms: Terms) -> str | None:
    """Say why an opinion cannot be compared; ``None`` when it can."""
    if people_class(opinion, scheme, terms) is not None:
        return None
    if opinion.label is not None:
        known = list(terms.labels) if scheme == "labels" else [PASSED, FAILED]
        return f"the rubric has no label `{opinion.label}`; known: {', '.join(known)}"
    return f"no label of the rubric has the score {opinion.score:g}"


def people_class(opinion: Opinion, scheme: Scheme, terms: Terms) -> str | None:
    """Return the class of an opinion, ``None`` when there is none for it."""
    if scheme == "labels":
        if opinion.label is not None:
            return opinion.label if opinion.label in terms.labels else None
        with_score = (name for name, score in terms.labels.items() if score == opinion.score)
        return next(with_score, None)
    if opinion.label is not None:
        return opinion.label if opinion.label in (PASSED, FAILED) else None
    return _verdict(opinion.score is not None and terms.passes(opinion.score))


def judge_class(verdict: JudgeVerdict, scheme: Scheme) -> str | None:
    """Return the class of a verdict, ``None`` when it has none."""
    if scheme == "labels":
        return verdict.label
    return None if verdict.passed is None else _verdict(verdict.passed)


def quality(items: Sequence[Item], terms: Terms, *, asked: int) -> Quality:
    """Work out how good a judge is; opinions have to be comparable (:func:`opinion_fault`).

    ``asked`` is how many items have a label, with or without a verdict.
    """
    scheme = scheme_of([opinion for opinion, _ in items], terms)
    pairs = [
        (people, judge)
        for opinion, verdict in items
        if (people := people_class(opinion, scheme, terms)) is not None
        and (judge := judge_class(verdict, scheme)) is not None
    ]
    names = list(terms.labels) if scheme == "labels" else [PASSED, FAILED]
    agreed, found = agreement(pairs), classes(pairs, names)
    scores = [
        (score, verdict.score)
        for opinion, verdict in items
        if (score := score_of(opinion, terms)) is not None and verdict.score is not None
    ]
    placed = [_placed(*item, scheme, terms) for item in items if item[1].score is not None]
    graded = len({score for pair in scores for score in pair}) > 2
    return Quality(
        asked=asked,
        n=len(pairs),
        compared=scheme,
        agreement=agreed,
        kappa=kappa(pairs),
        weighted_kappa=_weighted(pairs, scores, scheme, terms) if graded else None,
        classes=found,
        confusion=confusion(pairs),
        distance=mean_of([abs(a - b) for a, b in scores]) if graded else None,
        rank=rank_correlation([a for a, _ in scores], [b for _, b in scores]) if graded else None,
        reliability=reliability(scores),
        self_agreement=self_agreement([v.votes for _, v in items if v.votes is not None]),
        effects=effects(placed),
        lacking=lacking(agreed, found, asked=asked),
    )


def score_of(opinion: Opinion, terms: Terms) -> float | None:
    """Return the score of an opinion: its own, its label's, 1 for passed and 0 for failed."""
    if opinion.score is not None:
        return opinion.score
    label = opinion.label or ""
    return terms.labels[label] if label in terms.labels else _PLAIN.get(label)


def _weighted(
    pairs: Sequence[tuple[str, str]],
    scores: Sequence[tuple[float, float]],
    scheme: Scheme,
    terms: Terms,
) -> Estimate | None:
    if scheme == "labels":
        known = {name: score for name, score in terms.labels.items() if score is not None}
        told = [pair for pair in pairs if set(pair) <= set(known)]
        return kappa(told, squared_weight(known)) if told else None
    return kappa(scores, squared_weight({score: score for pair in scores for score in pair}))


def _placed(opinion: Opinion, verdict: JudgeVerdict, scheme: Scheme, terms: Terms) -> Placed:
    people, judge = people_class(opinion, scheme, terms), judge_class(verdict, scheme)
    of_people, score = score_of(opinion, terms), verdict.score or 0.0
    error = None if people is None or judge is None else float(people != judge)
    if of_people is not None:
        error = abs(of_people - score)
    return Placed(score=score, error=error, length=verdict.length, position=verdict.position)


def _verdict(passed: bool) -> str:
    return PASSED if passed else FAILED
