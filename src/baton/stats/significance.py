"""Compare two evaluations of the same cases, by axis and by agent, and find cases that changed.

The module also contains the paired tests for one axis, and computes how much data they need.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from statistics import NormalDist, fmean
from typing import Literal, NamedTuple

import msgspec

from baton.model.score import TOLERANCE

from .intervals import Estimate, mean_interval
from .sample_size import cases_needed, repeats_needed

_NORMAL = NormalDist()
# With up to 12 cases, all 4,096 combinations of signs are tried. This is exact, and as fast as
# drawing random ones.
_ALL_WAYS = 12
# At least 1,000, so that p can be well below 0.05. More than 5,000 would change a p of 0.05 by less
# than 0.006 (two standard errors).
_FLIPS = 1_000, 5_000
# The limit of cases times draws: a comparison of 2,000 cases takes no longer than one of 400.
_DRAWS = 2_000_000
# For more cases the normal approximation is used: the sum of so many differences is normal.
_FLIPPED_UP_TO = 2_000
# For few cases with repeats: 3 cases have 8 combinations of signs, so that p is at least 1/8
# whatever the repeats are. Shuffling the repeats within each case uses them. With more cases the
# means of cases are enough, and shuffling takes longer.
_SHUFFLED_UP_TO = 12
_SHUFFLES = 2_000
# The search for the worst rate takes time with the square of the number of cases. With more cases
# the plain exact p is not too large anymore.
_UNCONDITIONAL_UP_TO = 100
# A variance of 100 is a standard deviation of 10 passes: the error of the normal approximation is
# then much smaller than that of the data.
_EXACT_UP_TO = 100
# The tails for n coins are sums of integers with n bits, which is slow for more coins.
_COINS_UP_TO = 2_000
# People act on "fewer cases pass", and a correction for 20 other axes must not hide it. So this
# axis gets 0.04 of 0.05, and the others share 0.01. Once a change of this axis is proven, the
# others share 0.05 (the fallback procedure of B. L. Wiens, 2003).
_PRIMARY_SHARE = 0.8

PASSED = "cases passed"
"""The primary axis of every evaluation: 1 for a case that passed, 0 for one that failed."""

Change = Literal["worse", "better", "same", "unclear"]


class Axis(NamedTuple):
    """A quantity to compare: an evaluator, for all agents or for dispatches to one agent."""

    name: str
    agent: str | None = None

    def __str__(self) -> str:
        return self.name if self.agent is None else f"{self.name} of {self.agent}"


CASES_PASSED = Axis(PASSED)


class CaseValues(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a case in one evaluation: for each axis, one value per repeat.

    ``errors`` counts the repeats that could not be evaluated; they have no values.
    """

    values: Mapping[Axis, Sequence[float]] = msgspec.field(default_factory=dict)
    errors: int = 0


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One axis of two evaluations, over the cases that have a value in both.

    ``before`` and ``after`` are means over cases, which have equal weight however often they were
    repeated; ``difference`` is ``after - before`` with its interval. ``p`` is the probability of a
    difference at least as large in the same direction, if nothing changed; 1 if there is no
    difference. ``test`` is ``exact_passes`` for values that are all 0 or 1
    (:func:`drop_of_passes`), ``shuffled_repeats`` for other values of up to 12 repeated cases
    (:func:`shuffle_repeats`), and otherwise ``sign_flip``, whose ``p`` is ``None`` for fewer than
    two cases.
    """

    before: float
    after: float
    difference: Estimate
    p: float | None
    test: str


class AxisChange(msgspec.Struct, frozen=True, kw_only=True):
    """One axis: its difference over the shared cases, and the conclusion.

    ``p`` is corrected for the number of axes, see :func:`compare_all`. For an ``unclear`` axis,
    ``cases_needed`` and ``repeats_needed`` are how many would decide it; ``None`` if unknown.
    """

    axis: Axis
    difference: Difference
    p: float | None
    change: Change
    cases_needed: int | None = None
    repeats_needed: int | None = None


class CaseChange(msgspec.Struct, frozen=True, kw_only=True):
    """A case that got worse: the axis with the largest drop, and the means before and after."""

    case: str
    axis: Axis
    before: float
    after: float


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All axes, the cases that got worse (the worst first), and cases that cannot be compared.

    ``broken`` are cases that passed in every repeat before and fail in every repeat now.
    ``only_before`` and ``only_after`` are cases that are missing in the other evaluation.
    ``errors`` are cases for which one of the two could not evaluate some repeats, as ``(case,
    before, after)``.
    """

    cases: int
    axes: list[AxisChange]
    worse: list[CaseChange]
    broken: list[str]
    only_before: list[str]
    only_after: list[str]
    errors: list[tuple[str, int, int]]
    confidence: float
    min_effect: float

    @property
    def regressions(self) -> list[AxisChange]:
        """The axes that got worse."""
        return [axis for axis in self.axes if axis.change == "worse"]

    @property
    def unclear(self) -> list[AxisChange]:
        """The axes on which more data would be needed."""
        return [axis for axis in self.axes if axis.change == "unclear"]


