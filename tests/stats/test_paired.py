"""Paired tests agree with scipy, keep their false alarms, and say how much data they need."""

from __future__ import annotations

import itertools
import random
from statistics import stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from baton.stats.sample_size import cases_needed, repeats_needed
from baton.stats.significance import (
    compare_pairs,
    drop_of_passes,
    holm,
    sign_flip,
)


def passes(*cases: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """Make cases of five repeats on both sides, by their passes before and after."""
    return [(before, 5, after, 5) for before, after in cases]


@given(st.integers(0, 60), st.integers(0, 60))
def test_single_passes_of_many_cases_are_compared_by_the_binomial_test_of_scipy(
    better: int, worse: int
) -> None:
    cases = [(0, 1, 1, 1)] * better + [(1, 1, 0, 1)] * worse + [(1, 1, 1, 1)] * 101
    changed = better + worse
    theirs = stats.binomtest(worse, changed, alternative="greater").pvalue if changed else 1.0
    assert drop_of_passes(cases) == pytest.approx(theirs)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=9))
def test_few_single_passes_have_a_p_between_that_of_coins_and_the_binomial_one(
    verdicts: list[tuple[int, int]],
) -> None:
    worse, better = verdicts.count((1, 0)), verdicts.count((0, 1))
    p = drop_of_passes((a, 1, b, 1) for a, b in verdicts)
    changed = worse + better
    binomial = stats.binomtest(worse, changed, alternative="greater").pvalue if changed else 1.0
    coins = 1 - stats.binom.cdf(len(verdicts) + worse - better - 1, 2 * len(verdicts), 0.5)
    assert p <= binomial + 1e-9
    if worse == len(verdicts):
        assert p == pytest.approx(coins)


@pytest.mark.parametrize("cases", [3, 4, 7])
def test_passes_of_cases_that_flip_coins_have_a_low_p_no_oftener_than_it_says(cases: int) -> None:
    chances: dict[float, float] = {}
    for verdicts in itertools.product((0, 1), repeat=2 * cases):
        p = drop_of_passes((a, 1, b, 1) for a, b in zip(verdicts[::2], verdicts[1::2], strict=True))
        chances[p] = chances.get(p, 0) + 0.25**cases
    for p in chances:
        assert sum(chance for other, chance in chances.items() if other <= p) <= p + 1e-9


def test_passes_of_one_repeated_case_are_compared_by_the_exact_test_of_scipy() -> None:
    for before, after in itertools.product(range(6), repeat=2):
        table = [[before, 5 - before], [after, 5 - after]]
        theirs = stats.fisher_exact(table, alternative="greater").pvalue
        assert drop_of_passes(passes((before, after))) == pytest.approx(theirs)
    assert drop_of_passes(passes((5, 0))) == pytest.approx(1 / 252)
    assert drop_of_passes(passes((5, 0), (0, 5))) > 0.5


def test_passes_of_repeated_cases_are_compared_case_by_case() -> None:
    hard, easy = passes(*[(0, 0)] * 9), passes(*[(5, 5)] * 9)
    assert drop_of_passes([*hard, *easy, *passes((5, 1), (5, 2))]) == pytest.approx(
        drop_of_passes(passes((5, 1), (5, 2)))
    )
    exact = drop_of_passes(passes(*[(4, 3)] * 300))
    assert drop_of_passes(passes(*[(4, 3)] * 200)) > exact > 0


def test_graded_values_use_their_repeats() -> None:
    before = {f"c{n}": [0.9, 0.8, 0.9, 0.85, 0.95] for n in range(3)}
    after = {f"c{n}": [0.4, 0.3, 0.4, 0.35, 0.45] for n in range(3)}
    found = compare_pairs(before, after)
    assert found is not None
    assert found.test == "shuffled_repeats"
    assert found.p is not None
    assert found.p < 0.001
    same = compare_pairs(before, before)
    assert same is not None
    assert same.p == 1


