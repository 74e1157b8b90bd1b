"""Dispatches that a function tells of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton as library
from baton.model import (
    Case,
    CaseResult,
    Content,
    Dispatch,
    ExpectedTurn,
    ProviderError,
    Trace,
    Turn,
    integrity_problems,
    known,
)
from baton.providers.answer_turns import stated_turn
from baton.testing import build, verdict

Run = Callable[..., Any]


def traced(agents: list[str] | None, *dispatches: dict[str, Any], **more: Any) -> Trace:
    """Tell of some dispatches, and check that what comes of it is sound."""
    answer = {"output": "x", "dispatches": list(dispatches), **more}
    if agents is not None:
        answer["agents"] = agents
    turn = stated_turn(answer, "t").turn
    trace = build.trace(turn)
    assert integrity_problems(trace) == []
    return trace


def arrows(trace: Trace) -> list[tuple[str | None, str, str, int]]:
    """Return each dispatch as sending run, receiving run, status and depth."""
    return [
        (d.from_run and d.from_run[-4:], ",".join(id_[-4:] for id_ in d.runs), d.status, d.depth)
        for turn in trace.turns
        for d in turn.dispatches
    ]


def steps(turn: Turn, number: int) -> list[str]:
    return [type(step).__name__ for step in turn.runs[number].steps]


def only(trace: Trace) -> Dispatch:
    (dispatch,) = trace.turns[0].dispatches
    return dispatch


def hand_off(sender: str | None, to: str, **more: Any) -> dict[str, Any]:
    return {"to": to, **({"from": sender} if sender else {}), **more}


@pytest.mark.parametrize(
    ("kind", "depth", "sent", "back"),
    [("transfer", 0, 1, 0), ("delegate", 1, 1, 1), ("sequence", 0, 0, 0)],
)
def test_each_kind_ties_its_two_runs_together(kind: str, depth: int, sent: int, back: int) -> None:
    said = hand_off("router", "billing", kind=kind, prompt="pay", result={"paid": True})
    trace = traced(["router", "billing"], said)
    dispatch = only(trace)
    assert (dispatch.kind, dispatch.from_agent, dispatch.to_agent) == (kind, "router", "billing")
    assert arrows(trace) == [("run1", "run2", "completed", depth)]
    assert dispatch.prompt == Content(text="pay")
    assert dispatch.result == Content(data={"paid": True})
    assert steps(trace.turns[0], 0) == ["HandedOff"] * sent + ["GotBack"] * back
    assert trace.turns[0].runs[1].started_by == [dispatch.id]


def test_transfer_is_what_is_meant_by_default() -> None:
    assert only(traced(["a", "b"], hand_off("a", "b"))).kind == "transfer"


def test_what_is_left_out_is_unknown_and_what_is_none_was_not_there() -> None:
    trace = traced(["a", "b"], hand_off("a", "b"))
    untold = ("prompt", "result", "call", "group", "mode", "tools_allowed")
    assert not any(known(trace, only(trace), field) for field in untold)
    trace = traced(["a", "b"], hand_off("a", "b", prompt=None, result=None))
    assert known(trace, only(trace), "prompt")
    assert known(trace, only(trace), "result")


def test_a_list_of_calls_has_all_calls_and_none_of_them_handed_over() -> None:
    case = build.case(tool_calls=["pay"])
    trace = traced(["a", "b"], hand_off("a", "b"))
    assert verdict("tool_calls", trace, case).status == "skipped"
    trace = traced(["a", "b"], hand_off("a", "b"), tool_calls=[{"name": "look"}])
    assert verdict("tool_calls", trace, case).status == "failed"


def test_a_hand_off_back_goes_to_the_next_visit_and_not_to_the_first() -> None:
    there, back = hand_off("a", "b"), hand_off("b", "a")
    trace = traced(["a", "b", "a", "b"], there, back, there)
    assert arrows(trace) == [
        ("run1", "run2", "completed", 0),
        ("run2", "run3", "completed", 0),
        ("run3", "run4", "completed", 0),
    ]


def test_two_delegates_of_one_agent_and_one_below_them_have_runs_and_depths_of_their_own() -> None:
    delegate = {"kind": "delegate"}
    trace = traced(
        ["lead", "worker", "worker", "helper"],
        hand_off("lead", "worker", **delegate),
        hand_off("lead", "worker", **delegate),
        hand_off("worker", "helper", **delegate),
    )
    assert arrows(trace) == [
        ("run1", "run2", "completed", 1),
        ("run1", "run3", "completed", 1),
        ("run3", "run4", "completed", 2),
    ]


def test_the_program_hands_over_when_no_sender_is_stated() -> None:
    trace = traced(["a", "b"], hand_off(None, "b", kind="sequence"))
    assert arrows(trace) == [(None, "run2", "completed", 0)]
    assert only(trace).from_agent is None
    assert known(trace, only(trace), "from_agent")


@pytest.mark.parametrize(
    ("more", "status"),
    [({}, "unanswered"), ({"error": "no such agent"}, "failed"), ({"result": "7"}, "completed")],
)
def test_a_receiver_that_never_ran_leaves_its_hand_off_without_a_run(
    more: dict[str, Any], status: str
) -> None:
    trace = traced(["a", "b", "a"], hand_off("a", "ghost", **more))
    assert arrows(trace) == [("run3", "", status, 0)]


def test_an_error_makes_it_fail_though_the_receiver_ran() -> None:
    trace = traced(["a", "b"], hand_off("a", "b", error="gave up"))
    assert only(trace).error == "gave up"
    assert arrows(trace) == [("run1", "run2", "failed", 0)]


@pytest.mark.parametrize(
    ("agents", "said", "problem"),
    [
        (
            ["router", "b"],
            hand_off("ruoter", "b"),
            "dispatches[0]: `ruoter` is not among `agents`; did you mean `router`?",
        ),
        ([], hand_off("a", "b"), "dispatches[0]: `a` is not among `agents`"),
        (
            ["a", "b"],
            hand_off(None, "a"),
            "dispatches[0]: `a` is the first of `agents`: the message starts it",
        ),
        (["a"], {"from": "a"}, "dispatches[0]"),
        (["a", "b"], hand_off("a", "b", kind="return"), "dispatches[0].kind"),
        (["a", "b"], {"to": "b", "sender": "a"}, "sender"),
    ],
)
def test_a_hand_off_that_cannot_be_is_refused_with_its_place(
    agents: list[str], said: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ProviderError) as raised:
        stated_turn({"agents": agents, "dispatches": [said]}, "t")
    assert problem in str(raised.value)


def test_without_agents_names_are_all_that_is_known() -> None:
    said = [hand_off("a", "b", kind="delegate", result="x"), hand_off("b", "c", error="lost")]
    trace = traced(None, *said, tool_calls=[{"name": "f"}], usage={"requests": 1})
    first, second = trace.turns[0].dispatches
    assert (first.from_agent, first.to_agent, first.status) == ("a", "b", "unknown")
    assert second.status == "failed"
    assert [known(trace, first, f) for f in ("from_run", "runs", "depth")] == [False] * 3


def limits(agents: list[str] | None, *said: dict[str, Any], **most: int) -> str:
    spec = {"type": "dispatch_limits", "config": most}
    (result,) = library.score(traced(agents, *said), evaluators=[spec])
    (score,) = result.scores
    return score.status


def test_limits_of_dispatches_are_scored() -> None:
    said = [hand_off("a", "b", kind="delegate"), hand_off("b", "c", kind="delegate")]
    agents = ["a", "b", "c"]
    assert limits(agents, *said, max_dispatches=2, max_depth=2, max_agents=3) == "passed"
    assert limits(agents, *said, max_dispatches=1) == "failed"
    assert limits(agents, *said, max_depth=1) == "failed"
    assert limits(agents, *said, max_fan_out=1) == "skipped"
    assert limits(agents, max_dispatches=0) == "passed"
    assert limits(None, *said, max_dispatches=1) == "failed"
    assert limits(None, *said, max_depth=1) == "skipped"


CODE = """
def reply(message):
    if message == "pay":
        handed = {"to": "billing", "from": "router", "prompt": "take the money", "result": "done"}
        return {"output": "paid", "agents": ["router", "billing"], "dispatches": [handed]}
    handed = {"to": "router", "from": "billing"}
    return {"output": "bye", "agents": ["billing", "router"], "dispatches": [handed]}
