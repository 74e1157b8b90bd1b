"""Figures from 0 to 1 that differ look different in reports."""

from __future__ import annotations

import pytest

from baton.model.score import digits, rounded


@pytest.mark.parametrize(
    ("value", "other", "written"),
    [
        (0.5, None, "0.50"),
        (1.0, 0.5, "1.00"),
        (0.997, None, "0.997"),
        (0.0004, None, "0.0004"),
        (0.798, 0.8, "0.798"),
        (0.8, 0.798, "0.800"),
        (0.9991, 0.9992, "0.9991"),
        (0.1 + 0.2, 0.3, "0.30"),
    ],
)
def test_a_figure_has_the_digits_that_tell_it_from_others(
    value: float, other: float | None, written: str
) -> None:
    assert rounded(value, other) == written


def test_no_figure_has_more_than_six_digits() -> None:
    assert digits(0.9999999, 0.9999998) <= 6
