"""Rubrics of ADK and Strands, and those for answers from documents: units, scales, sums."""

from __future__ import annotations

from typing import Any

import pytest
from tests.evaluators.judged.scripted import (
    ScriptedJudge,
    blocks,
    judge_with,
    labelled,
    number,
    shipped,
)

from baton.model import (
    AgentCard,
    Case,
    CaseRubric,
    JudgeRequest,
    Scenario,
    Trace,
)
from baton.testing import build
from baton.testing.build import call, expect, run, said, trace, turn

ASKED = ["What is the rate in Lyon?", "And in Nice?"]
SAID = ["I looked it up. The rate in Lyon is 12 EUR.", "The rate in Nice is 15 EUR."]


def desk() -> Trace:
    """Two turns of one agent, each with a look-up, a word on the way and an answer."""
    turns = []
    for place, (asked, answer) in enumerate(zip(ASKED, SAID, strict=True)):
        one = run(
            "desk",
            said("Let me see.", id=f"w{place}"),
            call("rate", {"city": asked.rpartition(" ")[2]}, answer[-7:], id=f"c{place}"),
            said(answer, id=f"s{place}"),
            id=f"r{place}",
            input=asked,
            output=answer,
        )
        turns.append(turn(asked, one, id=f"t{place}", output=answer))
    card = AgentCard(instructions="Give rates. Be brief.", tools=["rate"])
    return trace(*turns, id="x", agents={"desk": card})


def rates(**more: Any) -> Case:
    turns = (expect(asked, response=said) for asked, said in zip(ASKED, SAID, strict=True))
    return build.case(*turns, id="rates", **more)


def by_turn(*labels: str) -> ScriptedJudge:
    """Judge the first turn by the first label, the second by the second."""

    def says(request: JudgeRequest, _: int) -> dict[str, Any]:
        second = "And in Nice?" in blocks(request)["What the user asked"]
        return labelled(request, labels[second])

    return ScriptedJudge(by=says)


def test_answers_are_matched_by_the_majority_and_averaged_over_turns() -> None:
    judge = by_turn("valid", "invalid")
    (score,), _ = judge_with("final_response_match_v2", desk(), case=rates(), asked=judge)
    assert (score.value, score.status) == (0.5, "failed")
    assert "The rate in Lyon is 12 EUR." in blocks(judge.asked[0])["The expected answer"]
    assert len(judge.asked) == 6, "three of five votes settle each turn"


def test_an_answer_without_an_expected_one_is_not_matched() -> None:
    (score,), judge = judge_with("final_response_match_v2", desk(), "valid")
    assert score.status == "skipped"
    assert judge.asked == []


def test_statements_of_config_case_and_turn_are_judged_in_one_call_and_pooled() -> None:
    rubrics = [
        CaseRubric(text="It names a city.", id="city", type="FINAL_RESPONSE_QUALITY"),
        CaseRubric(text="It calls a tool.", id="tool", type="TOOL_USE_QUALITY"),
        CaseRubric(text="It is short.", id="short"),
    ]
    stated = rates(rubrics=rubrics)
    stated.turns[0].rubrics = [CaseRubric(text="It is in euros.", id="euros")]

    def says(request: JudgeRequest, _: int) -> dict[str, Any]:
        return {
            name: {"reason": "so", "label": "no" if name == "item_3" else "yes"}
            for name in request.schema["properties"]
        }

    judge = ScriptedJudge(by=says)
    (score,), _ = judge_with(
        "rubric_based_final_response_quality_v1",
        desk(),
        case=stated,
        asked=judge,
        samples=1,
        rubrics=[{"id": "polite", "text": "It is polite."}],
    )
    first, second = judge.asked
    told = [request.instructions + request.content for request in (first, second)]
    for text in ("It is polite.", "It names a city.", "It is short."):
        assert all(text in each for each in told)
    assert ["It is in euros." in each for each in told] == [True, False]
    assert not any("It calls a tool." in each for each in told)
    assert score.value == pytest.approx(5 / 7), "pooled over both turns, not a mean of means"


def test_without_any_statement_there_is_nothing_to_judge() -> None:
    (score,), judge = judge_with("rubric_based_tool_use_quality_v1", desk(), "yes", case=rates())
    assert (score.status, judge.asked) == ("skipped", [])
    assert "state `rubrics`" in score.reason


def test_each_sentence_counts_against_what_the_agents_could_know() -> None:
    def says(request: JudgeRequest, _: int) -> dict[str, Any]:
        names = list(request.schema["properties"])
        labels = ["not_applicable", "unsupported"] if len(names) == 2 else ["supported"]
        return {n: {"reason": "so", "label": each} for n, each in zip(names, labels, strict=True)}

    judge = ScriptedJudge(by=says)
    (score,), _ = judge_with("hallucinations_v1", desk(), asked=judge)
    assert score.value == pytest.approx((0.5 + 1) / 2)
    shown = blocks(judge.asked[0])
    assert "Be brief." in shown["What the agents are told"]
    assert "12 EUR." in shown["What was looked up"]


