"""Figures with the interval they may lie in: shares, means and rank correlations."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from random import Random
from statistics import NormalDist, fmean, stdev
from typing import TypeVar

import msgspec

T = TypeVar("T")

Z95 = NormalDist().inv_cdf(0.975)
RESAMPLES = 1000


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A figure, the 95 % interval around it, and how many observations it rests on."""

    value: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def share(hits: int, n: int) -> Estimate | None:
    """Estimate a share of ``hits`` among ``n``; ``None`` where nothing was counted.

    Wilson's score interval without continuity correction: E. B. Wilson, "Probable inference, the
    law of succession, and statistical inference", JASA 22 (1927); as formula 6.
    """
    if n == 0:
        return None
    p, z2 = hits / n, Z95 * Z95
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    reach = Z95 / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    # At the ends the formula gives 0 and 1 but for rounding.
    low = 0.0 if hits == 0 else middle - reach
    high = 1.0 if hits == n else middle + reach
    return Estimate(value=p, low=low, high=high, n=n)


def needed_for(p: float, half_width: float) -> int:
    """Return how many observations give a share ``p`` an interval of at most this half-width."""
    n = 1
    while _half_width(p, n) > half_width:
        n *= 2
    low = n // 2
    while low + 1 < n:
        middle = (low + n) // 2
        low, n = (middle, n) if _half_width(p, middle) > half_width else (low, middle)
    return n


def bootstrap(
    items: Sequence[T], statistic: Callable[[Sequence[T]], float | None], *, seed: int = 0
) -> Estimate | None:
    """Estimate any statistic by drawing from the items again, ``RESAMPLES`` times.

    The percentile interval of B. Efron, "Bootstrap methods: another look at the jackknife",
    Annals of Statistics 7 (1979). The same items and ``seed`` give the same interval. Draws for
    which the statistic is ``None`` are left out; ``None`` when it is so for the items themselves.
    """
    value = statistic(items)
    if value is None:
        return None
    draw = Random(seed)  # noqa: S311 - nothing is kept secret
    drawn = (statistic(draw.choices(items, k=len(items))) for _ in range(RESAMPLES))
    found = sorted(result for result in drawn if result is not None)
    low, high = quantile(found, 0.025), quantile(found, 0.975)
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=len(items))


def quantile(ordered: Sequence[float], at: float) -> float:
    """Return a quantile of ordered numbers, between neighbours by their distance (R's type 7)."""
    place = at * (len(ordered) - 1)
    left = math.floor(place)
    right = min(left + 1, len(ordered) - 1)
    return ordered[left] + (ordered[right] - ordered[left]) * (place - left)


def mean(numbers: Sequence[float]) -> float | None:
    """Return the mean, ``None`` of nothing."""
    return math.fsum(numbers) / len(numbers) if numbers else None


def mean_of(numbers: Sequence[float], *, seed: int = 0) -> Estimate | None:
    """Estimate a mean by :func:`bootstrap`."""
    return bootstrap(numbers, mean, seed=seed)


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> Estimate | None:
    """Estimate Spearman's rho, -1 to 1; ``None`` for fewer than 5 pairs or where one is constant.

    Ties get their mean rank, and rho is Pearson's r of the ranks (C. Spearman, 1904). The
    interval is Fisher's z with the standard error sqrt((1 + rho^2 / 2) / (n - 3)) of D. G. Bonett
    and T. A. Wright, "Sample size requirements for estimating Pearson, Kendall and Spearman
    correlations", Psychometrika 65 (2000).
    """
    n = len(xs)
    if n < 5:
        return None
    rho = _pearson(_ranks(xs), _ranks(ys))
    if rho is None:
        return None
    if abs(rho) > 1 - 1e-12:
        rho = math.copysign(1.0, rho)
        z = math.copysign(math.atanh(1 - 1 / n**2), rho)
    else:
        z = math.atanh(rho)
    reach = Z95 * math.sqrt((1 + rho * rho / 2) / (n - 3))
    low, high = math.tanh(z - reach), math.tanh(z + reach)
    return Estimate(value=rho, low=min(low, rho), high=max(high, rho), n=n)


def _half_width(p: float, n: int) -> float:
    found = share(round(p * n), n)
    return math.inf if found is None else found.half_width


