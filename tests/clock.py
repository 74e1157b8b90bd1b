"""Limits on the CPU time that code in this process takes, on machines of any speed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_LOOPS = 1_000_000
_ORDINARY = 0.08
"""Seconds that the loops take on the machine for which limits are written."""


def slowness() -> float:
    """Measure how many times slower than an ordinary machine this one is now; at least 1."""
    total, began = 0, time.process_time()
    for number in range(_LOOPS):
        total += number * number
    return max(1.0, (time.process_time() - began) / _ORDINARY)


@contextmanager
def cpu_limit(seconds: float, what: object = "") -> Iterator[None]:
    """Fail when the block takes more CPU time than this on an ordinary machine.

    A shared machine can be three times slower for a while, and changes within a minute. So
    the speed is measured after a block that took longer.
    """
    began = time.process_time()
    yield
    took = time.process_time() - began
    if took >= seconds:
        slow = slowness()
        assert took < seconds * slow, f"{what} took {took:.2f} s of {seconds:g} x {slow:.1f}"
