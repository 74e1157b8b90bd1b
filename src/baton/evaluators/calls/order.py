"""Calls in order: the scan that finds all expected ones, and the longest common subsequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Pair = tuple[int, int]
"""A position among the expected and one among the actual calls, from 0."""


def all_in_order(expected: int, actual: int, same: Callable[[int, int], bool]) -> list[Pair] | None:
    """Pair every expected call with an actual one, in order; ``None`` when that cannot be.

    Taking the first that fits is enough for this question, whatever ``same`` is.
    """
    pairs: list[Pair] = []
    for place in range(actual):
        if len(pairs) == expected:
            break
        if same(len(pairs), place):
            pairs.append((len(pairs), place))
    return pairs if len(pairs) == expected else None


def longest_common(expected: int, fitting: Sequence[int]) -> list[Pair]:
    """Pair as many calls as can be paired without changing their order.

    ``fitting`` holds a number for each actual call, in which bit ``i`` is set when it fits the
    expected call ``i``. Bit-parallel (H. Hyyrö, "Bit-parallel LCS-length computation
    revisited", 2004): one row of ``expected`` bits for each actual call.
    """
    every = (1 << expected) - 1
    row = every
    rows = []
    for fits in fitting:
        hits = row & fits
        row = ((row + hits) | (row & ~fits)) & every
        rows.append(row)
    return _walk_back(expected, rows)


def _walk_back(expected: int, rows: Sequence[int]) -> list[Pair]:
    """Read the pairs off the rows; a bit that is 0 says that this call made the row longer."""
    pairs: list[Pair] = []
    one, other = expected - 1, len(rows) - 1
    while one >= 0 and other >= 0:
        if rows[other] >> one & 1:
            one -= 1
        elif other and not rows[other - 1] >> one & 1:
            other -= 1
        else:
            pairs.append((one, other))
            one, other = one - 1, other - 1
    return pairs[::-1]
