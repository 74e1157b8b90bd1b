"""Several judges on the same items."""

from __future__ import annotations

from baton.stats.calibration import disputed, majority, reversed_order, together


def items(*labels: str) -> dict[tuple[str, str], str]:
    return {("t", f"d{number}"): label for number, label in enumerate(labels)}


def test_every_two_are_compared_on_what_both_judged() -> None:
    raters = {"a": items("x", "x", "y"), "b": items("x", "y", "y"), "c": items("x")}
    found = {(pair.first, pair.second): pair for pair in together(raters)}
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found["a", "b"].agreement is not None
    assert round(found["a", "b"].agreement.value, 3) == 0.667
    assert found["a", "c"].n == 1
    assert found["a", "c"].kappa is None


def test_what_all_judged_and_not_all_alike_is_disputed() -> None:
    assert disputed({"a": items("x", "x"), "b": items("x", "y")}) == [("t", "d1")]
    assert disputed({}) == []


def test_a_majority_is_more_than_half() -> None:
    assert majority(["x", "y", "x"]) == "x"
    assert majority(["x", "y"]) is None
    assert majority([]) is None


def test_an_order_that_matters_shows_as_changed_verdicts_and_moved_scores() -> None:
    found = reversed_order([("x", "y"), ("x", "x")], [(1.0, 0.0), (1.0, 1.0)])
    assert found is not None
    assert found.changed.value == 0.5
    assert found.shift is not None
    assert found.shift.value == -0.5


def test_nothing_asked_in_reverse_says_nothing() -> None:
    assert reversed_order([], []) is None
