"""Intervals: the published examples, and what has to hold for all numbers."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stats.bounds import bounds

from baton.stats.intervals import mean_interval, needed_for, rank_correlation, share


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)  # fmt: skip
def test_shares_have_the_score_intervals_of_newcombe(
    hits: int, n: int, low: float, high: float
) -> None:
    """R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3."""
    found = share(hits, n)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)


def test_a_share_of_nothing_is_not_known() -> None:
    assert share(0, 0) is None


@given(st.integers(1, 500), st.data())
def test_a_share_lies_in_its_interval_and_mirrors_the_share_of_the_rest(
    n: int, data: st.DataObject
) -> None:
    hits = data.draw(st.integers(0, n))
    found, rest = share(hits, n), share(n - hits, n)
    assert found is not None
    assert rest is not None
    low, high = bounds(found)
    assert 0 <= low <= found.value <= high <= 1
    assert low == pytest.approx(1 - bounds(rest).high, abs=1e-12)
    more = bounds(share(hits * 4, n * 4))
    assert more.high - more.low < high - low


def test_wilson_covers_the_true_share_about_as_often_as_it_says() -> None:
    draw = Random(7)
    held = 0
    for _ in range(2000):
        low, high = bounds(share(sum(draw.random() < 0.85 for _ in range(60)), 60))
        held += low <= 0.85 <= high
    assert 0.93 < held / 2000 < 0.97


@pytest.mark.parametrize(("p", "least"), [(0.5, 93), (0.9, 35)])
def test_it_says_how_many_are_needed_for_an_interval(p: float, least: int) -> None:
    """For p = 0.5 the half-width is z / (2 sqrt(n + z^2)), so that n is 92.2."""
    needed = needed_for(p, 0.1)
    assert needed == pytest.approx(least, abs=3)
    low, high = bounds(share(round(p * needed), needed))
    assert (high - low) / 2 <= 0.1


def test_spearman_of_the_example_everybody_knows() -> None:
    """IQ and hours of television, from the article on the coefficient in Wikipedia: -29/165."""
    iq = [106.0, 100, 86, 101, 99, 103, 97, 113, 112, 110]
    hours = [7.0, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    found = rank_correlation(iq, hours)
    assert found is not None
    assert found.value == pytest.approx(-29 / 165)
    assert bounds(found).low < -0.6
    assert bounds(found).high > 0.5


def test_ties_get_their_mean_rank() -> None:
    """Ranks 1, 2.5, 2.5, 4, 5 and 1 to 5: Pearson of these is 9.5 / sqrt(9.5 * 10)."""
    found = rank_correlation([1.0, 2, 2, 3, 4], [10.0, 20, 30, 40, 50])
    assert found is not None
    assert found.value == pytest.approx(9.5 / math.sqrt(95))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=5, max_size=40))
def test_a_rank_correlation_is_what_it_is_for_any_rising_scale(
    pairs: list[tuple[int, int]],
) -> None:
    xs, ys = [float(x) for x, _ in pairs], [float(y) for _, y in pairs]
    found = rank_correlation(xs, ys)
    scaled = rank_correlation([math.exp(x) for x in xs], [y**3 for y in ys])
    assert (found is None) == (len(set(xs)) == 1 or len(set(ys)) == 1)
    if found is not None:
        assert scaled is not None
        low, high = bounds(found)
        assert -1 <= low <= found.value <= high <= 1
        assert scaled.value == pytest.approx(found.value)


def test_what_is_constant_or_too_short_has_no_correlation() -> None:
    assert rank_correlation([1.0] * 9, list(map(float, range(9)))) is None
    assert rank_correlation([1.0, 2, 3, 4], [1.0, 2, 3, 4]) is None


def test_a_bootstrap_is_the_same_every_time_and_near_the_normal_interval() -> None:
    draw = Random(3)
    numbers = [draw.gauss(5, 2) for _ in range(200)]
    found = mean_interval(numbers)
    assert found == mean_interval(numbers)
    assert found.half_width == pytest.approx(1.96 * 2 / math.sqrt(200), rel=0.15)
