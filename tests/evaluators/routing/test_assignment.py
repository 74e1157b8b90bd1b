"""The assignment of expected to actual dispatches is the best there is."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from baton.evaluators.matching.assignment import assign

tables = st.integers(0, 4).flatmap(
    lambda columns: st.lists(
        st.lists(st.integers(-1, 6), min_size=columns, max_size=columns), max_size=4
    )
)


def best_assignment(gains: list[list[int]]) -> list[int | None]:
    fitting = [[column for column, gain in enumerate(row) if gain > 0] for row in gains]
    room = [1] * (len(gains[0]) if gains else 0)
    flow = assign(fitting, room, gain=lambda row, column: gains[row][column])
    return [next(iter(columns), None) for columns in flow]


def total(gains: list[list[int]], chosen: tuple[int | None, ...]) -> int:
    return sum(gains[row][column] for row, column in enumerate(chosen) if column is not None)


@given(tables)
def test_no_other_assignment_gains_more(gains: list[list[int]]) -> None:
    found = best_assignment(gains)
    given_out = [column for column in found if column is not None]
    assert len(given_out) == len(set(given_out))
    assert all(gains[row][c] > 0 for row, c in enumerate(found) if c is not None)
    columns = [*range(len(gains[0]) if gains else 0), *[None] * len(gains)]
    every = itertools.permutations(columns, len(gains))
    assert total(gains, tuple(found)) == max(total(gains, each) for each in every)


def test_a_row_gives_way_when_that_gains_more_in_all() -> None:
    assert best_assignment([[5, 4], [5, 0]]) == [1, 0]
