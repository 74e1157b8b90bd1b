"""Results of swarms and graphs, and the states that are kept of them."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from tests.readers.strands.conftest import node, read, result

from baton.model import Content, InputError, Trace, known
from baton.model.views import agent_chain


def one(folder: Path, value: object) -> Trace:
    (trace,) = read(folder, value)
    return trace


def test_a_history_tells_visits_and_the_result_belongs_to_the_last_one(tmp_path: Path) -> None:
    swarm = result(
        "swarm",
        node_history=["a", "b", "a"],
        node_results={"a": node("two"), "b": node("one")},
        current_task="Do it",
    )
    trace = one(tmp_path, swarm)
    (turn,) = trace.turns
    first, second, third = turn.runs
    assert agent_chain(trace, turn) == ["a", "b", "a"]
    assert not known(trace, first, "output")
    assert (second.output, third.output) == (Content(text="one"), Content(text="two"))
    assert [known(trace, run, "usage") for run in turn.runs] == [False, True, False]
    assert trace.usage is not None
    assert trace.usage.input_tokens == 20
    assert [(d.kind, d.basis, d.from_run, d.runs) for d in turn.dispatches] == [
        ("transfer", "structure", first.id, [second.id]),
        ("transfer", "structure", second.id, [third.id]),
    ]
    assert not known(trace, turn.dispatches[0], "prompt")
    assert (turn.input, turn.output) == (Content(text="Do it"), Content(text="two"))


def test_visits_that_only_a_count_tells_of_are_not_made_up(tmp_path: Path) -> None:
    trace = one(tmp_path, result(results={"a": node("x"), "b": node("y")}, execution_count=5))
    (turn,) = trace.turns
    assert not known(trace, turn, "runs")
    assert not known(trace, turn, "dispatches")
    assert not known(trace, turn, "output")
    assert not known(trace, turn.runs[0], "usage")
    assert [entry.count for entry in trace.dropped] == [3]


def test_a_node_that_raised_is_a_visit_that_failed(tmp_path: Path) -> None:
    swarm = result(
        "swarm",
        status="failed",
        node_history=["a", "b"],
        node_results={"a": node(raised="model is down"), "b": node("back to a")},
    )
    trace = one(tmp_path, swarm)
    (turn,) = trace.turns
    assert agent_chain(trace, turn) == ["a", "b", "a"]
    assert [(run.status, run.error) for run in turn.runs] == [
        ("completed", None), ("completed", None), ("failed", "model is down"),
    ]  # fmt: skip
    assert (turn.status, turn.error, turn.output) == ("failed", "model is down", None)
    assert trace.usage is not None
    assert not trace.usage.complete


def test_a_swarm_that_failed_for_no_reason_told_has_an_unknown_error(tmp_path: Path) -> None:
    swarm = result("swarm", status="failed", node_history=["a"], node_results={"a": node("x")})
    trace = one(tmp_path, swarm)
    assert trace.turns[0].status == "failed"
    assert not known(trace, trace.turns[0], "error")


def test_edges_of_a_graph_are_sequences_between_what_was_visited(tmp_path: Path) -> None:
    graph = result(
        results={name: node(name.upper()) for name in "abcd"},
        execution_order=["a", "b", "c", "d"],
        edges=[["a", "b"], ["a", "c"], ["b", "d"], ["c", "d"], ["a", "never"]],
    )
    trace = one(tmp_path, graph)
    (turn,) = trace.turns
    assert [(d.kind, d.from_agent, d.to_agent) for d in turn.dispatches] == [
        ("sequence", "a", "b"), ("sequence", "a", "c"),
        ("sequence", "b", "d"), ("sequence", "c", "d"),
    ]  # fmt: skip
    assert len(turn.runs[3].started_by) == 2
    assert turn.output == Content(text="D")
    assert {tuple(run.inside) for run in turn.runs} == {("graph",)}


def test_a_loop_in_a_graph_follows_the_latest_visit(tmp_path: Path) -> None:
    graph = result(
        results={"write": node("W"), "check": node("C")},
        execution_order=["write", "check", "write", "check"],
        edges=[["write", "check"], ["check", "write"]],
    )
    (turn,) = one(tmp_path, graph).turns
    ids = [run.id for run in turn.runs]
    assert [(d.from_run, *d.runs) for d in turn.dispatches] == list(itertools.pairwise(ids))


def test_without_edges_nothing_links_the_nodes_of_a_graph(tmp_path: Path) -> None:
    graph = result(
        "graph", execution_order=["a", "b"], node_results={"a": node("A"), "b": node("B")}
    )
    trace = one(tmp_path, graph)
    assert trace.turns[0].dispatches == []
    assert not known(trace, trace.turns[0], "dispatches")
    assert not known(trace, trace.turns[0], "output")


def test_a_swarm_inside_a_graph_is_what_its_agents_are_inside_of(tmp_path: Path) -> None:
    inner = result(results={"cook": node("soup"), "taster": node("good")}, execution_count=2)
    graph = result(
        "graph",
        id="dinner",
        execution_order=["plan", "kitchen"],
        node_results={"plan": node("menu"), "kitchen": {**node(), "result": inner}},
    )
    trace = one(tmp_path, graph)
    assert [(run.agent, run.inside) for run in trace.turns[0].runs] == [
        ("plan", ["dinner"]),
        ("cook", ["dinner", "kitchen"]),
        ("taster", ["dinner", "kitchen"]),
    ]


def test_a_node_that_waits_for_a_person_waits(tmp_path: Path) -> None:
    asked = {"id": "i1", "name": "approve", "reason": "costly"}
    swarm = result(
        "swarm",
        status="interrupted",
        node_history=["a"],
        node_results={"a": node("A"), "b": node(None, "interrupted")},
        interrupts=[asked],
    )
    trace = one(tmp_path, swarm)
    assert trace.turns[0].status == "waiting"
    assert [run.status for run in trace.turns[0].runs] == ["completed", "waiting"]
    assert [(entry.what, entry.example) for entry in trace.dropped] == [("an interrupt", "approve")]


def test_the_shared_context_of_a_swarm_is_its_state(tmp_path: Path) -> None:
    context = {"shared_context": {"a": {"year": 1872}}, "handoff_message": "go"}
    swarm = result("swarm", node_history=["a"], node_results={"a": node("A")}, context=context)
    trace = one(tmp_path, swarm)
    assert trace.state == {"a": {"year": 1872}}
    assert [entry.example for entry in trace.dropped] == ["go"]


def test_a_task_of_blocks_is_its_texts(tmp_path: Path) -> None:
    task = [{"text": "Look at"}, {"image": {"format": "png"}}, {"text": "this"}]
    swarm = result("swarm", node_history=["a"], node_results={"a": node("A")}, current_task=task)
    assert one(tmp_path, swarm).turns[0].input == Content(text="Look at\nthis")


def test_a_fault_deep_inside_is_reported_with_its_place(tmp_path: Path) -> None:
    inner = result(results={"x": {**node("X"), "status": 7}})
    graph = result(results={"team": {**node(), "result": inner}})
    with pytest.raises(InputError, match=r"results\.team\.result\.results\.x\.status"):
        read(tmp_path, graph)


def test_results_nested_without_end_are_an_error(tmp_path: Path) -> None:
    inner = node("x")
    for _ in range(150):
        inner = {**node(), "result": result(results={"n": inner})}
    with pytest.raises(InputError, match="nested too deeply"):
        read(tmp_path, result(results={"n": inner}))
