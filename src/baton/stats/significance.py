"""Paired tests of whether values of the same cases differ: sign flips, shuffled repeats, passes."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from statistics import NormalDist, fmean

import msgspec

from .intervals import Estimate, mean_interval

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
