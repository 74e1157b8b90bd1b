"""The three rubrics for dispatches over recorded Claude sessions: what each prompt holds."""

from __future__ import annotations

import pytest
from tests.evaluators.judged.scripted import blocks, capture, judge_with, titles

USER = "What the user asked"
BEFORE = "What the caller saw and did before"
CALL = "The dispatch, word for word"
CATALOGUE = "The agents there are"
TRANSCRIPT = "All that the receiver did"
RECEIVED = "What the receiver was really given"
RESULT = "What came back"
AFTER = "What the caller did then"
PROVEN = "What the record proves by itself"


def test_correctness_sees_what_the_caller_saw_the_call_and_the_catalogue() -> None:
    found, judge = judge_with("dispatch_correctness", capture("01_correct_dispatch"), "correct")
    assert [(s.subject, s.status, s.value) for s in found] == [
        (["dispatch1"], "passed", 1.0),
        (["dispatch2"], "passed", 1.0),
    ]
    second = blocks(judge.asked[1])
    assert "SHOP-11] Rename retry()" in second[USER]
    # What came before: the first dispatch with its result, and what the caller said of it.
    assert "handed work to research-agent" in second[BEFORE]
    assert "got back from research-agent (completed):" in second[BEFORE]
    assert "Research found the definition" in second[BEFORE]
    assert "refactor-agent" not in second[BEFORE]
    assert '"subagent_type": "refactor-agent"' in second[CALL]
    assert second[CALL].count("[job F-11] In /workspace/shop/src/retry.py") == 1
    assert "tools that the receiver may use:\n    Read, Edit" in second[CALL]
    assert "agent research-agent" in second[CATALOGUE]
    assert "Finds and reads code. Read-only." in second[CATALOGUE]
    assert "Bash" in second["Tools of the caller itself"]
    assert not {TRANSCRIPT, RESULT, AFTER} & set(second)


def test_fidelity_sees_the_hand_off_what_was_given_and_all_the_receiver_did() -> None:
    found, judge = judge_with("scope_fidelity", capture("03_scope_bleed"), "outside")
    assert [(s.status, s.value, s.threshold) for s in found] == [("failed", 0.0, 0.9)]
    assert found[0].details["to"] == "validator-agent"
    (shown,) = map(blocks, judge.asked)
    assert "Do not change any file." in shown[RECEIVED]
    assert "called the tool Edit with:" in shown[TRANSCRIPT]
    assert "which came back (refused) with:" in shown[TRANSCRIPT]
    assert "sed -i" in shown[TRANSCRIPT]
    assert "tried to use `Edit`" in shown[PROVEN]
    assert BEFORE not in shown
    assert AFTER not in shown


def test_integration_sees_the_result_and_what_the_caller_did_then() -> None:
    found, judge = judge_with("result_integration", capture("03_scope_bleed"), "partly")
    assert [(s.status, s.value) for s in found] == [("failed", 0.5)]
    (shown,) = map(blocks, judge.asked)
    assert shown[RESULT] == "Compiles. I also raised MAX_ATTEMPTS to 5, which looked too low."
    assert shown[AFTER] == (
        "said:\n    The validator reports the file compiles and that it also tidied the code."
    )
    assert TRANSCRIPT not in shown


def test_a_background_dispatch_is_judged_by_what_followed_its_real_answer() -> None:
    _, judge = judge_with("result_integration", capture("08_background_dispatch"), "used")
    (shown,) = map(blocks, judge.asked)
    assert shown[RESULT] == "retry() is defined in src/retry.py line 3."
    assert shown[AFTER] == "said:\n    retry() is defined in src/retry.py, line 3."


def test_a_message_to_an_agent_that_worked_before_says_so() -> None:
    _, judge = judge_with("dispatch_correctness", capture("09_continued"), "correct")
    assert blocks(judge.asked[1])[CALL].splitlines()[0] == (
        "handed work to research-agent "
        "(delegate, dispatch2, in the background, to the agent that did dispatch1)"
    )


def test_parallel_dispatches_are_shown_to_each_other_as_siblings() -> None:
    _, judge = judge_with("scope_fidelity", capture("10_parallel"), "inside")
    shown = [blocks(request) for request in judge.asked]
    others = [each["What else the caller handed out in this turn"] for each in shown]
    assert len(shown) > 1
    assert all("handed work to" in text for text in others)
    for each, text in zip(shown, others, strict=True):
        own = each[CALL].split("[job ")[1].split("]")[0]
        assert f"[job {own}]" not in text


def test_the_receiver_of_a_nested_dispatch_is_judged_by_its_own_steps() -> None:
    found, judge = judge_with("scope_fidelity", capture("11_nested"), "inside")
    agents = [score.details["to"] for score in found]
    shown = [blocks(request)[TRANSCRIPT] for request in judge.asked]
    assert len(agents) == len(set(agents)) == len(shown)
    for agent, text in zip(agents, shown, strict=True):
        at_work = [line for line in text.splitlines() if line.startswith("agent ")]
        assert at_work == [f"agent {agent} at work (completed)"]


@pytest.mark.parametrize(
    ("rubric", "title"),
    [
        ("dispatch_correctness", CATALOGUE),
        ("dispatch_correctness", "Tools of the caller itself"),
        ("scope_fidelity", RECEIVED),
    ],
)
def test_what_may_be_unknown_is_said_to_be_and_the_score_names_it(rubric: str, title: str) -> None:
    trace = capture("03_scope_bleed")
    trace.agents = {}
    for run in trace.turns[0].runs:
        run.input, run.tools_offered = None, None
    trace.unknown += ["run.input"]
    found, judge = judge_with(rubric, trace, "correct" if rubric.startswith("disp") else "inside")
    (shown,) = map(blocks, judge.asked)
    assert shown[title].startswith("not recorded: ")
    assert found[0].details["unknown"]


def test_what_has_to_be_known_and_is_not_is_skipped_with_what_would_supply_it() -> None:
    trace = capture("03_scope_bleed")
    trace.turns[0].dispatches[0].result = None
    trace.turns[0].dispatches[0].unknown = ["result"]
    found, judge = judge_with("result_integration", trace, "used")
    assert judge.asked == []
    assert [(s.status, s.value) for s in found] == [("skipped", None)]
    assert found[0].reason.endswith("record results of calls")


def test_a_case_without_expectations_is_shown_none() -> None:
    _, judge = judge_with("dispatch_correctness", capture("03_scope_bleed"), "correct")
    assert "Expected dispatches" not in titles(judge.asked)[0]
