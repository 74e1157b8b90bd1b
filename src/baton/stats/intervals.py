"""Estimates with their intervals: shares, means and rank correlations."""

from __future__ import annotations

import math
import random
import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from statistics import NormalDist, fmean, stdev

import msgspec

_NORMAL = NormalDist()
Z95 = _NORMAL.inv_cdf(0.975)
# Up to 2,000 values are resampled. For more values the normal interval is used: their mean is
# normal enough, and it is faster, as a report has an interval for each of its figures.
_RESAMPLED_UP_TO = 2_000
# About a million draws: 4,000 samples of up to 250 values, fewer for more values, at least 2,000.
# The ends of a 95 % interval are the 50th of 2,000 samples from either side. With fewer samples
# they would differ too much between two data sets that are nearly equal.
_DRAWS = 1_000_000
_RESAMPLES = 2_000, 4_000
# Random indices come from bytes (up to 256 values) or pairs of bytes (up to 65,536 values), because
# one call of `random` per draw would take most of the time.
_BYTES = 256
_PAIRS = 65_536


class Estimate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A figure with its confidence interval; ``confidence`` is between 0 and 1.

    ``low`` and ``high`` are ``None`` if the spread cannot be estimated: with fewer than two values,
    or if all values are equal. ``n`` is the number of observations, or 0 if it was not stored.
    """

    value: float
    low: float | None
    high: float | None
    n: int = 0
    confidence: float = 0.95

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def __str__(self) -> str:
        """Write it as ``0.90 [0.79, 0.96]``."""
        if self.low is None or self.high is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def wilson(p: float, n: float) -> tuple[float, float]:
    """Return the 95 % score interval of a share ``p`` of ``n``; neither has to be an integer.

    ``(p + z^2/2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2/n)``, without continuity
    correction: E. B. Wilson, "Probable inference, the law of succession, and statistical
    inference", JASA 22 (1927).
    """
    z2 = Z95 * Z95
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    # Through rounding, p may be a little above 1.
    reach = Z95 / (1 + z2 / n) * math.sqrt(max(p * (1 - p), 0.0) / n + z2 / (4 * n * n))
    return middle - reach, middle + reach


def share(hits: int, n: int) -> Estimate | None:
    """Estimate the share ``hits / n`` with :func:`wilson`; ``None`` if ``n`` is 0."""
    if n == 0:
        return None
    low, high = wilson(hits / n, n)
    # For 0 or n hits the formula gives 0 or 1, apart from rounding.
    return Estimate(
        value=hits / n, low=0.0 if hits == 0 else low, high=1.0 if hits == n else high, n=n
    )


def needed_for(p: float, half_width: float) -> int:
    """Return the number of observations for an interval of ``p`` of at most this half-width."""

    def is_wider(n: int) -> bool:
        estimate = share(round(p * n), n)
        reach = estimate.half_width if estimate is not None else None
        return reach is None or reach > half_width

    n = 1
    while is_wider(n):
        n *= 2
    low = n // 2
    while low + 1 < n:
        middle = (low + n) // 2
        low, n = (middle, n) if is_wider(middle) else (low, middle)
    return n


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Return the mean with its BCa bootstrap interval; equal values give the same interval.

    Bias-corrected and accelerated: B. Efron, "Better bootstrap confidence intervals", JASA 82
    (1987). For more than 2,000 values this is the normal interval, which is nearly the same.

    Raises:
        ValueError: no values.
    """
    n = len(values)
    if n == 0:
        raise ValueError("a mean needs at least one value")
    mean = fmean(values)
    # Five values of 1.0 have no spread: the bootstrap would give [1.0, 1.0], as if the next value
    # had to be 1.0 as well.
    if n == 1 or min(values) == max(values):
        return Estimate(value=mean, low=None, high=None, confidence=confidence, n=n)
    if n > _RESAMPLED_UP_TO:
        spread = z_of(confidence) * stdev(values) / math.sqrt(n)
        low, high = mean - spread, mean + spread
    else:
        low, high = _bca(values, mean, confidence)
    return Estimate(value=mean, low=low, high=high, confidence=confidence, n=n)


