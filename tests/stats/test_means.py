"""Intervals agree with scipy, and say so where the data cannot tell."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats
from tests.stats.bounds import bounds

from baton.stats.intervals import mean_interval, z_of


@pytest.mark.parametrize("size", [8, 30, 200])
def test_the_interval_of_a_mean_is_near_the_bca_interval_of_scipy(size: int) -> None:
    values = [random.Random(i).expovariate(1) for i in range(size)]
    ours = mean_interval(values, 0.95)
    theirs = stats.bootstrap((np.array(values),), np.mean, n_resamples=20_000, rng=1)
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=width * 0.05)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=width * 0.05)


def test_the_interval_of_many_values_is_where_the_bootstrap_would_be() -> None:
    values = [random.Random(i).random() for i in range(3_000)]
    few, many = mean_interval(values[:2_000]), mean_interval(values)
    (few_low, few_high), (many_low, many_high) = bounds(few), bounds(many)
    assert (few_high - few_low) / (many_high - many_low) == pytest.approx(1.5**0.5, rel=0.05)


def test_an_interval_of_95_percent_holds_the_truth_about_95_times_in_100() -> None:
    draw = random.Random(5)
    held = 0
    for _ in range(120):
        low, high = bounds(mean_interval([draw.random() for _ in range(25)]))
        held += low <= 0.5 <= high
    assert 0.90 <= held / 120 <= 0.99


def test_it_is_the_same_at_every_call() -> None:
    values = [0.1, 0.9, 0.4, 0.7, 0.7]
    assert mean_interval(values) == mean_interval(values)


@pytest.mark.parametrize("values", [[0.5], [1.0, 1.0, 1.0], [0.0] * 40])
def test_one_value_and_values_all_the_same_have_no_interval(values: list[float]) -> None:
    found = mean_interval(values)
    assert (found.value, found.low, found.high) == (values[0], None, None)


def test_no_values_have_no_mean() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        mean_interval([])


def test_a_confidence_is_between_0_and_1() -> None:
    with pytest.raises(ValueError, match="not 95"):
        z_of(95)
