"""`handoff_loops`: control going round, messages and calls repeated; and what is no loop."""

from __future__ import annotations

from typing import Any

import pytest

from baton.model import (
    Score,
    ToolCall,
    Trace,
    Turn,
)
from baton.testing import verdict
from baton.testing.build import Passing, call, delegate, run, said, trace, transfer, turn


def passed_round(agents: str, *, says: list[str] | None = None, prompts: list[str] | None = None) -> Turn:  # fmt: skip
    """Control that goes from letter to letter by transfers."""
    runs = []
    for i, name in enumerate(agents):
        words = [] if says is None or i == len(agents) - 1 else [said(says[i], id=f"s{i}")]
        prompt = prompts[i] if prompts and i < len(prompts) else None
        moves = [transfer(agents[i + 1], prompt, id=f"d{i}")] if i + 1 < len(agents) else []
        runs.append(run(name, *words, *moves, id=f"r{i}"))
    return turn(*runs, id="t1")


def asked(*talks: tuple[str, str], between: ToolCall | None = None, **fields: Any) -> Turn:
    """A lead that delegates each prompt to a helper and gets the answer."""
    steps: list[ToolCall | Passing] = []
    for i, (prompt, answer) in enumerate(talks):
        if between is not None and i:
            steps.append(between)
        steps.append(delegate("helper", prompt, id=f"d{i}", result=answer, **fields))
    helpers = [run("helper", id=f"k{i}") for i in range(len(talks))]
    return turn(run("lead", *steps, id="r"), *helpers, id="t1")


def called(*calls: tuple[str, str], name: str = "look") -> Turn:
    made = [call(name, {"q": q}, result, id=f"c{i}") for i, (q, result) in enumerate(calls)]
    return turn(run("lead", *made, id="r"), id="t1")


def looped(actual: Trace | Turn, **options: Any) -> Score:
    return verdict(
        "handoff_loops", trace(actual) if isinstance(actual, Turn) else actual, **options
    )


def kinds(found: Score) -> list[str]:
    return [each["kind"] for each in found.details["findings"]]


def test_ping_pong_in_which_nobody_does_anything_is_a_loop() -> None:
    found = looped(passed_round("abababa"))
    assert (found.status, found.value, kinds(found)) == ("failed", 0.0, ["hand_off_cycle"])
    assert found.reason == (
        "turn 1: `a` → `b` → `a`: 3 times round, and nothing new after the first"
    )
    assert {"d0", "d5", "r6"} <= set(found.evidence[0].ids)


def test_fewer_rounds_are_none_and_an_option_says_how_many_it_takes() -> None:
    assert looped(passed_round("ababa")).status == "passed"
    assert looped(passed_round("ababa"), rounds=2).status == "failed"
    assert looped(passed_round("abababa"), rounds=4).status == "passed"


def test_longer_cycles_count_and_the_way_into_them_does_not() -> None:
    found = looped(passed_round("xabcabcabca"))
    assert found.details["findings"][0]["agents"] == ["b", "c", "a"]
    assert found.details["findings"][0]["rounds"] == 3


def test_a_conversation_that_moves_on_is_no_loop() -> None:
    says = ["Which maps?", "Found 3.", "Which is not damaged?", "Map 1.", "And 1890?", "Map 9."]
    assert looped(passed_round("abababa", says=says)).status == "passed"
    assert looped(passed_round("abababa", prompts=says)).status == "passed"


def test_the_same_words_every_time_are_a_loop_all_the_same() -> None:
    says = ["Over to you, please.", "Not mine."] * 3
    says[2] = "Again over to you."
    assert kinds(looped(passed_round("abababa", says=says))) == ["hand_off_cycle"]


def test_contents_that_nobody_recorded_leave_it_open() -> None:
    actual = trace(passed_round("abababa"), unknown=["dispatch.prompt"])
    found = looped(actual)
    assert found.status == "skipped"
    assert "record prompts and answers" in found.reason


