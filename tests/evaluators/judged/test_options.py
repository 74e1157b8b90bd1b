"""Options of a config: the user's own text, parts of a rubric, the judge, and what is judged."""

from __future__ import annotations

from typing import Any

import pytest
from tests.evaluators.judged.scripted import (
    Judged,
    ScriptedJudge,
    capture,
    judge_with,
    scores,
    shipped,
)
from tests.findings.trips import said, trip

from baton.model import InputError
from baton.runner.plan import make_plan

TRACE = trip("Paris.", said("Paris."))


def test_three_lines_are_a_rubric_of_ones_own() -> None:
    (planned,) = make_plan(
        [{"type": "llm_judge", "config": {"rubric": "The answer names a city."}}]
    ).evaluators
    assert isinstance(planned.evaluator, Judged)
    judge = ScriptedJudge("met")
    (found,) = scores(planned.evaluator, TRACE, judge)
    assert found.status == "passed"
    assert "\n\nThe answer names a city.\n\n" in judge.asked[0].instructions
    assert "{rubric}" not in judge.asked[0].instructions


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("llm_judge", {}, "config.rubric: the text to judge by is missing"),
        ("task_completion", {"rubric": "x"}, "config.rubric: the prompt has no placeholder for it"),
        ("task_completion", {"treshold": 1}, "config.treshold: unknown key; did you mean `thresh"),
        ("task_completion", {"samples": 0}, "config.samples: expected a whole number >= 1, got 0"),
        (
            "task_completion",
            {"inputs": ["call"]},
            "config.inputs[0]: `call` is an input of dispatch",
        ),
        ("task_completion", {"unit": "turns"}, "did you mean `turn`?"),
        ("scope_fidelity", {"answer": {"choices": {"a": 1, "b": 0}}}, "no label `outside`"),
    ],
)
def test_options_that_are_wrong_stop_the_run(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as raised:
        Judged.from_options(shipped()[name], None, options)
    assert said in str(raised.value)
    with pytest.raises(InputError) as raised:
        Judged(name, **options)
    assert said.removeprefix("config.") in str(raised.value)
    assert "config" not in str(raised.value)


def test_another_question_has_another_version_and_another_threshold_has_not() -> None:
    rubric = shipped()["llm_judge"]
    first = Judged(rubric, rubric="A").version
    assert first.startswith("1+")
    assert first == Judged(rubric, rubric="A", threshold=0.5).version
    assert first != Judged(rubric, rubric="B").version
    assert Judged(shipped()["task_completion"], threshold=0.5).version == "1"


def test_a_rubric_for_each_agent_judges_those_that_have_one() -> None:
    options: dict[str, Any] = {
        "unit": "run",
        "inputs": ["answer"],
        "rubric": {"research-agent": "It names lines.", "main": "It sums up."},
    }
    trace = capture("01_correct_dispatch")
    judge = ScriptedJudge("met")
    found = scores(Judged(shipped()["llm_judge"], **options), trace, judge)
    assert [(s.details["agent"], s.status) for s in found] == [
        ("main", "passed"),
        ("research-agent", "passed"),
        ("refactor-agent", "skipped"),
    ]
    assert "It sums up." in judge.asked[0].instructions
    assert "It names lines." in judge.asked[1].instructions


def test_agents_narrow_down_what_is_judged() -> None:
    trace = capture("01_correct_dispatch")
    found, _ = judge_with("scope_fidelity", trace, "inside", agents=["refactor-agent"])
    assert [score.subject for score in found] == [["dispatch2"]]
    found, _ = judge_with("scope_fidelity", trace, "inside", agents=["nobody"])
    assert [(s.status, s.reason) for s in found] == [("skipped", "no dispatch to judge")]


def test_hand_offs_known_only_from_order_are_judged_when_asked_for() -> None:
    trace = capture("03_scope_bleed")
    trace.turns[0].dispatches[0].basis = "order"
    assert judge_with("scope_fidelity", trace, "inside")[0][0].status == "skipped"
    assert judge_with("scope_fidelity", trace, "inside", order=True)[0][0].status == "passed"


def test_what_a_program_passes_on_is_no_decision_unless_asked_for() -> None:
    trace = trip("r", said("Done."), kind="sequence")
    (found,), _ = judge_with("dispatch_correctness", trace, "correct")
    assert (found.status, found.reason) == ("skipped", "no dispatch to judge")
    (found,), _ = judge_with("dispatch_correctness", trace, "correct", kinds=["sequence"])
    assert found.status == "passed"
    assert judge_with("scope_fidelity", trace, "inside")[0][0].status == "passed"


def test_settings_of_the_judge_may_be_those_of_one_evaluator() -> None:
    _, judge = judge_with("task_completion", TRACE, "complete", judge={"model": "openai:x"})
    assert judge.options == [{"model": "openai:x"}]
    _, judge = judge_with("task_completion", TRACE, "complete", judge={"samples": 2})
    assert len(judge.asked) == 2


def test_samples_of_an_option_go_before_those_of_the_judge() -> None:
    judge = ScriptedJudge("complete", samples=3)
    judge_with("task_completion", TRACE, asked=judge)
    assert len(judge.asked) == 2
    judge = ScriptedJudge("complete", samples=3)
    judge_with("task_completion", TRACE, asked=judge, samples=1)
    assert len(judge.asked) == 1


def test_long_material_is_cut_in_the_middle_and_the_score_says_so() -> None:
    text = "start " + "x" * 5000 + " end"
    trace = trip("r", said(text), user="Count.")
    (found,), judge = judge_with("task_completion", trace, "complete", max_chars=1000)
    assert found.details["cut"]["answer"] > 1000
    shown = judge.asked[0].content
    assert "start x" in shown
    assert "x end" in shown
    assert "characters left out here" in shown
    assert "Count." in shown


def test_a_turn_that_broke_is_an_error_and_its_hand_offs_are_judged_all_the_same() -> None:
    trace = capture("03_scope_bleed")
    trace.turns[0].status, trace.turns[0].error = "failed", "it crashed"
    (found,), judge = judge_with("task_completion", trace, "complete")
    assert (found.status, found.reason, judge.asked) == ("error", "turn 1 failed: it crashed", [])
    (found,), _ = judge_with("scope_fidelity", trace, "inside")
    assert found.status == "passed"


def test_a_case_may_override_options() -> None:
    evaluator = Judged(shipped()["task_completion"], name="strict", threshold=1)
    assert evaluator.with_options({}) is evaluator
    loose = evaluator.with_options({"threshold": 0.5})
    assert (loose.threshold, loose.name, evaluator.threshold) == (0.5, "strict", 1)