def z_of(confidence: float) -> float:
    """Return the half-width of a two-sided interval in standard errors.

    Raises:
        ValueError: the confidence is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence is between 0 and 1, not {confidence}")
    return _NORMAL.inv_cdf((1 + confidence) / 2)


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> Estimate | None:
    """Estimate Spearman's rho, -1 to 1; ``None`` for fewer than 5 pairs or constant values.

    Ties get their mean rank, and rho is Pearson's r of the ranks (C. Spearman, 1904). The
    interval uses Fisher's z with the standard error sqrt((1 + rho^2 / 2) / (n - 3)) of D. G. Bonett
    and T. A. Wright, "Sample size requirements for estimating Pearson, Kendall and Spearman
    correlations", Psychometrika 65 (2000).
    """
    n = len(xs)
    # Fisher's z divides by n - 3, and 4 pairs have a perfect order by chance once in 24.
    if n < 5:
        return None
    rho = _pearson(_ranks(xs), _ranks(ys))
    if rho is None:
        return None
    if abs(rho) > 1 - 1e-12:
        rho = math.copysign(1.0, rho)
        # Fisher's z is infinite at 1 and -1. So rho is limited to about the largest value below 1
        # that n pairs can have, and a perfect order of 6 pairs still has a wide interval.
        z = math.copysign(math.atanh(1 - 1 / n**2), rho)
    else:
        z = math.atanh(rho)
    reach = Z95 * math.sqrt((1 + rho * rho / 2) / (n - 3))
    low, high = math.tanh(z - reach), math.tanh(z + reach)
    return Estimate(value=rho, low=min(low, rho), high=max(high, rho), n=n)


def quantile(ascending: Sequence[float], share: float) -> float:
    """Return a quantile of ascending numbers, with linear interpolation between neighbours.

    R's type 7: R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American
    Statistician 50 (1996).
    """
    at = share * (len(ascending) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (at - low) * (ascending[high] - ascending[low])


def _ranks(values: Sequence[float]) -> list[float]:
    """Return ranks from 1; equal values get the mean of their ranks."""
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


def _resampled_means(values: Sequence[float]) -> list[float]:
    """Return the means of samples drawn with replacement, in ascending order."""
    n = len(values)
    least, most = _RESAMPLES
    count = max(least, min(most, _DRAWS // n))
    # Always the same seed: two reports of the same evaluation have to be equal byte for byte.
    draw = random.Random(20250101)  # noqa: S311 - not used for secrets
    if n > _BYTES:
        drawn = chain.from_iterable(_drawn(draw, values))
        return sorted(sum(islice(drawn, n)) / n for _ in range(count))
    value_of = values.__getitem__
    places = _places(draw, n, n * count)
    starts = range(0, n * count, n)
    return sorted(sum(map(value_of, places[at : at + n])) / n for at in starts)


def _places(draw: random.Random, n: int, count: int) -> bytes:
    """Draw indices below ``n``, equally likely, as bytes: much faster than single draws."""
    # Bytes from `fair` on are left out, because low indices would be drawn more often: with
    # n = 100, indices 0 to 55 would have three bytes each and the others two.
    fair = _BYTES - _BYTES % n
    table = bytes(byte % n for byte in range(_BYTES))
    unfair = bytes(range(fair, _BYTES))
    places = bytearray()
    while len(places) < count:
        wanted = (count - len(places)) * _BYTES // fair + 1
        places += draw.randbytes(wanted).translate(table, unfair)
    return bytes(places[:count])


def _drawn(draw: random.Random, values: Sequence[float]) -> Iterator[Iterator[float]]:
    """Draw from up to 65,536 values, equally likely, with two bytes each: fast."""
    fair = _PAIRS - _PAIRS % len(values)
    table = [*values] * (fair // len(values))
    while True:
        numbers = array("H", draw.randbytes(_PAIRS))
        if sys.byteorder == "big":  # to get the same figures on every machine
            numbers.byteswap()
        yield map(table.__getitem__, filter(fair.__gt__, numbers))


def _bca(values: Sequence[float], mean: float, confidence: float) -> tuple[float, float]:
    means = _resampled_means(values)
    below = sum(m < mean for m in means) + sum(m == mean for m in means) / 2
    # If all samples were on one side of the mean, the bias would be infinite.
    bias = _NORMAL.inv_cdf(min(max(below / len(means), 1e-6), 1 - 1e-6))
    apart = [mean - value for value in values]
    squares = math.fsum(d**2 for d in apart)
    acceleration = -math.fsum(d**3 for d in apart) / (6 * squares**1.5)
    z = z_of(confidence)
    return (
        quantile(means, _corrected(bias, acceleration, -z)),
        quantile(means, _corrected(bias, acceleration, z)),
    )


def _corrected(bias: float, acceleration: float, z: float) -> float:
    moved = bias + z
    return _NORMAL.cdf(bias + moved / (1 - acceleration * moved))


def binomial_at_most(k: int, n: int, p: float) -> float:
    """Return the probability of at most ``k`` successes in ``n`` trials with probability ``p``."""
    if k < 0:
        return 0.0
    if k >= n or p <= 0:
        return 1.0
    if p >= 1:
        return 0.0
    logs = (
        math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
        + i * math.log(p) + (n - i) * math.log1p(-p)
        for i in range(k + 1)
    )  # fmt: skip
    return min(1.0, math.fsum(math.exp(each) for each in logs))


def is_above(k: int, n: int, share: float) -> bool:
    """Return whether ``k / n`` is significantly above ``share`` (one-sided, 5 %)."""
    return 0 < share < 1 and k > 0 and binomial_at_most(n - k, n, 1 - share) <= 0.05