def compare_all(
    before: Mapping[str, CaseValues],
    after: Mapping[str, CaseValues],
    *,
    confidence: float = 0.95,
    min_effect: float = 0.0,
    lower_is_better: frozenset[str] = frozenset(),
    primary: Axis = CASES_PASSED,
) -> Comparison:
    """Compare two evaluations; each maps the ids of cases to their values.

    An axis is ``worse`` (``better``) if its difference is significant and at least ``min_effect``:
    if nothing changed, the probability that any axis is called worse is at most ``1 -
    confidence``. It is the ``same`` if its interval excludes a drop of more than ``min_effect``,
    and otherwise ``unclear``. Cases without a value in both evaluations are ignored.

    The ``primary`` axis is tested first with 80 % of ``1 - confidence``, so that many other axes
    cannot hide that cases break, or that a change reached its goal. The others share the rest
    by S. Holm's correction, or all of it if the primary axis changed (the fallback procedure:
    B. L. Wiens, "A fixed sequence Bonferroni procedure for testing multiple endpoints",
    Pharmaceutical Statistics 2, 2003), or if there is no primary axis. ``p`` of an axis is divided
    by its share, so that it can always be compared with ``1 - confidence``.
    """
    shared = [case for case in before if case in after]
    whole = [case for case in shared if before[case].values and after[case].values]
    # The axes of both: first that of all cases, then evaluators, then agents.
    sides = [{axis for case in whole for axis in side[case].values} for side in (before, after)]
    axes = sorted(
        sides[0] & sides[1],
        key=lambda axis: (axis.name != PASSED, axis.agent is not None, axis.name, axis.agent or ""),
    )
    pairs = {axis: _of(axis, whole, before, after) for axis in axes}
    compared = {axis: compare_pairs(*pair, confidence) for axis, pair in pairs.items()}
    made = {axis: difference for axis, difference in compared.items() if difference is not None}
    known = {axis: one.p for axis, one in made.items() if one.p is not None}
    ps = _corrected(known, confidence, primary)
    old, new = pairs.get(Axis(PASSED), ({}, {}))
    return Comparison(
        cases=len(whole),
        axes=[
            _judged(
                axis,
                one,
                ps.get(axis),
                pairs[axis],
                _Rule(confidence, min_effect, -1 if axis.name in lower_is_better else 1),
            )
            for axis, one in made.items()
        ],
        worse=_worse(whole, before, after, lower_is_better),
        broken=[case for case in old if min(old[case]) == 1 and max(new[case]) == 0],
        only_before=[case for case in before if case not in after],
        only_after=[case for case in after if case not in before],
        errors=[
            (case, before[case].errors, after[case].errors)
            for case in shared
            if before[case].errors or after[case].errors
        ],
        confidence=confidence,
        min_effect=min_effect,
    )


def _corrected(ps: Mapping[Axis, float], confidence: float, primary: Axis) -> dict[Axis, float]:
    """Return corrected p-values to compare with ``1 - confidence``, see :func:`compare_all`."""
    others = {str(axis): p for axis, p in ps.items() if axis != primary}
    if primary not in ps or not others:
        own, rest = 1.0, 1.0
    else:
        own = _PRIMARY_SHARE
        rest = 1.0 if ps[primary] / own <= 1 - confidence else 1 - own
    of_others = holm(others)
    return {
        axis: min(1.0, p / own if axis == primary else of_others[str(axis)] / rest)
        for axis, p in ps.items()
    }


