"""Comparing an expected with an actual chain of agents: pure functions over lists of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from baton.model import AnyOrder

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


def in_best_order(expected: Sequence[str | AnyOrder], actual: Sequence[str]) -> list[str]:
    """Write an expected chain out, names of any order in the one that fits the actual chain best.

    The longest common subsequence of the two is as long as any order makes it. O(len(expected) *
    len(actual) ** 2) where there are names of any order.
    """
    groups = [[one] if isinstance(one, str) else one.any_order for one in expected]
    if all(len(group) == 1 for group in groups):
        return [name for (name,) in groups]
    best = [0] * (len(actual) + 1)
    begins: list[list[int]] = []
    for group in groups:
        row, begin = list(best), list(range(len(actual) + 1))
        for start in range(len(actual)):
            left, common = Counter(group), 0
            for end in range(start + 1, len(actual) + 1):
                if left[actual[end - 1]]:
                    left[actual[end - 1]] -= 1
                    common += 1
                if best[start] + common > row[end]:
                    row[end], begin[end] = best[start] + common, start
        best = row
        begins.append(begin)
    return _written_out(groups, begins, actual)


def _written_out(
    groups: Sequence[list[str]], begins: Sequence[list[int]], actual: Sequence[str]
) -> list[str]:
    chain: list[str] = []
    end = len(actual)
    for group, begin in zip(reversed(groups), reversed(begins), strict=True):
        start = begin[end]
        left = Counter(group)
        ran = []
        for name in actual[start:end]:
            if left[name]:
                left[name] -= 1
                ran.append(name)
        chain = [*ran, *left.elements(), *chain]
        end = start
    return chain


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
