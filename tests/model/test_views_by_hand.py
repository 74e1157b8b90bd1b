"""Views of small traces that are made by hand, for what no proven run shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Step,
    ToolCall,
    Trace,
    integrity_problems,
)
from baton.model.views import TreeNode, child_runs, dispatch_view, group_of, round_trip, turn_tree
from baton.testing import build

Record = Callable[[str], Trace]
Find = Callable[[Trace, str], Any]


def trace_of(runs: list[AgentRun], dispatches: list[Dispatch]) -> Trace:
    """Return a consistent trace of one turn."""
    trace = build.trace(build.turn(*runs, *dispatches, id="turn-1"))
    assert integrity_problems(trace) == []
    return trace


def run(id_: str, started_by: str = "", steps: list[Step] | None = None) -> AgentRun:
    """Return a run of the agent that is called like it, without a trailing number."""
    return build.run(
        id_.rstrip("0123456789"), *(steps or []), id=id_, started_by=started_by.split()
    )


def dispatch(id_: str, kind: Any, way: str, **fields: Any) -> Dispatch:
    """Return a dispatch from one run to another, written ``a -> b``."""
    sender, receiver = way.split(" -> ")
    ids: dict[str, Any] = {
        "from_run": sender,
        "from_agent": sender.rstrip("0123456789"),
        "runs": [receiver],
    }
    return build.dispatch(receiver.rstrip("0123456789"), id=id_, kind=kind, **ids, **fields)


def off(dispatch: str) -> HandedOff:
    return HandedOff(id=f"off-{dispatch}", dispatch=dispatch)


def back(dispatch: str) -> GotBack:
    return GotBack(id=f"back-{dispatch}", dispatch=dispatch)


def says(text: str) -> Said:
    return Said(id=text, content=Content(text=text))


def outline(nodes: list[TreeNode]) -> list[Any]:
    """Return a tree as ids, with the children of a run in a list behind it."""
    parts: list[Any] = []
    for node in nodes:
        parts += [node.run.id, outline(node.children)] if node.children else [node.run.id]
    return parts


def ids(steps: list[Step]) -> list[str]:
    return [step.id for step in steps]


def returning_delegate() -> Trace:
    """Return a trace where ``a`` delegates to ``b``, which transfers to ``c`` and gets back."""
    return trace_of(
        [
            run("a", steps=[off("d1"), back("d1")]),
            run("b1", "d1", [off("d2")]),
            run("c", "d2"),
            run("b2", "d3", [off("d4"), back("d4")]),
            run("e", "d4"),
        ],
        [
            dispatch("d1", "delegate", "a -> b1"),
            dispatch("d2", "transfer", "b1 -> c"),
            dispatch("d3", "return", "c -> b2", answers="d2"),
            dispatch("d4", "delegate", "b2 -> e"),
        ],
    )


def test_control_that_returns_inside_a_delegate_stays_below_its_caller() -> None:
    trace = returning_delegate()
    assert outline(turn_tree(trace, trace.turns[0])) == ["a", ["b1", "c", "b2", ["e"]]]


def test_control_that_returns_inside_a_delegate_is_still_its_work() -> None:
    trace = returning_delegate()
    runs = child_runs(trace, trace.turns[0].dispatches[0])
    assert [r.id for r in runs] == ["b1", "c", "b2"]


def test_runs_that_open_a_turn_side_by_side_stand_at_the_top() -> None:
    trace = trace_of([run("a"), run("b")], [])
    assert outline(turn_tree(trace, trace.turns[0])) == ["a", "b"]


def test_a_group_has_one_sender_and_one_mode() -> None:
    sends: list[Step] = [off("d1"), off("d2"), off("d3")]
    trace = trace_of(
        [
            run("a", "", sends),
            run("b", "d1", [off("d4")]),
            run("c", "d2"),
            run("e", "d3"),
            run("f", "d4"),
        ],
        [
            dispatch("d1", "delegate", "a -> b", group=1),
            dispatch("d2", "delegate", "a -> c", group=1),
            dispatch("d3", "delegate", "a -> e", group=1, mode="background"),
            dispatch("d4", "delegate", "b -> f", group=1),
        ],
    )
    groups = [[d.id for d in group_of(trace, of)] for of in trace.turns[0].dispatches]
    assert groups == [["d1", "d2"], ["d1", "d2"], ["d3"], ["d4"]]


def test_a_dispatch_is_found_by_its_id_though_it_was_changed(record: Record, find: Find) -> None:
    trace, copy = record("claude_parallel_same_type"), record("claude_parallel_same_type")
    find(copy, "d1").description = "changed"
    assert [d.id for d in group_of(trace, find(copy, "d1"))] == ["d1", "d2", "d3"]


def test_an_early_answer_to_its_neighbour_did_not_come_before_a_dispatch() -> None:
    """What was issued together was issued without any of the answers."""
    sends: list[Step] = [says("go"), off("d1"), back("d1"), off("d2"), back("d2"), says("done")]
    trace = trace_of(
        [run("a", "", sends), run("b", "d1"), run("c", "d2")],
        [
            dispatch("d1", "delegate", "a -> b", group=1),
            dispatch("d2", "delegate", "a -> c", group=1),
        ],
    )
    for of in trace.turns[0].dispatches:
        view = dispatch_view(trace, of)
        assert (ids(view.before), ids(view.after)) == (["go"], ["done"])


def test_the_call_tells_where_work_was_handed_over_when_no_step_does() -> None:
    trace = trace_of([run("a"), run("b", "d1")], [dispatch("d1", "sequence", "a -> b")])
    sent = trace.turns[0].dispatches[0]
    sent.kind, sent.call = "transfer", "call-1"
    call = ToolCall(id="call-1", name="transfer", dispatch="d1")
    trace.turns[0].runs[0].steps = [says("first"), call, says("last")]
    view = dispatch_view(trace, sent)
    assert (ids(view.before), ids(view.after)) == (["first"], ["last"])


def test_handing_back_does_not_come_back_itself() -> None:
    trace = trace_of(
        [run("a1", "", [off("d1")]), run("b", "d1", [off("d2")]), run("a2", "d2", [says("ta")])],
        [dispatch("d1", "transfer", "a1 -> b"), dispatch("d2", "transfer", "b -> a2")],
    )
    there, again = trace.turns[0].dispatches
    assert ids(round_trip(trace, there).after) == ["ta"]
    assert round_trip(trace, again).after == []


def test_control_that_goes_round_in_a_circle_is_followed_once() -> None:
    trace = trace_of(
        [run("a", "", [off("d1")]), run("b", "d1 d2", [off("d2")])],
        [dispatch("d1", "delegate", "a -> b"), dispatch("d2", "transfer", "b -> b")],
    )
    assert [r.id for r in child_runs(trace, trace.turns[0].dispatches[0])] == ["b"]
