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
# Up to 2,000 values are resampled, beyond that the normal interval is used: the mean of so many
# values is normal for all that matters, and a report has an interval for each of its figures.
_RESAMPLED_UP_TO = 2_000
# About a million draws: 4,000 samples of up to 250 values, fewer of more, and 2,000 at least. The
# ends of a 95 % interval are at the 50th value from either side of 2,000, so fewer samples would
# make them jump from one data set to a nearly equal one.
_DRAWS = 1_000_000
_RESAMPLES = 2_000, 4_000
# Random places are taken from bytes (up to 256 values) or pairs of bytes (up to 65,536 numbers),
# since one call of `random` for each draw takes most of the time.
_BYTES = 256
_PAIRS = 65_536


class Estimate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A figure with its confidence interval, at a confidence from 0 to 1.

    ``low`` and ``high`` are ``None`` if the spread cannot be estimated: with fewer than two values,
    or when all values are equal. ``n`` is the number of observations, or 0 where it was not stored.
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
    """Return the 95 % score interval of a share ``p`` of ``n``, which need not be whole numbers.

    ``(p + z^2/2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2/n)``, without continuity
    correction: E. B. Wilson, "Probable inference, the law of succession, and statistical
    inference", JASA 22 (1927).
    """
    z2 = Z95 * Z95
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    # Rounding may take p a little beyond 1.
    reach = Z95 / (1 + z2 / n) * math.sqrt(max(p * (1 - p), 0.0) / n + z2 / (4 * n * n))
    return middle - reach, middle + reach


def share(hits: int, n: int) -> Estimate | None:
    """Estimate a share of ``hits`` among ``n`` by :func:`wilson`; ``None`` of nothing."""
    if n == 0:
        return None
    low, high = wilson(hits / n, n)
    # At the ends, the formula gives 0 and 1, apart from rounding.
    return Estimate(
        value=hits / n, low=0.0 if hits == 0 else low, high=1.0 if hits == n else high, n=n
    )


def needed_for(p: float, half_width: float) -> int:
    """Return how many observations give a share ``p`` an interval of at most this half-width."""

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
    """Return the mean with its BCa bootstrap interval; the same at every call.

    Bias-corrected and accelerated: B. Efron, "Better bootstrap confidence intervals", JASA 82
    (1987). Beyond 2,000 values it is the normal interval, which the bootstrap comes to.

    Raises:
        ValueError: no values.
    """
    n = len(values)
    if n == 0:
        raise ValueError("no mean of no values")
    mean = fmean(values)
    # Five values of 1.0 have no spread to resample: the bootstrap would give [1.0, 1.0], as if the
    # next value could be nothing else.
    if n == 1 or min(values) == max(values):
        return Estimate(value=mean, low=None, high=None, confidence=confidence, n=n)
    if n > _RESAMPLED_UP_TO:
        spread = z_of(confidence) * stdev(values) / math.sqrt(n)
        low, high = mean - spread, mean + spread
    else:
        low, high = _bca(values, mean, confidence)
    return Estimate(value=mean, low=low, high=high, confidence=confidence, n=n)


def z_of(confidence: float) -> float:
    """Return how many standard errors a two-sided interval reaches to either side.

    Raises:
        ValueError: a confidence that is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence is between 0 and 1, not {confidence}")
    return _NORMAL.inv_cdf((1 + confidence) / 2)


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> Estimate | None:
    """Estimate Spearman's rho, -1 to 1; ``None`` for fewer than 5 pairs or where one is constant.

    Ties get their mean rank, and rho is Pearson's r of the ranks (C. Spearman, 1904). The
    interval is Fisher's z with the standard error sqrt((1 + rho^2 / 2) / (n - 3)) of D. G. Bonett
    and T. A. Wright, "Sample size requirements for estimating Pearson, Kendall and Spearman
    correlations", Psychometrika 65 (2000).
    """
    n = len(xs)
    # Fisher's z divides by n - 3, and of 4 pairs even a perfect order comes by chance once in 24.
    if n < 5:
        return None
    rho = _pearson(_ranks(xs), _ranks(ys))
    if rho is None:
        return None
    if abs(rho) > 1 - 1e-12:
        rho = math.copysign(1.0, rho)
        # Fisher's z is infinite at 1 and -1. Instead the largest rho below 1 that this many pairs
        # nearly reach is used, so that a perfect order of 6 pairs still has a wide interval.
        z = math.copysign(math.atanh(1 - 1 / n**2), rho)
    else:
        z = math.atanh(rho)
    reach = Z95 * math.sqrt((1 + rho * rho / 2) / (n - 3))
    low, high = math.tanh(z - reach), math.tanh(z + reach)
    return Estimate(value=rho, low=min(low, rho), high=max(high, rho), n=n)


def quantile(ascending: Sequence[float], share: float) -> float:
    """Return a quantile of ascending numbers, between neighbours by their distance.

    R's type 7: R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American
    Statistician 50 (1996).
    """
    at = share * (len(ascending) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (at - low) * (ascending[high] - ascending[low])


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


def _resampled_means(values: Sequence[float]) -> list[float]:
    """Return the means of samples drawn with replacement, in ascending order."""
    n = len(values)
    least, most = _RESAMPLES
    count = max(least, min(most, _DRAWS // n))
    # Always the same seed: two reports of the same evaluation have to be equal byte for byte.
    draw = random.Random(20250101)  # noqa: S311 - no secret is made of it
    if n > _BYTES:
        drawn = chain.from_iterable(_drawn(draw, values))
        return sorted(sum(islice(drawn, n)) / n for _ in range(count))
    value_of = values.__getitem__
    places = _places(draw, n, n * count)
    starts = range(0, n * count, n)
    return sorted(sum(map(value_of, places[at : at + n])) / n for at in starts)


def _places(draw: random.Random, n: int, count: int) -> bytes:
    """Draw places below ``n``, all as likely, a byte each: several times as fast as one by one."""
    # Bytes from `fair` on are left out, or the first values would be drawn more often: with n = 100
    # places 0 to 55 would have three bytes each and the others two.
    fair = _BYTES - _BYTES % n
    table = bytes(byte % n for byte in range(_BYTES))
    unfair = bytes(range(fair, _BYTES))
    found = bytearray()
    while len(found) < count:
        wanted = (count - len(found)) * _BYTES // fair + 1
        found += draw.randbytes(wanted).translate(table, unfair)
    return bytes(found[:count])


def _drawn(draw: random.Random, values: Sequence[float]) -> Iterator[Iterator[float]]:
    """Draw of up to 65,536 values, all as likely, two bytes each: faster than one by one."""
    fair = _PAIRS - _PAIRS % len(values)
    table = [*values] * (fair // len(values))
    while True:
        numbers = array("H", draw.randbytes(_PAIRS))
        if sys.byteorder == "big":  # the same figures on every machine
            numbers.byteswap()
        yield map(table.__getitem__, filter(fair.__gt__, numbers))


def _bca(values: Sequence[float], mean: float, confidence: float) -> tuple[float, float]:
    means = _resampled_means(values)
    below = sum(m < mean for m in means) + sum(m == mean for m in means) / 2
    # Where all samples are on one side the bias would be infinite.
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
    """Return the chance of at most ``k`` of ``n`` where each comes with the chance ``p``."""
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
    """Return whether ``k`` of ``n`` are more than a share, beyond chance (one-sided, 5 %)."""
    return 0 < share < 1 and k > 0 and binomial_at_most(n - k, n, 1 - share) <= 0.05
