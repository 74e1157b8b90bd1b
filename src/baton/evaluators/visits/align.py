"""Laying one list against another, both kept in order."""

from __future__ import annotations

from collections.abc import Sequence


def best_alignment(weights: Sequence[Sequence[int]]) -> list[int | None]:
    """Return for each row its column, or ``None``, so that the sum of weights is the largest.

    Columns rise with the rows, each is used once, and a weight of 0 pairs nothing. Takes
    O(rows * columns), as the longest common subsequence does (Wagner and Fischer 1974). Of
    several best alignments it is the one whose columns come first.
    """
    rows = len(weights)
    columns = len(weights[0]) if rows else 0
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            paired = weights[row][column] + best[row + 1][column + 1]
            best[row][column] = max(best[row + 1][column], best[row][column + 1], paired)
    found: list[int | None] = []
    column = 0
    for row in range(rows):
        found.append(None)
        for place in range(column, columns):
            weight = weights[row][place]
            if weight and best[row][column] == weight + best[row + 1][place + 1]:
                found[row], column = place, place + 1
                break
    return found