class _Rule(NamedTuple):
    confidence: float
    min_effect: float
    sign: int


Values = dict[str, Sequence[float]]


def _of(
    axis: Axis,
    cases: Sequence[str],
    before: Mapping[str, CaseValues],
    after: Mapping[str, CaseValues],
) -> tuple[Values, Values]:
    old = {case: before[case].values.get(axis, ()) for case in cases}
    new = {case: after[case].values.get(axis, ()) for case in cases}
    both = [case for case in cases if old[case] and new[case]]
    return {case: old[case] for case in both}, {case: new[case] for case in both}


def _judged(
    axis: Axis, one: Difference, p: float | None, pair: tuple[Values, Values], rule: _Rule
) -> AxisChange:
    change = _change(one, p, rule)
    if change != "unclear":
        return AxisChange(axis=axis, difference=one, p=p, change=change)
    old, new = pair
    effect = max(rule.min_effect, abs(one.difference.value))
    differences = [fmean(new[case]) - fmean(old[case]) for case in old]
    return AxisChange(
        axis=axis,
        difference=one,
        p=p,
        change=change,
        cases_needed=cases_needed(differences, effect, rule.confidence),
        repeats_needed=repeats_needed(
            list(old.values()), list(new.values()), effect, rule.confidence
        ),
    )


def _change(one: Difference, p: float | None, rule: _Rule) -> Change:
    moved = one.difference.value * rule.sign
    real = p is not None and p <= 1 - rule.confidence
    # One case of 20 is a drop of exactly 0.05: the rounding of means must not decide.
    least = max(rule.min_effect - TOLERANCE, 1e-12)
    if real and moved <= -least:
        return "worse"
    if real and moved >= least:
        return "better"
    low, high = one.difference.low, one.difference.high
    if low is None or high is None:
        # All differences are equal: no case changed, or there is only one case.
        return "same" if moved == 0 and one.difference.n > 1 else "unclear"
    floor = low if rule.sign > 0 else -high
    return "same" if floor >= -rule.min_effect else "unclear"


def _worse(
    cases: Sequence[str],
    before: Mapping[str, CaseValues],
    after: Mapping[str, CaseValues],
    lower_is_better: frozenset[str],
) -> list[CaseChange]:
    changes = []
    for case in cases:
        old, new = before[case].values, after[case].values
        drops = [
            CaseChange(case=case, axis=axis, before=fmean(old[axis]), after=fmean(new[axis]))
            for axis in old
            if axis.agent is None and old[axis] and new.get(axis)
        ]
        drops = [d for d in drops if _drop(d, lower_is_better) > 1e-12]
        if drops:
            changes.append(
                max(drops, key=lambda d: (d.axis.name != PASSED, _drop(d, lower_is_better)))
            )
    changes.sort(key=lambda d: (-_drop(d, lower_is_better), d.case))
    return changes


def _drop(change: CaseChange, lower_is_better: frozenset[str]) -> float:
    drop = change.before - change.after
    return -drop if change.axis.name in lower_is_better else drop


def compare_pairs(
    before: Mapping[str, Sequence[float]],
    after: Mapping[str, Sequence[float]],
    confidence: float = 0.95,
) -> Difference | None:
    """Compare the values of each case in two evaluations; ``None`` if they share no case.

    The interval is the bootstrap interval of the mean difference of the cases, which is too narrow
    for few cases. ``p`` comes from a separate test, which is exact for few cases and uses their
    repeats; :class:`Difference` names the tests.
    """
    shared = [case for case in before if before[case] and after.get(case)]
    if not shared:
        return None
    old, new = [before[case] for case in shared], [after[case] for case in shared]
    means = [fmean(values) for values in old], [fmean(values) for values in new]
    differences = [b - a for a, b in zip(*means, strict=True)]
    interval = mean_interval(differences, confidence)
    fell = interval.value < 0
    lower, higher = (new, old) if fell else (old, new)
    p: float | None
    if all(value in (0, 1) for values in (*old, *new) for value in values):
        test = "exact_passes"
        p = drop_of_passes(
            (int(sum(a)), len(a), int(sum(b)), len(b)) for a, b in zip(higher, lower, strict=True)
        )
    elif len(shared) <= _SHUFFLED_UP_TO and any(len(each) > 1 for each in (*old, *new)):
        test, p = "shuffled_repeats", shuffle_repeats(higher, lower)
    else:
        # Both directions are equally likely: half of the two-sided p is the one-sided p.
        test, p = "sign_flip", sign_flip(differences) / 2 if len(shared) > 1 else None
    # Without any difference there is no evidence, though a one-sided test of 0 gives about 0.5.
    if p is not None and interval.value == 0:
        p = 1.0
    return Difference(
        before=fmean(means[0]), after=fmean(means[1]), difference=interval, p=p, test=test
    )


