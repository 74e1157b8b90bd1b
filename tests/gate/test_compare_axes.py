"""Comparing two evaluations: red when it is real, green when it is not, grey when nobody knows."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from baton.gate.compare_axes import PASSED, Axis, CaseValues, Comparison, compare_all

SCORE = Axis("quality")


def simulated(
    draw: random.Random, cases: int, drop: float, noise: float, axes: int = 1
) -> tuple[dict[str, CaseValues], dict[str, CaseValues]]:
    """Draw two evaluations of the same cases; the second is lower by ``drop`` on every axis."""
    before, after = {}, {}
    for number in range(cases):
        names = [Axis(f"axis {n}") for n in range(axes)]
        hard = {axis: draw.uniform(0.3, 1.0) for axis in names}
        before[f"c{number}"] = CaseValues(
            values={a: [hard[a] + draw.gauss(0, noise)] for a in names}
        )
        after[f"c{number}"] = CaseValues(
            values={a: [hard[a] + draw.gauss(0, noise) - drop] for a in names}
        )
    return before, after


def changes(seed: int, pairs: int, **how: float) -> Counter[str]:
    draw = random.Random(seed)
    cases, axes = int(how.get("cases", 100)), int(how.get("axes", 1))
    found: Counter[str] = Counter()
    for _ in range(pairs):
        pair = simulated(draw, cases, how["drop"], how["noise"], axes)
        compared = compare_all(*pair, min_effect=how["min_effect"])
        worst = {axis.change for axis in compared.axes}
        found[next(c for c in ("worse", "unclear", "better", "same") if c in worst)] += 1
    return found


def test_a_true_drop_is_red() -> None:
    found = changes(1, 100, drop=0.1, noise=0.1, cases=60, min_effect=0.02)
    assert found["worse"] >= 95


def test_no_drop_is_green_and_red_no_oftener_than_was_stated() -> None:
    found = changes(2, 100, drop=0.0, noise=0.05, cases=60, min_effect=0.05)
    assert found["worse"] <= 100 * 0.05
    assert found["same"] >= 92


@pytest.mark.heavy
def test_many_axes_raise_no_more_false_alarms() -> None:
    found = changes(3, 200, drop=0.0, noise=0.1, cases=24, min_effect=0.0, axes=6)
    assert found["worse"] <= 200 * 0.05


def test_a_drop_too_small_for_the_data_is_grey_and_says_how_much_would_tell() -> None:
    found = changes(4, 200, drop=0.03, noise=0.2, cases=20, min_effect=0.02)
    assert found["unclear"] >= 170
    pair = simulated(random.Random(4), 20, 0.03, 0.2)
    (axis,) = compare_all(*pair, min_effect=0.02).axes
    assert axis.change == "unclear"
    assert axis.cases_needed is not None
    assert axis.cases_needed > 20


def passes(*verdicts: bool) -> dict[str, CaseValues]:
    axis = Axis(PASSED)
    return {f"c{n}": CaseValues(values={axis: [float(v)]}) for n, v in enumerate(verdicts)}


def one(before: dict[str, CaseValues], after: dict[str, CaseValues]) -> Comparison:
    return compare_all(before, after)


def test_a_missing_case_is_no_pass_and_is_named() -> None:
    compared = one(passes(True, True, True), passes(True))
    assert compared.only_before == ["c1", "c2"]
    assert compared.cases == 1


def test_what_could_not_be_evaluated_is_in_no_axis_and_is_reported() -> None:
    after = passes(True, True) | {"c1": CaseValues(errors=2)}
    compared = one(passes(True, True), after)
    assert compared.errors == [("c1", 0, 2)]
    assert [axis.difference.difference.n for axis in compared.axes] == [1]


def test_nothing_in_common_compares_nothing() -> None:
    compared = one({"a": CaseValues(values={SCORE: [1]})}, {"b": CaseValues(values={SCORE: [1]})})
    assert (compared.axes, compared.cases) == ([], 0)


def test_constant_data_is_the_same_and_a_single_case_is_unclear() -> None:
    (same,) = one(passes(*[True] * 9), passes(*[True] * 9)).axes
    assert same.change == "same"
    (single,) = one(passes(True), passes(True)).axes
    assert single.change == "unclear"


def test_every_case_that_fell_is_red_although_the_fall_has_no_spread() -> None:
    (axis,) = one(passes(*[True] * 9), passes(*[False] * 9)).axes
    assert (axis.change, axis.difference.difference.value) == ("worse", -1)


def test_cases_that_got_worse_come_the_worst_first_with_their_axis() -> None:
    def two(*values: float) -> dict[str, CaseValues]:
        return {
            f"c{n}": CaseValues(values={Axis(PASSED): [float(v > 0.5)], SCORE: [v]})
            for n, v in enumerate(values)
        }

    compared = one(two(0.9, 0.9, 0.9, 0.2), two(0.9, 0.1, 0.6, 0.8))
    assert [(c.case, c.axis.name, c.after) for c in compared.worse] == [
        ("c1", "quality", 0.1),
        ("c2", "quality", 0.6),
    ]


def test_a_sub_agent_may_be_worse_where_the_whole_is_not() -> None:
    draw = random.Random(6)

    def side(drop: float) -> dict[str, CaseValues]:
        found = {}
        for n in range(80):
            agent = "validator" if n % 4 == 0 else "writer"
            value = 0.9 + draw.gauss(0, 0.02) - (drop if agent == "validator" else 0)
            found[f"c{n}"] = CaseValues(values={SCORE: [value], Axis("quality", agent): [value]})
        return found

    compared = compare_all(side(0), side(0.3), min_effect=0.1)
    assert {str(axis.axis): axis.change for axis in compared.axes} == {
        "quality": "same" if compared.axes[0].change == "same" else "unclear",
        "quality of validator": "worse",
        "quality of writer": "same",
    }


def test_where_lower_is_better_a_rise_is_a_drop() -> None:
    before = {f"c{n}": CaseValues(values={SCORE: [0.1 + n / 100]}) for n in range(20)}
    after = {f"c{n}": CaseValues(values={SCORE: [0.6 + n / 50]}) for n in range(20)}
    compared = compare_all(before, after, lower_is_better=frozenset({"quality"}))
    assert compared.axes[0].change == "worse"
    assert compared.worse[0].case == "c19"


@pytest.mark.parametrize("min_effect", [0.0, 0.5])
def test_a_real_drop_below_the_least_effect_is_not_red(min_effect: float) -> None:
    pair = simulated(random.Random(9), 100, 0.2, 0.05)
    (axis,) = compare_all(*pair, min_effect=min_effect).axes
    assert axis.change == ("worse" if min_effect == 0 else "same")
