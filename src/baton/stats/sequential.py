"""Detect whether a mean fell below a limit, with a check after every value.

An interval that is right for one check is wrong for many: a 95 % interval that is checked after
each of 10,000 values misses the truth again and again. The tests in this module can be checked
after every value, for ever.

A bet against the claim that values (0 to 1) have a mean of at least ``m`` multiplies a stake by
``1 + b (m - x)`` for each value ``x``: where the claim holds, no such stake grows on average
(I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by betting", JRSS B
86, 2024). Nobody knows when a mean falls, so that a new stake of 1 is laid before each value, and
all stakes are summed up: the Shiryaev-Roberts e-detector of J. Shin, A. Ramdas and A. Rinaldo,
"E-detectors: a nonparametric framework for sequential change detection", The New England Journal
of Statistics in Data Science 2 (2024). As the sum less the number of values grows nowhere on
average, it takes ``c`` values or more on average until the sum reaches ``c`` by chance, whatever
the values depend on, as long as each has a mean of at least ``m`` given those before. How well a
bet does depends on how far the mean fell, so that a quarter is laid on each of four sizes.
"""

from __future__ import annotations

import math

import msgspec

SIZES = (0.06, 0.12, 0.24, 0.48)
"""What bets are laid on: that the mean fell by about these shares of ``m`` (0.9 to 0.85, 0.79,
0.68, 0.47). A value of 1 takes such a share of the stake."""
_LARGEST = 1e200


class Evidence(msgspec.Struct, kw_only=True):
    """The evidence that the mean of the latest values is below ``limit``; 0 < limit < 1."""

    limit: float
    stakes: list[float] = msgspec.field(default_factory=lambda: [0.0] * len(SIZES))

    @property
    def value(self) -> float:
        """The sum of all stakes: by chance it reaches ``c`` once in ``c`` values at most."""
        return sum(self.stakes) / len(SIZES)

    def add(self, value: float) -> None:
        """Add a value from 0 to 1."""
        for place, size in enumerate(SIZES):
            factor = 1 + size / (1 - self.limit) * (self.limit - value)
            self.stakes[place] = min(_LARGEST, (self.stakes[place] + 1) * factor)


class Watch(msgspec.Struct, kw_only=True):
    """Reports when the mean of values falls below a limit, and when it is back.

    It opens when there is evidence of ``OPENS`` that the mean is below ``limit``, and the mean of
    the last ``over`` values is, too. It closes when there is evidence of ``CLOSES`` that the mean
    is nearer to the limit than to what it had fallen to, and the last ``over`` are not below the
    limit. Evidence starts again with each change. ``opens`` and ``closes`` take the place of the
    usual amounts of evidence.
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
        """Take one more value (what is beyond 0 and 1 counts as these); ``True``: it changed."""
        value = min(1.0, max(0.0, value))
        self.last.append(value)
        del self.last[: -self.over]
        self.count += 1
        # A mean of fewer values would be one of them.
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
        # The same, seen from the other side: 1 - x below 1 - limit is x above the limit.
        self.back.add(1 - value)
        closes = CLOSES if self.closes is None else self.closes
        return self.back.value >= closes and self.mean >= self.limit

    def _change(self) -> bool:
        self.is_open = not self.is_open
        self.below = self.back = None
        if self.is_open:
            # It opened at a moment when the mean looked bad, so that it is better than it looks,
            # by about a standard error. Without that a mean that stays at 0.85 would be taken for
            # one that fell to 0.8 and came back.
            spread = math.sqrt(max(self.mean * (1 - self.mean), 0.01) / self.over)
            nearer = (self.limit + min(self.limit - 0.01, self.mean + spread)) / 2
            self.back = Evidence(limit=1 - nearer)
        return True


OPENS = 100_000.0
"""On average at most one alert opens by chance in so many values, also where the true mean is just
the limit; where it is 0.02 above, it is one in some millions."""
CLOSES = 10_000.0
"""A mean that stays at 0.85 where 0.9 is the limit opens and closes some once in 10,000 values."""