Passes = tuple[int, int, int, int]
"""One case: passes before, runs before, passes after, runs after."""


def drop_of_passes(cases: Iterable[Passes]) -> float:
    """Return the one-sided p of a drop in passes: exact, paired by case, with all repeats.

    If nothing changed, a case passes with the same probability before and after, and each of its
    runs is equally likely to be before or after. If ``s`` of its ``n`` runs before and ``m`` runs
    after passed, the number ``a`` of passes after is hypergeometric,
    ``C(m, a) C(n, s - a) / C(n + m, s)``. p is the probability that the sum over all cases is at
    most the observed one (M. W. Birch, "The detection of partial association, I", JRSS B 26, 1964;
    for single runs this is McNemar's exact test, 1947). A case that passed 5 of 5 and now fails 5
    of 5 alone gives 1/252. If the variance of the sum exceeds 100, the normal approximation with
    continuity correction is used.

    For single runs of up to 100 cases this p is too large: 4 passes of 4 and then 0 of 4 give 1/16.
    So it is only used as a statistic, and the result is the probability of such a low p if nothing
    changed, maximised over all pass rates of the cases (R. D. Boschloo, Statistica Neerlandica 24,
    1970; for pairs S. Suissa and J. J. Shuster, "The 2 x 2 matched-pairs trial", Biometrics 47,
    1991). A case with independent runs of pass rate ``q`` differs between before and after with
    the probability ``2 q (1 - q)``, at most 1/2. The probability of a low p is linear in this
    probability of each case, so that it is highest if some cases are fair coins and the others
    always give the same result. The result is ``max over k <= n of sum_d C(k, d) / 2^k * P_d``,
    where ``n`` is the number of cases and ``P_d`` the probability of such a low p if ``d`` cases
    differ. 4 of 4 and then 0 of 4 give ``4^-4``, 3 of 3 give 1/64.
    """
    listed = list(cases)
    if any(n != 1 or m != 1 for _, n, _, m in listed):
        return _low_sum(listed)
    worse = sum(a > b for a, _, b, _ in listed)
    better = sum(b > a for a, _, b, _ in listed)
    if worse + better > _COINS_UP_TO:
        return _low_sum(listed)
    p = _coins(worse + better)[worse]
    if len(listed) > _UNCONDITIONAL_UP_TO:
        return p
    limit = p * (1 + 1e-9)
    as_low = [
        next((tail for tail in _coins(d) if tail <= limit), 0.0) for d in range(len(listed) + 1)
    ]
    return max(
        math.ldexp(math.fsum(math.comb(k, d) * as_low[d] for d in range(k + 1)), -k)
        for k in range(1, len(listed) + 1)
    )


@cache
def _coins(count: int) -> tuple[float, ...]:
    """Return the probabilities of at least 0, 1, ... heads with ``count`` fair coins."""
    tails = [0]
    for heads in range(count, -1, -1):
        tails.append(tails[-1] + math.comb(count, heads))
    return tuple(tail / 2**count for tail in reversed(tails[1:]))


