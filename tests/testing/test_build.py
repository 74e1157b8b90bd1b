"""`baton.testing.build`: traces, cases and scores in a line each, consistent in themselves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import Baton

import baton
from baton import InputError
from baton.model import Content, Dispatch, Said, ToolCall, Trace, integrity_problems
from baton.testing import verdict, verdicts
from baton.testing.build import (
    answered,
    call,
    case,
    cases,
    delegate,
    dispatch,
    evaluation,
    expect,
    give_back,
    result,
    run,
    said,
    score,
    sequence,
    trace,
    transfer,
    turn,
)

REFUND = trace(
    "Refund order 42.",
    run("desk", call("lookup_order", {"id": 42}), delegate("billing", "Refund it.", tool="ask")),
    run("billing", call("refund", {"id": 42}, "ok"), "Refunded.", output="Refunded."),
)


def test_a_delegated_task_is_linked_to_its_runs_and_its_call() -> None:
    (one,) = REFUND.turns
    desk, billing = one.runs
    (made,) = one.dispatches
    assert one.input == Content(text="Refund order 42.")
    assert [type(step).__name__ for step in desk.steps] == [
        "ToolCall",
        "ToolCall",
        "HandedOff",
        "GotBack",
    ]
    assert (made.from_run, made.from_agent, made.runs) == (desk.id, "desk", [billing.id])
    assert made.call == desk.steps[1].id
    assert billing.started_by == [made.id]
    assert made.prompt == Content(text="Refund it.")
    refund, words = billing.steps
    assert isinstance(refund, ToolCall)
    assert refund.result == Content(text="ok")
    assert isinstance(words, Said)


@pytest.mark.parametrize(
    "built",
    [
        REFUND,
        trace(),
        trace(run("a", transfer("b")), run("b", transfer("a")), run("a")),
        trace(turn("x", run("a", sequence("b")), run("b")), turn("y", run("a", delegate("b")))),
        trace(
            run("a", delegate("b"), delegate("b")),
            run("b"),
            run("b", give_back("a", "done")),
            run("a"),
        ),
        trace(run("a", delegate("b", runs=[], status="refused")), run("b")),
    ],
)
def test_what_is_built_is_a_valid_record(built: Trace) -> None:
    assert integrity_problems(built) == []
    assert msgspec.json.decode(msgspec.json.encode(built), type=Trace) == built


def test_each_dispatch_to_an_agent_starts_the_next_of_its_runs() -> None:
    built = trace(run("a", delegate("b"), delegate("b")), run("b"), run("b"))
    assert [one.runs for one in built.turns[0].dispatches] == [["r2"], ["r3"]]


def test_ids_are_unique_across_turns() -> None:
    same = turn("Again.", run("a", delegate("b"), id="mine"), run("b"))
    first, second = trace(same, same).turns
    assert [one.id for one in first.runs] == ["mine", "r2"]
    assert [one.id for one in second.runs] == ["t2.mine", "t2.r2"]
    assert second.dispatches[0].runs == ["t2.r2"]
    assert same.runs[0].id == "mine"


def test_its_own_dispatch_is_taken_as_it_is() -> None:
    given = Dispatch(id="d9", kind="sequence", to_agent="a", runs=["r1"])
    assert trace(turn(run("a"), given)).turns[0].dispatches == [given]


def test_a_dispatch_may_be_made_by_itself_and_its_fields_go_before_those_of_its_run() -> None:
    made = dispatch("b", "go", id="d7", kind="transfer", result={"ok": True}, runs=["r2"])
    assert made.prompt == Content(text="go")
    assert made.result == Content(data={"ok": True})
    assert trace(turn(run("a"), run("b"), made)).turns[0].dispatches == [made]
    (stated,) = trace(run("a", delegate("b", from_agent="c"))).turns[0].dispatches
    assert (stated.from_agent, stated.from_run) == ("c", "r1")


def test_the_call_that_makes_a_dispatch_has_its_arguments() -> None:
    (desk,) = trace(run("desk", delegate("b", tool="ask", arguments={"agent": "b"}))).turns[0].runs
    asked = desk.steps[0]
    assert isinstance(asked, ToolCall)
    assert (asked.name, asked.arguments, asked.dispatch) == ("ask", {"agent": "b"}, "d1")


def test_an_evaluation_has_a_folder_with_the_cases_in_their_order(
    baton: Baton, tmp_path: Path
) -> None:
    results = [result("passed", id=name, repeat=repeat) for name in "ba" for repeat in (0, 1)]
    folder = evaluation(*results, result("failed", id="c")).save(tmp_path / "stored")
    outcome = baton("report", folder, "--json")
    report = json.loads(outcome.out)
    assert outcome.code == 1
    assert [(one["case_id"], one["repeat"]) for one in report["results"]] == [
        ("b", 0), ("b", 1), ("a", 0), ("a", 1), ("c", 0),
    ]  # fmt: skip


def test_data_is_data_and_text_is_text() -> None:
    one = turn(run("a", said({"ok": True})), output=[1, 2])
    assert one.output == Content(data=[1, 2])
    assert one.runs[0].steps == [Said(id="s1", content=Content(data={"ok": True}))]


def test_what_is_stated_of_a_turn_holds_for_every_message() -> None:
    made = case(
        "Refund it.", "And again.", id="refund", agents=["desk"], tool_calls=["a", ("b", {})]
    )
    assert [one.input.text for one in made.turns] == ["Refund it.", "And again."]
    assert [one.agents for one in made.turns] == [["desk"], ["desk"]]
    assert [one.arguments for one in made.turns[0].tool_calls or []] == [None, {}]
    assert case(expect("x", response="y"), tags=["t"]).turns[0].response == Content(text="y")


def test_the_status_of_an_evaluation_is_that_of_its_scores() -> None:
    made = evaluation(result("passed", id="a"), result(score("failed", "tool_calls"), id="b"))
    assert (made.status, made.exit_code) == ("failed", 1)
    assert [(one.evaluator, one.passed, one.failed) for one in made.evaluators] == [
        ("agent_chain", 1, 0),
        ("tool_calls", 0, 1),
    ]


def test_a_verdict_is_the_only_score_of_an_evaluator() -> None:
    assert verdict("agent_chain", REFUND, case(agents=["desk", "billing"])).status == "passed"
    renamed = case(agents=["desk", "money"])
    assert verdict("agent_chain", REFUND, renamed, agent_names={"billing": "money"}).value == 1
    assert verdict("agent_chain", REFUND, renamed, sequence_match_type="exact").value == 0
    with pytest.raises(InputError, match="no_such_option"):
        verdict("agent_chain", REFUND, renamed, no_such_option=1)
    two = trace(run("a", delegate("b"), delegate("c")), run("b"), run("c"))
    with pytest.raises(ValueError, match="2 scores"):
        verdict("dispatch_completed", two)
    assert len(verdicts("dispatch_completed", two)) == 2


def test_answers_are_a_turn_each_and_cases_differ_in_their_ids() -> None:
    built = answered("Yes.", {"paid": True}, None, unknown=["usage"])
    assert [one.output for one in built.turns] == [
        Content(text="Yes."), Content(data={"paid": True}), None,
    ]  # fmt: skip
    assert built.unknown == ["usage"]
    assert cases("a", "b", agents=["desk"]) == [case(id=one, agents=["desk"]) for one in "ab"]


def test_the_tests_in_the_docs_pass() -> None:
    page = (Path(__file__).parents[2] / "docs" / "pytest.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.+?)```", page, re.DOTALL)
    (code,) = (text for text in blocks if "REFUND" in text)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - the example of our own page
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


def test_an_evaluation_is_the_one_that_scoring_returns(tmp_path: Path) -> None:
    made = evaluation(result("passed", id="a"), result("failed", id="b"))
    assert isinstance(made, baton.Evaluation)
    assert (made.status, made.exit_code, len(made)) == ("failed", 1, 2)
    made.to_junit(tmp_path / "junit.xml")
    assert 'failures="1"' in (tmp_path / "junit.xml").read_text()