"""


def test_each_turn_of_a_case_has_hand_offs_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(CODE)
    turns = [
        ExpectedTurn(input=Content(text="pay"), agents=["router", "billing"]),
        ExpectedTurn(input=Content(text="thanks"), agents=["billing", "router"]),
    ]
    spec = {"type": "python", "target": f"{tmp_path}/agent.py:reply"}
    result: CaseResult
    (result,) = library.evaluate([Case(id="a", turns=turns)], spec)
    assert result.status == "passed"
    assert result.trace is not None
    assert integrity_problems(result.trace) == []
    assert arrows(result.trace) == [("run1", "run2", "completed", 0)] * 2
    assert len({d.id for turn in result.trace.turns for d in turn.dispatches}) == 2


def test_hand_offs_of_a_live_run_are_drawn(baton: Run, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(CODE)
    said = [{"input": "pay", "agents": ["router", "billing"]}, {"input": "thanks"}]
    (tmp_path / "cases.jsonl").write_text(json.dumps({"id": "a", "turns": said}) + "\n")
    assert baton("eval", "agent.py:reply", "cases.jsonl").code == 0
    shown = baton("show", ".baton/evaluations", "--case", "a")
    assert shown.code == 0
    assert shown.out.index("router") < shown.out.index("→ billing") < shown.out.index("→ router")
    assert "take the money" in shown.out
