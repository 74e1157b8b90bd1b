"""Agreement of two raters: the published examples, and what has to hold for all tables."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stats.bounds import bounds

from baton.stats.calibration import agreement, classes, confusion, kappa, squared_weight

Table = list[list[int]]
Pairs = list[tuple[str, str]]


def pairs_of(table: Table) -> list[tuple[int, int]]:
    return [
        (i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # J. Cohen (1960), table 1: proportions .44 .07 .09 / .05 .20 .05 / .01 .03 .06 of 200.
        ([[88, 14, 18], [10, 40, 10], [2, 6, 12]], 0.492),
        # The 50 grants of the article on the coefficient in Wikipedia: 0.7 against 0.5.
        ([[20, 5], [10, 15]], 0.4),
        # Two more from there: as many agree, but not as many by chance.
        ([[45, 15], [25, 15]], 0.1304),
        ([[25, 35], [5, 35]], 0.2593),
    ],
)
def test_kappa_of_published_tables(table: Table, expected: float) -> None:
    found = kappa(pairs_of(table))
    assert found is not None
    assert found.value == pytest.approx(expected, abs=5e-4)


def test_kappa_has_the_published_standard_error() -> None:
    """J. L. Fleiss, Statistical Methods for Rates and Proportions, chapter 18: 0.68, s.e. 0.087."""
    found = kappa(pairs_of([[75, 1, 4], [5, 4, 1], [0, 0, 10]]))
    assert found is not None
    assert found.value == pytest.approx(0.68, abs=0.005)
    assert (bounds(found).high - found.value) / 1.96 == pytest.approx(0.087, abs=0.001)


def test_weighted_kappa_is_the_textbook_formula() -> None:
    """1 - sum(v o) / sum(v e) with squared distances v (J. Cohen, 1968), worked out by hand."""
    table = [[11, 3, 1], [2, 9, 4], [0, 3, 17]]
    n = sum(map(sum, table))
    rows, columns = [sum(row) for row in table], [sum(row[j] for row in table) for j in range(3)]
    cells = [(i, j) for i in range(3) for j in range(3)]
    seen = sum((i - j) ** 2 * table[i][j] for i, j in cells)
    chance = sum((i - j) ** 2 * rows[i] * columns[j] / n for i, j in cells)
    found = kappa(pairs_of(table), squared_weight({0: 0.0, 1: 0.5, 2: 1.0}))
    assert found is not None
    assert found.value == pytest.approx(1 - seen / chance)


def test_the_interval_holds_that_of_the_delta_method_worked_out_by_small_steps() -> None:
    table = [[30, 6, 2], [5, 22, 7], [1, 8, 39]]
    n = sum(map(sum, table))
    shares = [[count / n for count in row] for row in table]

    def value(p: list[list[float]]) -> float:
        rows, columns = [sum(row) for row in p], [sum(row[j] for row in p) for j in range(3)]
        w = [[1 - ((i - j) / 2) ** 2 for j in range(3)] for i in range(3)]
        seen = sum(w[i][j] * p[i][j] for i in range(3) for j in range(3))
        chance = sum(w[i][j] * rows[i] * columns[j] for i in range(3) for j in range(3))
        return (seen - chance) / (1 - chance)

    slopes = []
    for i in range(3):
        for j in range(3):
            up, down = [row[:] for row in shares], [row[:] for row in shares]
            up[i][j] += 1e-6
            down[i][j] -= 1e-6
            slopes.append((shares[i][j], (value(up) - value(down)) / 2e-6))
    at = sum(p * slope for p, slope in slopes)
    error = math.sqrt((sum(p * slope**2 for p, slope in slopes) - at**2) / n)
    found = kappa(pairs_of(table), squared_weight({0: 0.0, 1: 1.0, 2: 2.0}))
    assert found is not None
    assert 0.999 < (bounds(found).high - found.value) / (1.96 * error) < 1.1
    assert 0.999 < (found.value - bounds(found).low) / (1.96 * error) < 1.2


@pytest.mark.parametrize("table", [[0.45, 0.03, 0.05, 0.47], [0.6, 0.1, 0.1, 0.2]])
def test_the_interval_of_kappa_holds_the_true_one_often_enough(table: list[float]) -> None:
    same, row, column = table[0] + table[3], table[0] + table[1], table[0] + table[2]
    chance = row * column + (1 - row) * (1 - column)
    true, draw, held = (same - chance) / (1 - chance), Random(1), 0
    for _ in range(600):
        found = kappa(draw.choices([(0, 0), (0, 1), (1, 0), (1, 1)], table, k=60))
        held += found is not None and bounds(found).low <= true <= bounds(found).high
    assert held / 600 >= 0.94


def test_agreeing_throughout_leaves_room_for_what_was_not_seen() -> None:
    found = kappa([("a", "a")] * 20 + [("b", "b")] * 20)
    assert found is not None
    assert found.value == 1
    assert found.high == 1
    assert found.low == pytest.approx(0.825, abs=0.01)


def test_one_label_throughout_has_no_kappa_but_an_agreement() -> None:
    pairs = [("fine", "fine")] * 50
    assert kappa(pairs) is None
    found = agreement(pairs)
    assert found is not None
    assert found.value == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=60))
def test_kappa_does_not_care_who_is_first_nor_what_labels_are_called(pairs: Pairs) -> None:
    found = kappa(pairs)
    turned = kappa([(b, a) for a, b in pairs])
    renamed = kappa(
        [({"a": "x", "b": "y", "c": "z"}[a], {"a": "x", "b": "y", "c": "z"}[b]) for a, b in pairs]
    )
    plain = kappa(pairs, lambda a, b: float(a == b))
    assert found == plain
    if found is not None:
        assert turned is not None
        assert renamed is not None
        assert turned.value == pytest.approx(found.value)
        assert renamed.value == pytest.approx(found.value)
        low, high = bounds(found)
        assert -1 <= low <= found.value <= high <= 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), max_size=60))
def test_classes_count_everything_once(pairs: Pairs) -> None:
    found = classes(pairs, ["c", "a"])
    assert [one.label for one in found][:2] == ["c", "a"]
    assert sum(one.labelled for one in found) == sum(one.judged for one in found) == len(pairs)
    assert sum(one.both for one in found) == sum(a == b for a, b in pairs)
    assert sum(count for *_, count in confusion(pairs)) == len(pairs)


def test_precision_and_recall_are_of_the_judge() -> None:
    pairs = (
        [("bad", "bad")] * 6
        + [("bad", "good")] * 2
        + [("good", "bad")] * 4
        + [("good", "good")] * 8
    )
    (bad, good) = classes(pairs, ["bad", "good"])
    assert bad.precision is not None
    assert bad.recall is not None
    assert good.recall is not None
    assert (bad.precision.value, bad.recall.value) == (0.6, 0.75)
    assert good.recall.value == pytest.approx(2 / 3)


def test_a_label_nobody_used_has_no_precision() -> None:
    (never, _) = classes([("a", "a")], ["never", "a"])
    assert (never.precision, never.recall) == (None, None)
