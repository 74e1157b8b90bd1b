"""What the scripts draw of a trace: its tree, a card for each dispatch, and it in short."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest

from baton.model import AgentRun, Content, Dispatch, GotBack, HandedOff, Said, ToolCall, Trace, Turn
from baton.reports.html.trace_view import text_at, trace_view
from baton.testing import build


def asked(text: str) -> Content:
    return Content(text=text)


@pytest.fixture
def trace() -> Trace:
    """A desk delegates to billing, which asks a bank that fails; the desk passes the price on."""
    desk = AgentRun(
        id="r1",
        agent="desk",
        input=asked("Refund order A-17."),
        steps=[
            Said(id="s1", content=asked("I ask billing."), at=10.0),
            HandedOff(id="s2", dispatch="d1", at=10.5),
            GotBack(id="s3", dispatch="d1"),
            Said(id="s4", content=asked("You get 48.20 EUR back."), at=14.0),
        ],
        started=10.0,
        ended=14.0,
    )
    billing = AgentRun(
        id="r2",
        agent="billing",
        started_by=["d1"],
        input=asked("Refund order A-17, please."),
        steps=[
            ToolCall(id="c1", name="lookup", arguments={"id": "A-17"}, result=asked("48.20 EUR")),
            ToolCall(id="c2", name="wire", status="refused", refused_by="policy"),
            HandedOff(id="s5", dispatch="d2"),
        ],
        tools_offered=["lookup", "wire"],
        started=11.0,
        ended=13.0,
    )
    first = Dispatch(
        id="d1",
        kind="delegate",
        from_run="r1",
        from_agent="desk",
        to_agent="billing",
        prompt=asked("Refund order A-17 at once."),
        runs=["r2"],
        result=asked("It is 48.20 EUR, booked as REF-9."),
        tools_allowed=["lookup"],
    )
    second = Dispatch(
        id="d2",
        kind="delegate",
        from_run="r2",
        from_agent="billing",
        to_agent="bank",
        depth=1,
        prompt=asked("Wire it."),
        status="failed",
        error="The bank is closed.",
    )
    return build.trace(
        Turn(
            id="t1",
            input=asked("Refund order A-17."),
            output=asked("You get 48.20 EUR back."),
            runs=[desk, billing],
            dispatches=[first, second],
        )
    )


def test_a_card_tells_what_was_asked_got_used_and_what_came_up_again(trace: Trace) -> None:
    card = trace_view(trace)["cards"]["d1"]
    assert (card["turn"], card["before"], card["after"]) == ("t1", ["s1"], ["s4"])
    assert card["got"] == "other"
    assert card["runs"] == ["r2"]
    assert card["tools"]["allowed"] == ["lookup"]
    assert card["tools"]["offered"] == ["lookup", "wire"]
    assert card["tools"]["used"] == [
        {"name": "lookup", "count": 1},
        {"name": "wire", "count": 1, "refused": 1},
    ]
    facts = {fact["text"]: fact.get("ids") for fact in card["facts"]}
    assert facts["48.20"] == ["s4", "t1"]
    assert facts["REF-9"] is None


def test_what_nobody_got_and_what_is_not_recorded_are_distinguished(trace: Trace) -> None:
    assert trace_view(trace)["cards"]["d2"]["got"] == "nobody"
    trace.turns[0].runs[1].unknown = ["input"]
    assert trace_view(trace)["cards"]["d1"]["got"] == "unknown"


def test_in_short_leads_to_the_deepest_dispatch_that_failed(trace: Trace) -> None:
    short = trace_view(trace)["short"]
    assert short["failing"] == {
        "path": [{"id": "d1", "to": "billing"}, {"id": "d2", "to": "bank"}],
        "start": "desk",
        "says": "The bank is closed.",
        "status": "failed",
    }
    edges = [(edge["sender"], edge["to"], edge["why"], edge.get("bad")) for edge in short["edges"]]
    assert edges == [
        ("desk", "billing", "Refund order A-17 at once.", None),
        ("billing", "bank", "Wire it.", 1),
    ]
    assert [(row.get("id"), row["seconds"]) for row in short["branches"]] == [
        (None, 4.0),
        ("d1", 2.0),
    ]


def test_a_dispatch_that_a_score_failed_is_the_branch_that_failed(trace: Trace) -> None:
    trace.turns[0].dispatches[1].status = "completed"
    assert "failing" not in trace_view(trace)["short"]
    failing = trace_view(trace, failed={"d1"})["short"]["failing"]
    assert [step["id"] for step in failing["path"]] == ["d1"]


def test_a_loop_is_named_with_the_steps_that_prove_it() -> None:
    ball = [
        build.dispatch(to, "Your turn.", id=f"d{n}", kind="transfer", from_agent=sender)
        for n, (sender, to) in enumerate([("ping", "pong"), ("pong", "ping")] * 4)
    ]
    names = ["ping", *(dispatch.to_agent for dispatch in ball)]
    runs = [
        AgentRun(id=f"r{n}", agent=name, output=asked("Your turn.")) for n, name in enumerate(names)
    ]
    for n, dispatch in enumerate(ball):
        dispatch.from_run, dispatch.runs = f"r{n}", [f"r{n + 1}"]
        runs[n + 1].started_by = [dispatch.id]
        runs[n].steps = [HandedOff(id=f"s{n}", dispatch=dispatch.id)]
    looped = build.trace(Turn(id="t1", runs=runs, dispatches=ball))
    loop = trace_view(looped)["short"]["loops"][0]
    assert "times round" in loop["says"]
    assert loop["ids"][0] == "t1"


def test_times_are_seconds_from_the_beginning(trace: Trace) -> None:
    (run,) = trace_view(trace)["turns"][0]["runs"]
    assert (run["at"], run["seconds"]) == (0.0, 4.0)
    assert [step.get("at") for step in run["steps"]] == [0.0, 0.5, None, 4.0]


def test_a_long_text_is_cut_and_can_be_asked_for(trace: Trace) -> None:
    long = "x" * 1_000_000
    trace.turns[0].runs[1].steps[0] = ToolCall(
        id="c1", name="lookup", arguments={"id": "A-17"}, result=asked(long)
    )
    view = trace_view(trace, most=100)
    call = _first_call(view)
    checksum = zlib.crc32(long.encode())
    cut = {"text": "x" * 100, "more": 999_900, "at": "c1/result", "crc": checksum}
    assert call["result"] == cut
    assert text_at(trace, "c1/result") == long
    assert text_at(trace, "c1/arguments") == '{\n  "id": "A-17"\n}'
    assert text_at(trace, "c1/no_field") is None
    assert text_at(trace, "nobody/input") is None


def test_calls_after_the_first_ones_are_short_and_those_that_failed_stay_whole() -> None:
    steps = [
        build.call("look", {"n": n}, "ok", id=f"c{n}", at=100.0 + n / 3, ended=100.5 + n / 3)
        for n in range(7)
    ]
    steps[4] = build.call("look", {"n": 4}, id="c4", status="failed", error="no such file")
    made = build.trace(build.turn("hi", build.run("desk", *steps, output="Done.")))
    (run,) = trace_view(made, calls=2)["turns"][0]["runs"]
    whole = [step for step in run["steps"] if step.get("type") == "call"]
    assert [step["id"] for step in whole] == ["c0", "c1"]
    assert [step for step in run["steps"] if step not in whole] == [
        {"type": "calls", "ids": ["c2", "c3"], "name": "look", "at": [667, 1000], "took": [500, 500]},
        {"id": "c4", "name": "look", "cut": True, "status": "failed", "error": "no such file"},
        {"type": "calls", "ids": ["c5", "c6"], "name": "look", "at": [1667, 2000], "took": [500, 500]},
    ]  # fmt: skip


def _first_call(view: dict[str, Any]) -> dict[str, Any]:
    handed = view["turns"][0]["runs"][0]["steps"][1]
    call: dict[str, Any] = handed["run"]["steps"][0]
    return call


def test_what_a_stand_in_answered_is_marked_in_the_tree(trace: Trace) -> None:
    trace.turns[0].dispatches[0].stand_in = "replay"
    looked_up = trace.turns[0].runs[1].steps[0]
    assert isinstance(looked_up, ToolCall)
    looked_up.stand_in = "fault: empty"
    drawn = json.dumps(trace_view(trace))
    assert drawn.count('"stand_in"') == 2
    assert '"stand_in": "replay"' in drawn
    assert '"stand_in": "fault: empty"' in drawn