@pytest.mark.parametrize("size", [3, 9, 12])
def test_few_differences_have_the_exact_p_of_scipy(size: int) -> None:
    draw = random.Random(size)
    differences = [draw.gauss(0.3, 1) for _ in range(size)]
    theirs = stats.permutation_test(
        (np.array(differences),), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert sign_flip(differences) == pytest.approx(theirs.pvalue)


@pytest.mark.parametrize("size", [40, 900, 2_500])
def test_many_differences_have_nearly_the_p_of_a_t_test(size: int) -> None:
    draw = random.Random(size)
    differences = [draw.gauss(1.5 / size**0.5, 1) for _ in range(size)]
    theirs = stats.ttest_1samp(differences, 0).pvalue
    assert sign_flip(differences) == pytest.approx(theirs, abs=0.02)


@pytest.mark.parametrize("size", [6, 16])
def test_nothing_changed_is_called_a_difference_at_most_5_times_in_100(size: int) -> None:
    draw = random.Random(11)
    alarms = sum(sign_flip([draw.gauss(0, 1) for _ in range(size)]) <= 0.05 for _ in range(200))
    assert alarms / 200 <= 0.08


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_never_kinder_than_one_look_nor_harsher_than_bonferroni(
    ps: dict[str, float],
) -> None:
    corrected = holm(ps)
    assert list(corrected) == list(ps)
    for axis, p in ps.items():
        assert p <= corrected[axis] <= min(1, p * len(ps)) + 1e-12
    ascending = sorted(ps, key=lambda axis: ps[axis])
    assert [corrected[a] for a in ascending] == sorted(corrected.values())


def test_holm_gives_the_textbook_values() -> None:
    ps = {"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}
    assert holm(ps) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})


def test_single_passes_are_compared_exactly_and_missing_cases_by_nothing() -> None:
    before = {f"c{i}": [1.0] for i in range(10)} | {"gone": [0.0]}
    after = {f"c{i}": [float(i > 6)] for i in range(10)} | {"new": [0.0]}
    found = compare_pairs(before, after)
    assert found is not None
    assert (found.test, found.difference.n) == ("exact_passes", 10)
    assert (found.before, found.after) == (1.0, 0.3)
    assert found.p is not None
    assert found.p <= 0.5**7


def test_repeats_count_once_a_case() -> None:
    before = {"often": [1.0] * 50, "once": [0.0]}
    after = {"often": [0.0] * 50, "once": [1.0]}
    found = compare_pairs(before, after)
    assert found is not None
    assert (found.difference.value, found.p) == (0, 1)


def test_evaluations_that_share_no_case_are_not_compared() -> None:
    assert compare_pairs({"a": [1.0]}, {"b": [1.0]}) is None
    assert compare_pairs({"a": []}, {"a": [1.0]}) is None


def test_one_case_and_constant_data_are_reported_and_not_tested_away() -> None:
    one = compare_pairs({"a": [0.2]}, {"a": [0.9]})
    assert one is not None
    assert (one.p, one.difference.low) == (None, None)
    same = compare_pairs({"a": [0.5], "b": [0.5]}, {"a": [0.5], "b": [0.5]})
    assert same is not None
    assert same.p == 1.0
    moved = [0.25] * 10
    assert sign_flip(moved) == pytest.approx(2 * 0.5**10)


def test_as_many_cases_as_are_asked_for_find_the_difference_4_times_in_5() -> None:
    draw = random.Random(3)
    pilot = [draw.gauss(0, 0.3) for _ in range(400)]
    n = cases_needed(pilot, 0.2)
    assert n == pytest.approx((2.802 * stdev(pilot) / 0.2) ** 2, abs=1)
    assert n is not None
    found = sum(sign_flip([draw.gauss(0.2, 0.3) for _ in range(n)]) <= 0.05 for _ in range(150))
    assert 0.7 <= found / 150 <= 0.9


def test_how_many_cases_is_not_known_from_one_or_from_constant_ones() -> None:
    assert cases_needed([0.1], 0.1) is None
    assert cases_needed([0.1, 0.1], 0.1) is None
    assert cases_needed([0.1, 0.2], 0) is None


def test_repeats_help_where_the_noise_is_within_cases_and_not_where_cases_differ() -> None:
    draw = random.Random(8)
    noisy = [[draw.gauss(0.5, 0.3) for _ in range(10)] for _ in range(30)]
    other = [[draw.gauss(0.5, 0.3) for _ in range(10)] for _ in range(30)]
    needed = repeats_needed(noisy, other, 0.1)
    assert needed is not None
    assert 3 <= needed <= 9
    apart = [[value + (-1) ** i * 0.5 for value in case] for i, case in enumerate(noisy)]
    assert repeats_needed(noisy, apart, 0.1) is None
    assert repeats_needed([[0.1]], [[0.2]], 0.1) is None
