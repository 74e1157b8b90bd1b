"""Giving rows to columns, one to one, for the largest gain in all."""

from __future__ import annotations

from collections.abc import Sequence


def best_assignment(gains: Sequence[Sequence[int]]) -> list[int | None]:
    """Return for each row its column, or ``None``, so that the sum of gains is the largest.

    A gain of 0 or less means that a row and a column do not go together. The Hungarian method
    in its form with potentials (Kuhn 1955, Munkres 1957): O(rows^2 * (rows + columns)).
    """
    rows = len(gains)
    columns = len(gains[0]) if rows else 0
    # A column of its own for each row: it may stay without a partner, at no cost.
    costs = [[-max(gain, 0) for gain in row] + [0] * rows for row in gains]
    owner = _owners(costs, columns + rows)
    found: list[int | None] = [None] * rows
    for column, row in enumerate(owner[:columns]):
        if row is not None and gains[row][column] > 0:
            found[row] = column
    return found


def _owners(costs: Sequence[Sequence[int]], width: int) -> list[int | None]:
    """Return the row of each column, at the least cost; there are more columns than rows."""
    of_row = [0] * len(costs)
    of_column = [0] * width
    owner: list[int | None] = [None] * width
    for start in range(len(costs)):
        least: list[int | None] = [None] * width
        came_from: list[int | None] = [None] * width
        done: list[int] = []
        left = set(range(width))
        row, column = start, None
        while True:
            for each in left:
                cost = costs[row][each] - of_row[row] - of_column[each]
                known = least[each]
                if known is None or cost < known:
                    least[each], came_from[each] = cost, column
            nearest = min(left, key=lambda each: (least[each] or 0, each))
            step = least[nearest] or 0
            of_row[start] += step
            for each in done:
                of_column[each] -= step
                of_row[owner[each] or 0] += step
            for each in left:
                least[each] = (least[each] or 0) - step
            left.remove(nearest)
            done.append(nearest)
            column, taken = nearest, owner[nearest]
            if taken is None:
                break
            row = taken
        _give(owner, came_from, column, start)
    return owner


def _give(
    owner: list[int | None], came_from: Sequence[int | None], column: int, start: int
) -> None:
    """Hand columns on along the path that was found, from its end back to its start."""
    while (before := came_from[column]) is not None:
        owner[column] = owner[before]
        column = before
    owner[column] = start
