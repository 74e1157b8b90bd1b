"""What the scores of a case come to, and what the cases come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import baton
from baton.model import (
    Case,
    Content,
    EvalContext,
    Evaluator,
    ExpectedTurn,
    InputError,
    Score,
    Status,
    Trace,
    Unit,
)
from baton.runner.plan import MeanRule, read_rule, verdict
from baton.testing import build


def scored(evaluator: str, status: Status, value: float | None = None) -> Score:
    return build.score(status, evaluator, value, threshold=0.5)


HALF = MeanRule(mean=0.5)


def test_under_all_every_score_has_to_pass() -> None:
    good, bad = scored("a", "passed", 1.0), scored("b", "failed", 0.4)
    assert verdict("all", [good, good]).status == "passed"
    assert verdict("all", [good, bad]).status == "failed"
    assert verdict("all", [good, bad]).mean is None


def test_under_mean_the_values_of_the_evaluators_decide() -> None:
    scores = [scored("a", "passed", 1.0), scored("b", "failed", 0.2)]
    assert verdict(HALF, scores) == ("passed", 0.6)
    assert verdict(MeanRule(mean=0.61), scores) == ("failed", 0.6)


def test_a_mean_that_just_reaches_the_threshold_passes() -> None:
    scores = [scored(str(n), "passed", 0.1) for n in range(3)]
    assert verdict(MeanRule(mean=0.1), scores).status == "passed"


def test_several_scores_of_one_evaluator_count_as_one() -> None:
    scores = [scored("a", "failed", 0.0), scored("a", "passed", 1.0), scored("b", "passed", 1.0)]
    assert verdict(HALF, scores).mean == 0.75


def test_what_was_skipped_is_left_out_and_is_no_zero() -> None:
    scores = [scored("a", "passed", 0.6), scored("b", "skipped"), scored("c", "skipped")]
    assert verdict(HALF, scores) == ("passed", 0.6)
    assert verdict("all", scores).status == "passed"


@pytest.mark.parametrize("rule", ["all", HALF])
def test_an_error_is_an_error_whatever_the_others_say(rule: Any) -> None:
    scores = [scored("a", "passed", 1.0), scored("b", "error"), scored("c", "failed", 0.0)]
    assert verdict(rule, scores) == ("error", None)


@pytest.mark.parametrize("rule", ["all", HALF])
def test_a_case_without_a_value_is_skipped_and_not_passed(rule: Any) -> None:
    assert verdict(rule, []).status == "skipped"
    assert verdict(rule, [scored("a", "skipped")]).status == "skipped"


@pytest.mark.parametrize(
    ("spec", "rule"),
    [("all", "all"), ({"mean": 0.8}, MeanRule(mean=0.8)), ({"mean": 1}, MeanRule(mean=1.0))],
)
def test_a_rule_is_read_from_plain_data(spec: Any, rule: Any) -> None:
    assert read_rule(spec) == rule


@pytest.mark.parametrize(
    "spec",
    ["any", "mean", {"mean": 1.2}, {"mean": -0.1}, {"mean": "high"}, {"avg": 1}, {}, None, 0.8],
)
def test_a_wrong_rule_says_what_to_write(spec: Any) -> None:
    with pytest.raises(InputError, match="write `all`, or `mean` with a threshold from 0 to 1"):
        read_rule(spec)


class Fixed:
    """An evaluator of a user's own that always gives the same scores."""

    version = "1"
    unit: Unit = "trace"

    def __init__(self, name: str, scores: Any) -> None:
        self.name = self.type = name
        self._scores = scores

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        scores: list[Score] = self._scores
        return scores

    def with_options(self, override: Mapping[str, Any]) -> Evaluator:
        return self


def play(case: Case) -> Trace:
    return build.trace(build.run("desk"), id=case.id)


CASES = [Case(id="a", turns=[ExpectedTurn(input=Content(text="hi"))])]


def test_a_whole_evaluation_goes_by_the_mean_and_tells_it() -> None:
    evaluators = [
        Fixed("good", [scored("good", "passed", 1.0)]),
        Fixed("bad", [scored("bad", "failed", 0.0)]),
    ]
    lenient = baton.evaluate(CASES, play, evaluators, pass_rule={"mean": 0.5})
    assert (lenient.status, lenient.results[0].mean) == ("passed", 0.5)
    assert baton.evaluate(CASES, play, evaluators, pass_rule={"mean": 0.51}).exit_code == 1
    assert baton.evaluate(CASES, play, evaluators).exit_code == 1
    with pytest.raises(InputError, match="not a pass rule"):
        baton.evaluate(CASES, play, evaluators, pass_rule={"most": 0.5})


@pytest.mark.parametrize("scores", [None, 7, ["x"], [None]])
def test_an_evaluator_that_gives_nonsense_is_an_error_of_its_score(scores: Any) -> None:
    evaluation = baton.evaluate(CASES, play, [Fixed("odd", scores)])
    (found,) = evaluation.results[0].scores
    assert (found.evaluator, found.status, found.value) == ("odd", "error", None)
    assert evaluation.exit_code == 3


def test_scores_go_by_the_name_of_their_evaluator() -> None:
    evaluation = baton.evaluate(CASES, play, [Fixed("mine", [scored("another", "passed", 1.0)])])
    assert [found.evaluator for found in evaluation.results[0].scores] == ["mine"]
    assert evaluation.evaluators[0].passed == 1


def test_a_reason_that_several_evaluators_could_not_score_for_is_written_once() -> None:
    failed = build.turn("hi", build.run("desk"), status="failed", error="the model is gone")
    case = build.case(build.expect("hi", response="yes", tool_calls=["find"]))
    evaluation = baton.score(
        [build.trace(failed, id="test")], [case], ["response", "tool_calls", "agent_chain"]
    )
    (written,) = [text for text in evaluation.problems if "the model is gone" in text]
    assert written.startswith("`response`, `tool_calls` scored nothing: 0 skipped, 1 error each")
