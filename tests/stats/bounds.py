"""The ends of an interval that has some."""

from __future__ import annotations

from typing import NamedTuple

from baton.stats.intervals import Estimate


class Bounds(NamedTuple):
    """From where to where an interval goes."""

    low: float
    high: float


def bounds(estimate: Estimate | None) -> Bounds:
    """Return the ends of an interval; it is an error when there is none."""
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return Bounds(estimate.low, estimate.high)