def _ranks(values: Sequence[float]) -> list[float]:
    """Rank from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in range(start, end + 1):
            ranks[order[place]] = (start + end) / 2 + 1
        start = end + 1
    return ranks


def _pearson(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    mean_x, mean_y = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    dx, dy = [x - mean_x for x in xs], [y - mean_y for y in ys]
    spread = math.sqrt(math.fsum(d * d for d in dx) * math.fsum(d * d for d in dy))
    if not spread:
        return None
    return math.fsum(a * b for a, b in zip(dx, dy, strict=True)) / spread


_RESAMPLED_UP_TO = 2_000
_DRAWS = 1_000_000
_RESAMPLES = 2_000, 4_000
_BYTES = 256
_NORMAL = NormalDist()


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate and what it may as well be, at a confidence (0 to 1).

    ``low`` and ``high`` are ``None`` where the data cannot tell: fewer than two values, or values
    that are all the same, whose spread is unknown. ``n`` is how many values there were.
    """

    estimate: float
    low: float | None
    high: float | None
    confidence: float
    n: int

    def __str__(self) -> str:
        """Write it as ``0.90 [0.79, 0.96]``."""
        if self.low is None or self.high is None:
            return f"{self.estimate:.2f}"
        return f"{self.estimate:.2f} [{self.low:.2f}, {self.high:.2f}]"


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the mean with its BCa bootstrap interval (B. Efron, 1987); the same at every call.

    Beyond 2,000 values it is the normal interval, which the bootstrap comes to.

    Raises:
        ValueError: no values.
    """
    n = len(values)
    if n == 0:
        raise ValueError("no mean of no values")
    mean = fmean(values)
    if n == 1 or min(values) == max(values):
        return Interval(estimate=mean, low=None, high=None, confidence=confidence, n=n)
    if n > _RESAMPLED_UP_TO:
        spread = z_of(confidence) * stdev(values) / math.sqrt(n)
        low, high = mean - spread, mean + spread
    else:
        low, high = _bca(values, mean, confidence)
    return Interval(estimate=mean, low=low, high=high, confidence=confidence, n=n)


def z_of(confidence: float) -> float:
    """Return how many standard errors a two-sided interval reaches to either side.

    Raises:
        ValueError: a confidence that is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence is between 0 and 1, not {confidence}")
    return _NORMAL.inv_cdf((1 + confidence) / 2)


def _resampled_means(values: Sequence[float]) -> list[float]:
    """Return the means of samples drawn with replacement, in ascending order."""
    n = len(values)
    least, most = _RESAMPLES
    count = max(least, min(most, _DRAWS // n))
    draw = random.Random(20250101)  # noqa: S311 - no secret is made of it
    if n > _BYTES:
        return sorted(sum(draw.choices(values, k=n)) / n for _ in range(count))
    value_of = values.__getitem__
    places = _places(draw, n, n * count)
    starts = range(0, n * count, n)
    return sorted(sum(map(value_of, places[at : at + n])) / n for at in starts)


def _places(draw: random.Random, n: int, count: int) -> bytes:
    """Draw places below ``n``, all as likely, a byte each: several times as fast as one by one."""
    fair = _BYTES - _BYTES % n
    table = bytes(byte % n for byte in range(_BYTES))
    unfair = bytes(range(fair, _BYTES))
    found = bytearray()
    while len(found) < count:
        wanted = (count - len(found)) * _BYTES // fair + 1
        found += draw.randbytes(wanted).translate(table, unfair)
    return bytes(found[:count])


def _bca(values: Sequence[float], mean: float, confidence: float) -> tuple[float, float]:
    means = _resampled_means(values)
    below = sum(m < mean for m in means) + sum(m == mean for m in means) / 2
    bias = _NORMAL.inv_cdf(min(max(below / len(means), 1e-6), 1 - 1e-6))
    apart = [mean - value for value in values]
    squares = math.fsum(d**2 for d in apart)
    acceleration = -math.fsum(d**3 for d in apart) / (6 * squares**1.5)
    z = z_of(confidence)
    return (
        _quantile(means, _corrected(bias, acceleration, -z)),
        _quantile(means, _corrected(bias, acceleration, z)),
    )


def _corrected(bias: float, acceleration: float, z: float) -> float:
    moved = bias + z
    return _NORMAL.cdf(bias + moved / (1 - acceleration * moved))


def _quantile(ascending: Sequence[float], share: float) -> float:
    at = share * (len(ascending) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (at - low) * (ascending[high] - ascending[low])
