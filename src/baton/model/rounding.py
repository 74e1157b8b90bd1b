"""How many digits a report writes of values from 0 to 1, so that different ones look different."""

from __future__ import annotations

_LEAST, _MOST = 2, 6


def digits(*values: float | None) -> int:
    """Return how many digits after the point keep these values apart: 2, or up to 6.

    997 of 1,000 passed cases are 0.997: "1.00" would say that all of them passed. The same applies
    to 0.00, and to figures of which one is compared with the other ("0.80, needs 0.80"). Values
    that are equal to six digits count as equal: sums of floats differ by less.
    """
    apart = {round(value, _MOST) for value in (0.0, 1.0, *values) if value is not None}
    for count in range(_LEAST, _MOST):
        if len({round(value, count) for value in apart}) == len(apart):
            return count
    return _MOST


def rounded(value: float, *others: float | None) -> str:
    """Write a value with as many digits as it needs, also to differ from ``others``."""
    return f"{value:.{digits(value, *others)}f}"
