"""Detect whether a mean fell below a limit, with a check after every value.

An interval that is right for one check is wrong for many: a 95 % interval that is checked after
each of 10,000 values misses the truth again and again. The tests in this module can be checked
after every value, without an end.

They test the claim that values (0 to 1) have a mean of at least ``m`` by betting against it. Each
value ``x`` multiplies a stake by ``1 + b (m - x)``. If the claim holds, no stake grows on average
(I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by betting", JRSS B
86, 2024). Nobody knows when a mean falls. So a new stake of 1 is added before each value, and the
evidence is the sum of all stakes: the Shiryaev-Roberts e-detector of J. Shin, A. Ramdas and
A. Rinaldo, "E-detectors: a nonparametric framework for sequential change detection", The New
England Journal of Statistics in Data Science 2 (2024). On average the sum minus the number of
values does not grow. So it takes at least ``c`` values on average until the sum reaches ``c`` by
chance. This holds for dependent values, too, if each has a mean of at least ``m`` given those
before it. The best ``b`` depends on how far the mean fell, so that a stake is divided between four
sizes of the fall.
"""

from __future__ import annotations

import math

import msgspec

SIZES = (0.06, 0.12, 0.24, 0.48)
"""The four falls of the mean to bet on, as shares of ``m``: from 0.9 to about 0.85, 0.79, 0.68 and
0.47. A value of 1 loses this share of the stake."""
_LARGEST = 1e200
"""A stake that would grow beyond this stays here: for ever rising evidence would become infinite,
and the sum of stakes no number. It is far beyond any evidence that opens an alert."""


class Evidence(msgspec.Struct, kw_only=True):
    """The evidence that the mean of the latest values is below ``limit``; 0 < limit < 1."""

    limit: float
    stakes: list[float] = msgspec.field(default_factory=lambda: [0.0] * len(SIZES))

    @property
    def value(self) -> float:
        """The sum of all stakes; by chance it reaches ``c`` at most once in ``c`` values."""
        return sum(self.stakes) / len(SIZES)

    def add(self, value: float) -> None:
        """Add a value from 0 to 1."""
        for place, size in enumerate(SIZES):
            factor = 1 + size / (1 - self.limit) * (self.limit - value)
            self.stakes[place] = min(_LARGEST, (self.stakes[place] + 1) * factor)


class Watch(msgspec.Struct, kw_only=True):
    """Detects that the mean of values fell below a limit, and that it recovered.

    It opens when the evidence that the mean is below ``limit`` reaches ``OPENS`` and the mean of
    the last ``over`` values is below it. It closes when the evidence that the mean is nearer to
    the limit than to the value it had fallen to reaches ``CLOSES`` and the mean of the last
    ``over`` values is not below the limit. Evidence starts again with each change. ``opens`` and
    ``closes`` override the usual amounts of evidence.
    """

    limit: float
    over: int
    opens: float | None = None
    closes: float | None = None
    last: list[float] = msgspec.field(default_factory=list)
    count: int = 0
    is_open: bool = False
    below: Evidence | None = None
    back: Evidence | None = None

    @property
    def mean(self) -> float:
        """The mean of the last ``over`` values; 1 if there are none."""
        return sum(self.last) / len(self.last) if self.last else 1.0

    def add(self, value: float) -> bool:
        """Add a value, limited to 0 to 1; return whether the state changed."""
        value = min(1.0, max(0.0, value))
        self.last.append(value)
        del self.last[: -self.over]
        self.count += 1
        # With fewer values the mean would depend too much on single values.
        whole = len(self.last) == self.over
        if self.is_open:
            return self._closes(value) and whole and self._change()
        if self.below is None:
            self.below = Evidence(limit=self.limit)
        self.below.add(value)
        opens = OPENS if self.opens is None else self.opens
        return whole and self.below.value >= opens and self.mean < self.limit and self._change()

    def _closes(self, value: float) -> bool:
        if self.back is None:
            return False
        # The same test with mirrored values: 1 - x below 1 - limit means x above the limit.
        self.back.add(1 - value)
        closes = CLOSES if self.closes is None else self.closes
        return self.back.value >= closes and self.mean >= self.limit

    def _change(self) -> bool:
        self.is_open = not self.is_open
        self.below = self.back = None
        if self.is_open:
            # It opened when the recent mean was especially low, so that the true mean is probably
            # higher, by about a standard error. Without this correction, a mean that stays at 0.85
            # would look like one that fell to 0.8 and recovered.
            spread = math.sqrt(max(self.mean * (1 - self.mean), 0.01) / self.over)
            nearer = (self.limit + min(self.limit - 0.01, self.mean + spread)) / 2
            self.back = Evidence(limit=1 - nearer)
        return True


OPENS = 100_000.0
"""On average at most one alert opens by chance in so many values, even if the true mean equals the
limit; if it is 0.02 above the limit, one in some millions."""
CLOSES = 10_000.0
"""If the mean stays at 0.85 and the limit is 0.9, an alert closes about once in 10,000 values."""
