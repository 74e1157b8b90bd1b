"""Holding figures against limits."""

from __future__ import annotations

import math

import pytest

from baton.evaluators.usage_limits import share


@pytest.mark.parametrize(
    ("actual", "limit", "score"),
    [
        (0, 0, 1.0), (3, 3, 1.0), (4, 2, 0.5), (1.0, 1.0 - 1e-12, 1.0), (10**17 + 1, 10**17, 0.999999),
        (math.inf, 5, 0.0), (10**400, 5, 0.0),
    ],
)  # fmt: skip
def test_a_share_is_one_within_the_limit_and_less_beyond_it(
    actual: float, limit: float, score: float
) -> None:
    assert share(actual, limit) == score


@pytest.mark.parametrize(("actual", "limit"), [(math.nan, 5), (5, math.nan), (math.nan, math.nan)])
def test_what_is_not_a_number_has_no_share(actual: float, limit: float) -> None:
    with pytest.raises(ValueError, match="cannot be compared with a limit"):
        share(actual, limit)
