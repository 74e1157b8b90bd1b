"""A score holds a verdict or none; sums never turn an error into a pass."""

from __future__ import annotations

import itertools
import math

import pytest

from baton.model import Evaluation, EvaluatorCounts, Score, Status, case_status

SCORED: list[Status] = ["passed", "failed"]
UNSCORED: list[Status] = ["error", "skipped"]


def scored(status: Status, value: float | None) -> Score:
    return Score(evaluator="tool_calls", type="tool_calls", version="1", status=status, value=value)


@pytest.mark.parametrize("status", UNSCORED)
def test_what_gave_no_verdict_refuses_a_value(status: Status) -> None:
    with pytest.raises(ValueError, match=f"{status} has value 0.0"):
        scored(status, 0.0)


@pytest.mark.parametrize("status", SCORED)
def test_a_verdict_refuses_to_be_without_a_value(status: Status) -> None:
    with pytest.raises(ValueError, match=f"{status} has value None"):
        scored(status, None)


@pytest.mark.parametrize("status", SCORED)
def test_a_verdict_may_have_the_value_zero(status: Status) -> None:
    assert scored(status, 0.0).value == 0.0


@pytest.mark.parametrize("status", UNSCORED)
def test_what_gave_no_verdict_has_no_value(status: Status) -> None:
    assert scored(status, None).value is None


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["passed", "skipped", "failed", "error"], "error"),
        (["passed", "skipped", "failed"], "failed"),
        (["passed", "skipped"], "passed"),
        (["skipped"], "skipped"),
        ([], "skipped"),
    ],
)
def test_a_case_has_its_weightiest_status(statuses: list[Status], expected: Status) -> None:
    for order in itertools.permutations(statuses):
        assert case_status(order) == expected


@pytest.mark.parametrize(
    ("status", "code"), [("passed", 0), ("failed", 1), ("error", 3), ("skipped", 3)]
)
def test_only_an_evaluation_that_passed_exits_with_zero(status: Status, code: int) -> None:
    assert Evaluation(name="e", status=status, results=[], evaluators=[]).exit_code == code


def test_counts_tell_verdicts_from_the_rest() -> None:
    counts = EvaluatorCounts(evaluator="e", type="e")
    for status in (*SCORED, *UNSCORED):
        counts.add(status)
    assert (counts.scored, counts.skipped, counts.error) == (2, 1, 1)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_has_to_be_finite(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Score(evaluator="e", type="e", version="1", status="failed", value=value)
