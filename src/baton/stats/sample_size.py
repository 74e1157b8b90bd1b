"""How many more cases or repeats would settle a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, pvariance, stdev, variance

_NORMAL = NormalDist()
# The probability of finding a real difference: the usual value in planning (J. Cohen, 1988).
_POWER = 0.8


def cases_needed(
    differences: Sequence[float], effect: float, confidence: float = 0.95, power: float = _POWER
) -> int | None:
    """Return how many cases would prove a true difference of ``effect``, 4 times out of 5.

    ``n = ((z(confidence) + z(power)) * s / effect)^2``, two-sided. ``s`` is the standard deviation
    of the differences so far. ``None`` if there are fewer than two differences or all are equal.
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
    """Return how many repeats of the same cases would prove a difference of ``effect``.

    The variance of a case's difference has two parts: the variance between repeats, which is
    divided by their number, and the rest, which repeats cannot reduce. ``None`` if no number of
    repeats is enough, or cases were not repeated.
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
