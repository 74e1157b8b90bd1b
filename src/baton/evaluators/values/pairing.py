"""Giving every item of one list an item of another, each its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

Fits = Callable[[int, int], bool]


def all_paired(count: int, fits: Fits, likely: Sequence[int | None]) -> bool:
    """Tell whether ``count`` rows can each have one of ``count`` columns that fits them.

    ``likely`` is a column for each row that surely fits, each column once at most. Augmenting
    paths (Kuhn 1955): ``fits`` is asked up to ``count`` squared times, far less often where
    ``likely`` has most.
    """
    owners: list[int | None] = [None] * count
    for row, column in enumerate(likely):
        if column is not None:
            owners[column] = row
    asked = _Asked(fits)
    return all(
        _augmented(row, owners, asked) for row, column in enumerate(likely) if column is None
    )


class _Asked:
    """Answers of ``fits``, so that none is asked for twice."""

    def __init__(self, fits: Fits) -> None:
        self._fits = fits
        self._known: dict[int, bytearray] = {}

    def __call__(self, row: int, column: int, count: int) -> bool:
        answers = self._known.setdefault(row, bytearray(count))
        if not answers[column]:
            answers[column] = 1 + self._fits(row, column)
        return answers[column] == 2


def _augmented(row: int, owners: list[int | None], fits: _Asked) -> bool:
    """Find a column for one more row; rows that have one may change to another."""
    came_from: dict[int, int] = {}
    due = deque([row])
    while due:
        asking = due.popleft()
        for column, owner in enumerate(owners):
            if column in came_from or not fits(asking, column, len(owners)):
                continue
            came_from[column] = asking
            if owner is None:
                _hand_on(column, row, owners, came_from)
                return True
            due.append(owner)
    return False


def _hand_on(column: int, row: int, owners: list[int | None], came_from: dict[int, int]) -> None:
    """Move each row on the path that was found to the column it leads to."""
    had = {owner: place for place, owner in enumerate(owners) if owner is not None}
    while True:
        taker = came_from[column]
        owners[column] = taker
        if taker == row:
            return
        column = had[taker]
