"""Whether two evaluations of the same cases differ: paired tests, and how much data they need."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist, fmean, pvariance, stdev, variance

import msgspec

from .intervals import Interval, mean_interval

_NORMAL = NormalDist()
_POWER = 0.8
_ALL_WAYS = 12
_FLIPS = 1_000, 5_000
_DRAWS = 2_000_000
_FLIPPED_UP_TO = 2_000


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One axis of two evaluations, over the cases that have a value in both.

    ``before`` and ``after`` are means over cases, each weighing the same however often it was
    repeated; ``difference`` is ``after - before`` with its interval. ``p`` is the chance of a
    difference at least as large, to either side, where nothing changed; ``None`` for fewer than
    two cases. ``test`` is ``mcnemar`` for single passes and ``sign_flip`` for all else.
    """

    before: float
    after: float
    difference: Interval
    p: float | None
    test: str


def compare(
    before: Mapping[str, Sequence[float]],
    after: Mapping[str, Sequence[float]],
    confidence: float = 0.95,
) -> Difference | None:
    """Compare the values of each case in two evaluations; ``None`` where they share no case.

    Values that are all 0 or 1, one a case, are passes: McNemar's exact test (Q. McNemar, 1947).
    All else is compared by the differences of the cases' means: their interval by the bootstrap,
    p by flipping their signs, which is exact where the bootstrap of few cases is too sure.
    """
    shared = [case for case in before if before[case] and after.get(case)]
    if not shared:
        return None
    old, new = [before[case] for case in shared], [after[case] for case in shared]
    means = [fmean(values) for values in old], [fmean(values) for values in new]
    differences = [b - a for a, b in zip(*means, strict=True)]
    single = all(len(values) == 1 and values[0] in (0, 1) for values in (*old, *new))
    if single:
        p: float | None = mcnemar(differences.count(1), differences.count(-1))
    else:
        p = sign_flip(differences) if len(shared) > 1 else None
    return Difference(
        before=fmean(means[0]),
        after=fmean(means[1]),
        difference=mean_interval(differences, confidence),
        p=p,
        test="mcnemar" if single else "sign_flip",
    )


def mcnemar(better: int, worse: int) -> float:
    """Return the two-sided p of McNemar's exact test: a fair coin over the cases that changed."""
    changed = better + worse
    tail = sum(math.comb(changed, i) for i in range(min(better, worse) + 1))
    return float(min(1.0, 2 * tail / 2**changed))


def sign_flip(differences: Sequence[float]) -> float:
    """Return the two-sided p of the paired permutation test (R. A. Fisher, 1935).

    Where nothing changed, each case's difference may as well have had the other sign: p is the
    share of ways to choose the signs that give a mean as far from 0. All ways up to 12 cases that
    differ, 1,000 to 5,000 of them beyond, and the normal limit beyond 2,000.
    """
    moved = [abs(d) for d in differences if d]
    n = len(moved)
    if n == 0:
        return 1.0
    far = abs(math.fsum(differences)) * (1 - 1e-12)
    if n > _FLIPPED_UP_TO:
        return 2 * _NORMAL.cdf(-far / math.sqrt(math.fsum(d * d for d in moved)))
    sums = _sums_by_byte(moved)
    if n <= _ALL_WAYS:
        ways: Iterable[bytes] = (way.to_bytes(len(sums), "little") for way in range(2**n))
        reached = [_reaches(sums, way, far) for way in ways]
        return reached.count(True) / len(reached)
    draw = random.Random(20250101).randbytes  # noqa: S311 - no secret is made of it
    count = max(_FLIPS[0], min(_FLIPS[1], _DRAWS // n))
    # One eight of values after the other, for all ways at once: that stays out of Python's loop.
    columns = [map(eight.__getitem__, draw(count)) for eight in sums]
    beyond = [abs(way) >= far for way in map(sum, zip(*columns, strict=True))].count(True)
    return (beyond + 1) / (count + 1)


def _sums_by_byte(values: Sequence[float]) -> list[list[float]]:
    """Return, for every eight values, their sum under each of the 256 choices of signs."""
    eights = [values[at : at + 8] for at in range(0, len(values), 8)]
    return [
        [
            math.fsum(v if way >> bit & 1 else -v for bit, v in enumerate(eight))
            for way in range(256)
        ]
        for eight in eights
    ]


def _reaches(sums: Sequence[Sequence[float]], signs: bytes, far: float) -> bool:
    return abs(sum(eight[way] for eight, way in zip(sums, signs, strict=True))) >= far


def holm(ps: Mapping[str, float]) -> dict[str, float]:
    """Return p-values corrected for looking at many axes at once (S. Holm, 1979)."""
    corrected: dict[str, float] = {}
    least = 0.0
    for rank, (axis, p) in enumerate(sorted(ps.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, p * (len(ps) - rank)))
        corrected[axis] = least
    return {axis: corrected[axis] for axis in ps}


def cases_needed(
    differences: Sequence[float], effect: float, confidence: float = 0.95, power: float = _POWER
) -> int | None:
    """Return how many cases would show a true difference of ``effect``, 4 times out of 5.

    ``n = ((z(confidence) + z(power)) * s / effect)^2``, two-sided, with ``s`` the standard
    deviation of the differences so far; ``None`` where it is not known: fewer than two, or all
    the same.
    """
    if len(differences) < 2 or effect == 0:
        return None
    spread = stdev(differences)
    return math.ceil((_reach(confidence, power) * spread / effect) ** 2) if spread else None


def repeats_needed(
    before: Sequence[Sequence[float]],
    after: Sequence[Sequence[float]],
    effect: float,
    confidence: float = 0.95,
    power: float = _POWER,
) -> int | None:
    """Return how many repeats of the same cases would show a difference of ``effect``.

    The variance of a case's difference is what repeats average out, divided by their number, and
    what stays. ``None`` where no number of repeats would do, or cases were not repeated.
    """
    if effect == 0 or any(len(values) < 2 for values in (*before, *after)):
        return None
    within = fmean(variance(a) + variance(b) for a, b in zip(before, after, strict=True))
    seen = pvariance([fmean(b) - fmean(a) for a, b in zip(before, after, strict=True)])
    noise = fmean(
        variance(a) / len(a) + variance(b) / len(b) for a, b in zip(before, after, strict=True)
    )
    between = max(0.0, seen - noise)
    allowed = len(before) * (effect / _reach(confidence, power)) ** 2 - between
    return max(1, math.ceil(within / allowed)) if allowed > 0 and within > 0 else None


def _reach(confidence: float, power: float) -> float:
    return _NORMAL.inv_cdf((1 + confidence) / 2) + _NORMAL.inv_cdf(power)
