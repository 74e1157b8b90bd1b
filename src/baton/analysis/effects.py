"""What a verdict should not depend on: chance, the order of choices, place, and length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from .intervals import Estimate, mean, mean_of, rank_correlation, share

Answer = str | float
"""A verdict: a label, or a number."""


class Votes(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of one item: how many said what, and how far apart they lie as scores."""

    counts: Mapping[str, int]
    spread: float = 0.0


class SelfAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How often a judge says the same of the same.

    ``unanimous`` is the share of items on which all samples that were taken agree; from
    ``fewest`` to ``most`` were. ``spread`` is the mean distance from the lowest to the highest.
    """

    unanimous: Estimate
    spread: Estimate
    fewest: int
    most: int


class ReversedOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What became of verdicts when the choices were put in reverse order.

    ``changed`` is the share of items whose verdict is another; ``shift`` by how much the mean
    score went up (or, below 0, down).
    """

    changed: Estimate
    shift: Estimate | None = None


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """Spearman's rho of scores, and of errors, with what should not matter; ``None``: unknown.

    ``score_length`` and ``error_length`` are with the length of what was judged, in characters,
    ``score_position`` and ``error_position`` with its place among those of its trace. An error
    is how far judge and people lie apart, 0 where they agree.
    """

    score_length: Estimate | None = None
    error_length: Estimate | None = None
    score_position: Estimate | None = None
    error_position: Estimate | None = None


def self_agreement(votes: Sequence[Votes]) -> SelfAgreement | None:
    """Look at the items of which several samples were taken; ``None`` where there is none.

    All samples have to agree, as sampling stops when the rest can change nothing: pairs that
    agree would be counted more often than pairs that do not.
    """
    several = [one for one in votes if sum(one.counts.values()) > 1]
    unanimous = share(sum(len(one.counts) == 1 for one in several), len(several))
    spread = mean_of([one.spread for one in several])
    if unanimous is None or spread is None:
        return None
    taken = [sum(one.counts.values()) for one in several]
    return SelfAgreement(unanimous=unanimous, spread=spread, fewest=min(taken), most=max(taken))


def reversed_order(
    answers: Sequence[tuple[Answer, Answer]], scores: Sequence[tuple[float, float]]
) -> ReversedOrder | None:
    """Compare verdicts as asked and in reverse: (as asked, reversed) of each item."""
    changed = share(sum(a != b for a, b in answers), len(answers))
    if changed is None:
        return None
    moved = [after - before for before, after in scores]
    return ReversedOrder(changed=changed, shift=mean_of(moved) if moved else None)


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with what should not matter to it; ``error`` is its distance from people's."""

    score: float
    error: float | None
    length: int | None
    position: int


def effects(items: Sequence[Placed]) -> Effects:
    """Correlate scores and errors with length and place."""
    long = [(one, float(one.length)) for one in items if one.length is not None]
    placed = [(one, float(one.position)) for one in items]
    return Effects(
        score_length=_with_score(long),
        error_length=_with_error(long),
        score_position=_with_score(placed),
        error_position=_with_error(placed),
    )


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """Items that a judge scored alike: how many, and what people say of them.

    ``low`` and ``high`` are the least and greatest score, ``judge`` their mean, ``people`` the
    mean score that people gave.
    """

    low: float
    high: float
    judge: float
    people: Estimate


class Reliability(msgspec.Struct, frozen=True, kw_only=True):
    """A bin for each score, and their mean distance from people's, weighted by size."""

    bins: list[Bin]
    expected_error: float


def reliability(scores: Sequence[tuple[float, float]], limit: int = 10) -> Reliability | None:
    """Compare scores with people's, score by score: pairs are (people's, the judge's).

    More than ``limit`` different scores are put in that many bins of equal size.
    ``expected_error`` is the expected calibration error of M. P. Naeini, G. F. Cooper and
    M. Hauskrecht, "Obtaining well calibrated probabilities using Bayesian binning", AAAI (2015):
    the sum over bins of (items / all items) times |mean of judge - mean of people|.
    """
    if not scores:
        return None
    ordered = sorted(((judge, people) for people, judge in scores), key=lambda one: one[0])
    found = [_bin(group) for group in _grouped(ordered, limit)]
    error = sum(one.people.n * abs(one.judge - one.people.value) for one in found) / len(scores)
    return Reliability(bins=found, expected_error=error)


def _grouped(ordered: list[tuple[float, float]], limit: int) -> list[list[tuple[float, float]]]:
    values = sorted({judge for judge, _ in ordered})
    if len(values) <= limit:
        return [[one for one in ordered if one[0] == value] for value in values]
    size = len(ordered)
    cuts = [number * size // limit for number in range(limit + 1)]
    return [ordered[a:b] for a, b in pairwise(cuts) if a < b]


def _bin(group: Sequence[tuple[float, float]]) -> Bin:
    judged, people = [one[0] for one in group], [one[1] for one in group]
    plain = set(people) <= {0.0, 1.0}
    found = share(int(sum(people)), len(people)) if plain else mean_of(people)
    if found is None:
        raise ValueError("a bin has at least one item")
    return Bin(low=judged[0], high=judged[-1], judge=mean(judged) or 0.0, people=found)


def _with_score(pairs: Sequence[tuple[Placed, float]]) -> Estimate | None:
    return rank_correlation([one.score for one, _ in pairs], [x for _, x in pairs])


def _with_error(pairs: Sequence[tuple[Placed, float]]) -> Estimate | None:
    told = [(one.error, x) for one, x in pairs if one.error is not None]
    return rank_correlation([error for error, _ in told], [x for _, x in told])
