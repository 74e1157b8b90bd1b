"""What repeats tell agrees with counting all ways to draw k of them."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.stats.repeats import flake_rate, of_repeats, pass_at_k, pass_hat_k

VERDICTS = st.lists(st.booleans(), min_size=1, max_size=8)


@given(VERDICTS, st.data())
def test_chances_are_shares_of_all_ways_to_draw_k_repeats(
    verdicts: list[bool], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(verdicts)))
    draws = list(combinations(verdicts, k))
    counts = sum(verdicts), len(verdicts)
    assert pass_at_k(*counts, k) == pytest.approx(fmean(any(d) for d in draws))
    assert pass_hat_k(*counts, k) == pytest.approx(fmean(all(d) for d in draws))


@given(st.lists(st.booleans(), min_size=2, max_size=8))
def test_the_flake_rate_is_the_share_of_pairs_that_disagree(verdicts: list[bool]) -> None:
    pairs = list(combinations(verdicts, 2))
    assert flake_rate(sum(verdicts), len(verdicts)) == pytest.approx(
        fmean(a != b for a, b in pairs)
    )


def test_one_repeat_tells_nothing_of_flakes() -> None:
    assert flake_rate(1, 1) is None


def test_cases_weigh_the_same_and_flaky_ones_are_named_the_worst_first() -> None:
    found = of_repeats(
        {
            "steady": [True] * 9,
            "rare": [True, True, True, False],
            "coin": [True, False],
            "short": [True],
        },
        2,
    )
    assert found is not None
    assert (found.cases, found.left_out) == (3, 1)
    assert [case for case, _ in found.flaky] == ["coin", "rare"]
    assert found.pass_hat_k == pytest.approx((1 + 0.5 + 0) / 3)
    assert found.pass_at_k == pytest.approx(1)


def test_without_enough_repeats_there_is_nothing_to_say() -> None:
    assert of_repeats({"once": [True]}, 2) is None


@pytest.mark.parametrize(("passed", "total", "k"), [(1, 2, 3), (1, 2, 0), (3, 2, 1)])
def test_what_cannot_be_estimated_is_refused(passed: int, total: int, k: int) -> None:
    with pytest.raises(ValueError, match="no estimate"):
        pass_at_k(passed, total, k)