def test_a_supervisor_that_gets_results_back_is_no_loop() -> None:
    talks = [("Check lamp 1", "on"), ("Check lamp 2", "off"), ("Check lamp 3", "on")]
    assert looped(asked(*talks)).status == "passed"


def test_the_same_request_with_the_same_answer_is_a_loop() -> None:
    talk = ("Find maps of the harbour", "Maps 1 and 3 are fine.")
    found = looped(asked(talk, ("Please find maps of the harbour again", talk[1]), talk))
    assert kinds(found) == ["repeated_dispatch"]
    assert found.evidence[0].ids == ["d0", "d1", "d2"]
    assert looped(asked(talk, talk)).status == "passed"


def test_the_same_request_that_brings_something_new_is_not_one() -> None:
    page = "Next page, please"
    talks = [(page, "Storms at sea"), (page, "A lamp is lit"), (page, "Bread in the morning")]
    assert looped(asked(*talks)).status == "passed"


def test_work_between_two_equal_requests_may_change_the_answer() -> None:
    talk = ("Run the tests", "2 fail")
    fix = ToolCall(id="c1", name="Edit")
    assert looped(asked(talk, talk, talk, between=fix)).status == "passed"


def test_equal_requests_issued_together_are_a_vote() -> None:
    talk = ("Is it true?", "yes")
    assert looped(asked(talk, talk, talk, group=1)).status == "passed"


def test_the_direction_of_a_request_counts() -> None:
    there, back = ("Change EUR to USD", "done"), ("Change USD to EUR", "done")
    assert looped(asked(there, back, there, back)).status == "passed"


def test_equal_calls_in_a_row_with_equal_answers_are_a_loop() -> None:
    found = looped(called(("x", "none"), ("x", "none"), ("x", "none")))
    assert kinds(found) == ["repeated_call"]
    assert found.evidence[0].ids == ["r", "c0", "c1", "c2"]
    assert looped(called(("x", "none"), ("x", "none"))).status == "passed"


def test_calls_that_differ_or_learn_something_are_none() -> None:
    assert looped(called(("x", "10 %"), ("x", "50 %"), ("x", "done"))).status == "passed"
    assert looped(called(("x", "-"), ("y", "-"), ("x", "-"), ("x", "-"))).status == "passed"


def test_asking_until_the_answer_changes_is_not_one() -> None:
    polled = called(*([("job 7", "red")] * 5), ("job 7", "green"))
    assert looped(polled).status == "passed"
    moved_on = called(*([("job 7", "red")] * 5), ("job 8", "green"))
    assert kinds(looped(moved_on)) == ["repeated_call"]


@pytest.mark.parametrize(
    "answer", ["503 busy", "Rate limit reached", "Try again later.", '{"status": "pending"}']
)
def test_what_may_pass_with_time_is_asked_for_twice_as_often(answer: str) -> None:
    assert looped(called(*([("x", answer)] * 5))).status == "passed"
    assert kinds(looped(called(*([("x", answer)] * 6)))) == ["repeated_call"]
    assert looped(called(*([("x", "no such page, 404")] * 3))).status == "failed"


def test_tools_that_wait_may_be_called_again() -> None:
    turn = called(("x", "busy"), ("x", "busy"), ("x", "busy"), name="wait_for")
    assert looped(turn, ignore_tools=["wait_for"]).status == "passed"


def test_a_turn_that_broke_is_an_error_unless_its_loop_is_proven() -> None:
    broken = passed_round("ab")
    broken.status = "failed"
    assert looped(broken).status == "error"
    loop = passed_round("abababa")
    loop.status = "failed"
    assert looped(loop).status == "failed"


def test_hand_offs_that_are_not_told_are_skipped() -> None:
    turn = passed_round("ab")
    turn.unknown = ["dispatches"]
    assert looped(turn).status == "skipped"