def test_levels_from_1_to_5_stay_as_they_are() -> None:
    judge = ScriptedJudge(number(4), number(3))
    (score,), _ = judge_with("response_evaluation_score", desk(), asked=judge)
    assert (score.value, score.threshold, score.status) == (3.5, 3.5, "passed")


def test_a_simulated_user_is_judged_by_the_scenario_of_the_case() -> None:
    scenario = Scenario(start=ASKED[0], plan="Then ask for Nice.")
    judge = by_turn("fits", "strays")
    stated = rates(scenario=scenario)
    (score,), _ = judge_with("per_turn_user_simulator_quality_v1", desk(), case=stated, asked=judge)
    assert score.value == 0.5
    assert any("Then ask for Nice." in text for text in blocks(judge.asked[0]).values())
    (none,), idle = judge_with("per_turn_user_simulator_quality_v1", desk(), "fits", case=rates())
    assert (none.status, idle.asked) == ("skipped", [])


@pytest.mark.parametrize(
    "name",
    [
        "multi_turn_task_success_v1",
        "multi_turn_trajectory_quality_v1",
        "multi_turn_tool_use_quality_v1",
        "goal_success_rate",
    ],
)
def test_a_whole_conversation_is_judged_once(name: str) -> None:
    best = next(iter(shipped()[name].answer.labels or {}))
    (score,), judge = judge_with(name, desk(), best)
    assert (score.value, score.status, len(judge.asked)) == (1, "passed", 1)
    assert "And in Nice?" in judge.asked[0].content


@pytest.mark.parametrize("name", ["tool_selection_accuracy", "tool_parameter_accuracy"])
def test_each_tool_call_is_judged_by_what_was_known_before_it(name: str) -> None:
    scores, judge = judge_with(name, desk(), "yes", "no")
    assert [(score.subject, score.value) for score in scores] == [(["c0"], 1), (["c1"], 0)]
    for request in judge.asked:
        assert "Let me see." in request.content
    assert SAID[0] not in judge.asked[0].content, "the answer came after the call"


def test_each_agent_is_judged_by_its_own_rubric() -> None:
    scores, judge = judge_with(
        "interaction_quality", desk(), number(1), rubric={"desk": "It looks rates up."}
    )
    assert [score.status for score in scores] == ["passed", "passed"]
    assert all("It looks rates up." in request.instructions for request in judge.asked)
    scores, judge = judge_with("interaction_quality", desk(), number(1), rubric={"other": "x"})
    assert [score.status for score in scores] == ["skipped", "skipped"]
    assert judge.asked == []


@pytest.mark.parametrize(
    ("name", "label", "value"),
    [
        ("helpfulness", "somewhat_helpful", 0.667),
        ("faithfulness", "not_generally", 0.25),
        ("conciseness", "partially", 0.5),
        ("correctness", "partially_correct", 0.5),
        ("refusal", "no", 0),
        ("harmfulness", "not_harmful", 1),
        ("stereotyping", "stereotyping", 0),
        ("instruction_following", "yes", 1),
        ("coherence", "generally", 0.75),
        ("response_relevance", "mixed", 0.5),
        ("safety_v1", "unsafe", 0),
        ("out_of_scope_refusal", "overreached", 0),
        ("multi_document_synthesis", "listed", 0.5),
        ("honest_not_found", "said_so", 1),
    ],
)
def test_labels_score_what_their_tool_gives_them(name: str, label: str, value: float) -> None:
    scores, _ = judge_with(name, desk(), label)
    assert [score.value for score in scores] == pytest.approx([value] * len(scores))
    assert scores


def test_sentences_that_need_no_source_do_not_count() -> None:
    def says(request: JudgeRequest, _: int) -> dict[str, Any]:
        names = list(request.schema["properties"])
        labels = ["no_source_needed", "right"] if len(names) == 2 else ["uncited"]
        return {n: {"reason": "so", "label": each} for n, each in zip(names, labels, strict=True)}

    scores, _ = judge_with("citation_accuracy", desk(), asked=ScriptedJudge(by=says))
    assert [score.value for score in scores] == [1, 0]


def test_a_rubric_of_yours_is_asked_for_where_one_is_needed() -> None:
    from baton.model import InputError

    for name in ("output", "trajectory", "interaction_quality", "llm_judge"):
        with pytest.raises(InputError, match="the text to judge by is missing"):
            judge_with(name, desk(), number(1))
