"""A panel: several models, one rubric, and what becomes of dissent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Self

import msgspec
import pytest
from tests.evaluators.judged.scripted import Judged, capture, labelled, number, shipped

from baton.evaluators import Panel
from baton.evaluators.panel import PanelDetails
from baton.model import EvalContext, InputError, JudgeError, JudgeRequest, JudgeResponse, Score

Says = Mapping[str, str | float | JudgeError]
MODELS = ["openai:a", "openai:b", "anthropic:c"]


class Models:
    """Answers as the model that is asked, by its name."""

    samples = 1

    def __init__(self, says: Says, model: str = "openai:first") -> None:
        self.says, self.model = says, model

    def with_options(self, override: Mapping[str, Any]) -> Self:
        return self.__class__(self.says, override.get("model", self.model))

    async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
        says = self.says[self.model]
        if isinstance(says, JudgeError):
            raise says
        reason = f"{self.model} thinks so"
        value = labelled(request, says, reason) if isinstance(says, str) else number(says)
        return JudgeResponse(
            value=value, model=self.model, input_tokens=10, output_tokens=1, cost_usd=0.5
        )


def panel(**options: Any) -> Panel:
    return Panel(**{"rubric": "dispatch_correctness", "models": MODELS, **options})


def verdict(says: Says, evaluator: Panel | None = None) -> Score:
    context = EvalContext(judge=Models(says))
    trace = capture("03_scope_bleed")
    (score,) = asyncio.run((evaluator or panel()).evaluate(trace, None, context))
    return score


def three(a: str | JudgeError, b: str | JudgeError, c: str | JudgeError) -> Says:
    return dict(zip(MODELS, (a, b, c), strict=True))


def test_the_majority_counts_and_who_dissents_is_named_with_the_reason() -> None:
    score = verdict(three("correct", "wrong", "correct"))
    assert (score.status, score.value, score.type, score.unit) == (
        "passed",
        1.0,
        "panel",
        "dispatch",
    )
    assert score.details["label"] == "correct"
    assert score.details["votes"] == {"correct": 2, "wrong": 1}
    assert score.details["dissent"] == ["openai:b"]
    assert score.details["models"] == {
        "openai:a": "correct", "openai:b": "wrong", "anthropic:c": "correct",
    }  # fmt: skip
    assert "openai:b says `wrong`: openai:b thinks so" in score.reason


def test_it_costs_what_all_models_cost() -> None:
    use = verdict(three("correct", "correct", "correct")).judge
    assert use is not None
    assert (use.model, use.requests, use.tokens, use.cost_usd) == (", ".join(MODELS), 3, 33, 1.5)


def test_of_as_many_votes_the_worst_label_counts_and_it_says_so() -> None:
    score = verdict(three("correct", "weak", "wrong"))
    assert (score.status, score.details["label"], score.details["tie"]) == ("failed", "wrong", True)


def test_a_model_that_fails_changes_nothing_where_its_vote_could_not() -> None:
    down = JudgeError("outage", "not there")
    score = verdict(three("correct", down, "correct"))
    assert score.status == "passed"
    assert score.details["models"]["openai:b"] == "error: outage: not there"


def test_a_model_that_fails_is_an_error_where_its_vote_could_decide() -> None:
    score = verdict(three("correct", JudgeError("outage", "not there"), "wrong"))
    assert (score.status, score.details["judge_error"], score.value) == ("error", "outage", None)


def test_when_no_model_answers_it_is_an_error_and_no_pass() -> None:
    down = JudgeError("timeout", "too slow")
    score = verdict(three(down, down, down))
    assert (score.status, score.type, score.judge) == ("error", "panel", None)


def numbers(**options: Any) -> Panel:
    return panel(rubric="output", options={"rubric": "short answers", **options})


def test_of_numbers_the_median_counts() -> None:
    score = verdict({"openai:a": 0.9, "openai:b": 0.7, "anthropic:c": 0.0}, numbers(threshold=0.6))
    assert (score.status, score.value, score.unit) == ("passed", 0.7, "turn")
    assert score.details["dissent"] == ["openai:a", "anthropic:c"]


def test_a_number_that_is_missing_is_an_error() -> None:
    down = JudgeError("refusal", "no")
    assert (
        verdict({"openai:a": 0.9, "openai:b": 0.9, "anthropic:c": down}, numbers()).status
        == "error"
    )


def test_what_findings_settle_no_model_is_asked() -> None:
    context = EvalContext(judge=Models(three("correct", "correct", "correct")))
    found = asyncio.run(panel().evaluate(capture("14_unknown_type"), None, context))
    settled = [score for score in found if score.judge is None]
    assert [score.details["label"] for score in settled] == ["wrong"]
    assert {score.type for score in found} == {"panel"}


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"models": ["openai:a"]}, "at least two"),
        ({"models": ["openai:a", "openai:a"]}, "two votes"),
        ({"models": ["openai:a", {"base_url": "http://localhost"}]}, "each with its name"),
        ({"rubric": "dispatch_corectness"}, "dispatch_correctness"),
        ({"rubric": "agent_chain"}, "`agent_chain` is not a rubric"),
        ({"options": {"treshold": 1}}, "threshold"),
        ({"options": {"judge": {"model": "openai:x"}}}, "belong under `models`"),
        ({"modles": ["openai:a"]}, "modles"),
    ],
)
def test_wrong_options_stop_the_run(options: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as caught:
        panel(**options)
    assert path in str(caught.value)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"rubric": "dispatch_corectness"}, "rubric"),
        ({"options": {"threshold": "high"}}, "options.threshold"),
        ({"options": {"judge": {"model": "openai:x"}}}, "options.judge.model"),
    ],
)
def test_errors_name_the_keyword_in_python_and_its_place_in_a_config(
    options: dict[str, Any], path: str
) -> None:
    with pytest.raises(InputError) as caught:
        panel(**options)
    assert [problem.path for problem in caught.value.problems] == [path]
    plain = {"rubric": "dispatch_correctness", "models": MODELS, **options}
    with pytest.raises(InputError) as caught:
        Panel.from_options(None, plain)
    assert [problem.path for problem in caught.value.problems] == [f"config.{path}"]


def test_a_case_may_override_its_options() -> None:
    changed = panel().with_options({"options": {"threshold": 0.4}})
    assert verdict(three("weak", "weak", "wrong"), changed).status == "passed"
    assert verdict(three("weak", "weak", "wrong")).status == "failed"


def test_a_panel_says_which_question_it_asks_and_whether_low_values_pass() -> None:
    rubric = shipped()["dispatch_correctness"]
    assert panel().rubric_hash == Judged(rubric).rubric_hash
    stricter = panel(options={"prompt": "The question: was it right?"})
    assert stricter.rubric_hash != panel().rubric_hash
    assert [panel().lower_is_better, panel(rubric="refusal").lower_is_better] == [
        False,
        Judged(shipped()["refusal"]).lower_is_better,
    ]


def test_the_details_of_a_panel_are_those_of_its_type() -> None:
    score = verdict(three("correct", "wrong", "correct"))
    details = msgspec.convert(score.details, PanelDetails)
    assert (details.label, details.tie, details.dissent) == ("correct", False, ["openai:b"])
    assert details.mapping() == score.details
