"""Comparing an expected with an actual chain of agents: pure functions over lists of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Mode = Literal["exact", "subset", "contains", "flexible"]


def chain_score(expected: Sequence[str], actual: Sequence[str], mode: Mode) -> float:
    """Score one turn, 0 to 1.

    ``exact``: 1 if the chains are equal, else 0. ``subset``: longest common subsequence
    divided by the expected length. ``contains`` and ``flexible``: share of the expected
    names that are present, as sets. An empty expectation is met by anything but in
    ``exact``, where it is met by nothing but itself.
    """
    if mode == "exact":
        return float(list(expected) == list(actual))
    if not expected:
        return 1.0
    if mode == "subset":
        return longest_common(expected, actual) / len(expected)
    return len(set(expected) & set(actual)) / len(set(expected))


def longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, in O(len(first) * len(second))."""
    row = [0] * (len(second) + 1)
    for name in first:
        diagonal = 0
        for column, other in enumerate(second, 1):
            above = row[column]
            row[column] = diagonal + 1 if name == other else max(above, row[column - 1])
            diagonal = above
    return row[-1]


def missing(expected: Sequence[str], actual: Sequence[str]) -> list[str]:
    """Return the expected names that are not there, in first-seen order."""
    return [name for name in dict.fromkeys(expected) if name not in actual]