def _low_sum(cases: Iterable[Passes]) -> float:
    """Return the probability of so few passes after, given the number of passes of each case."""
    seen = low = 0
    mean = variance_ = 0.0
    open_ = []
    for a, n, b, m in cases:
        s, runs = a + b, n + m
        seen += b
        if s in (0, runs):
            low += b
            continue
        open_.append((n, m, s))
        mean += s * m / runs
        variance_ += s * m * n * (runs - s) / (runs * runs * (runs - 1))
    if not open_:
        return 1.0
    if variance_ > _EXACT_UP_TO:
        return math.erfc((mean - seen + low - 0.5) / math.sqrt(2 * variance_)) / 2
    sums = [1.0]
    for n, m, s in open_:
        least, most = max(0, s - n), min(m, s)
        low += least
        ways = [
            math.comb(m, a) * math.comb(n, s - a) / math.comb(n + m, s)
            for a in range(least, most + 1)
        ]
        longer = [0.0] * (len(sums) + len(ways) - 1)
        for shift, way in enumerate(ways):
            for place, chance in enumerate(sums, shift):
                longer[place] += way * chance
        sums = longer
    return min(1.0, math.fsum(sums[: seen - low + 1]))


def shuffle_repeats(higher: Sequence[Sequence[float]], lower: Sequence[Sequence[float]]) -> float:
    """Return the one-sided p of values that fell from ``higher`` to ``lower``, case by case.

    If nothing changed, all orders of the values of a case are equally likely: p is the share of
    2,000 random orders within cases whose mean difference is at least as large (the stratified
    permutation test: R. A. Fisher, 1935). For few cases with repeats, this test is more powerful
    than one that only uses the means of cases. All cases have the same weight.
    """
    draw = random.Random(20250101)  # noqa: S311 - no secret is made of it
    far = sum(fmean(a) - fmean(b) for a, b in zip(higher, lower, strict=True)) - 1e-12
    totals = [0.0] * _SHUFFLES
    for a, b in zip(higher, lower, strict=True):
        pool, whole = [*a, *b], math.fsum((*a, *b))
        for place in range(_SHUFFLES):
            first = sum(draw.sample(pool, len(a)))
            totals[place] += first / len(a) - (whole - first) / len(b)
    return (sum(total >= far for total in totals) + 1) / (_SHUFFLES + 1)


def sign_flip(differences: Sequence[float]) -> float:
    """Return the two-sided p of the paired permutation test (R. A. Fisher, 1935).

    If nothing changed, both signs of each case's difference are equally likely: p is the share of
    combinations of signs whose mean is at least as far from 0. Up to 12 cases that differ, all
    combinations are tried; up to 2,000 cases, 1,000 to 5,000 random ones; beyond, the normal
    approximation is used.
    """
    moved = [abs(d) for d in differences if d]
    n = len(moved)
    if n == 0:
        return 1.0
    far = abs(math.fsum(differences)) * (1 - 1e-12)
    if n > _FLIPPED_UP_TO:
        return 2 * _NORMAL.cdf(-far / math.sqrt(math.fsum(d * d for d in moved)))
    # For each group of eight values, their sum with each of the 256 combinations of signs.
    eights = [moved[at : at + 8] for at in range(0, len(moved), 8)]
    sums = [
        [
            math.fsum(v if way >> bit & 1 else -v for bit, v in enumerate(eight))
            for way in range(256)
        ]
        for eight in eights
    ]
    if n <= _ALL_WAYS:
        ways: Iterable[bytes] = (way.to_bytes(len(sums), "little") for way in range(2**n))
        reached = [_reaches(sums, way, far) for way in ways]
        return reached.count(True) / len(reached)
    draw = random.Random(20250101).randbytes  # noqa: S311 - no secret is made of it
    count = max(_FLIPS[0], min(_FLIPS[1], _DRAWS // n))
    # One group after the other, for all draws at once: faster than a Python loop over draws.
    columns = [map(eight.__getitem__, draw(count)) for eight in sums]
    beyond = [abs(way) >= far for way in map(sum, zip(*columns, strict=True))].count(True)
    return (beyond + 1) / (count + 1)


def _reaches(sums: Sequence[Sequence[float]], signs: bytes, far: float) -> bool:
    return abs(sum(eight[way] for eight, way in zip(sums, signs, strict=True))) >= far


def holm(ps: Mapping[str, float]) -> dict[str, float]:
    """Return p-values corrected for testing many axes at once (S. Holm, 1979)."""
    corrected: dict[str, float] = {}
    least = 0.0
    for rank, (axis, p) in enumerate(sorted(ps.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, p * (len(ps) - rank)))
        corrected[axis] = least
    return {axis: corrected[axis] for axis in ps}
