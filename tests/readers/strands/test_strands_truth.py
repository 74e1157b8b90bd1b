"""Files that Strands really wrote, against what really happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from baton import load_traces
from baton.model import Trace, integrity_problems, known
from baton.model.views import agent_chain, tool_calls

DATA = Path(__file__).parents[2] / "data" / "strands"
TRUTH: dict[str, Any] = json.loads((DATA / "truth.json").read_text(encoding="utf-8"))["files"]
RESULTS = [name for name in TRUTH if name.endswith(("result.json", "fields.json", "state.json"))]
SESSIONS = [name for name in TRUTH if name.startswith("session_") and TRUTH[name]["spans"]]
WHOLE = [name for name in RESULTS if name != "swarm_result.json"]


def only(name: str) -> Trace:
    (trace,) = load_traces(DATA / name)
    return trace


def calls_of(trace: Trace) -> list[tuple[str, Any, bool]]:
    calls = tool_calls(trace.turns[0], dispatches="exclude")
    return [(call.name, call.arguments, call.status == "ok") for call in calls]


@pytest.mark.parametrize("name", sorted({*RESULTS, *SESSIONS, "swarm_failed_node.json"}))
def test_no_record_contradicts_itself(name: str) -> None:
    assert integrity_problems(only(name)) == []


@pytest.mark.parametrize("name", [*WHOLE, "swarm_failed_node.json", "session_swarm.json"])
def test_the_chain_is_the_one_that_was(name: str) -> None:
    trace = only(name)
    assert agent_chain(trace, trace.turns[0]) == TRUTH[name]["agent_run_chain"]


@pytest.mark.parametrize("name", [*RESULTS, "swarm_failed_node.json"])
def test_tokens_are_counted_once_although_strands_counts_visits_again(name: str) -> None:
    usage, told = only(name).usage, TRUTH[name]["tokens_total"]
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (told["input"], told["output"])


@pytest.mark.parametrize("name", [*WHOLE, *SESSIONS, "swarm_failed_node.json"])
def test_the_last_answer_is_the_one_that_was_or_is_unknown(name: str) -> None:
    trace = only(name)
    turn = trace.turns[0]
    if known(trace, turn, "output"):
        found = turn.output.plain() if turn.output is not None else None
        assert found == TRUTH[name]["final_output"]


@pytest.mark.parametrize("name", SESSIONS)
def test_hand_offs_of_a_session_are_those_that_were(name: str) -> None:
    trace = only(name)
    turn = trace.turns[0]
    found = [
        (
            d.kind,
            d.prompt.plain() if d.prompt else None,
            d.result.plain() if d.result else None,
            d.status,
        )
        for d in turn.dispatches
    ]
    assert found == [
        (h["kind"], h["prompt"], h["result"], h.get("status", "completed"))
        for h in TRUTH[name]["handoffs"]
    ]
    for dispatch, told in zip(turn.dispatches, TRUTH[name]["handoffs"], strict=True):
        assert dispatch.depth == told.get("depth", int(dispatch.kind == "delegate"))
        if known(trace, dispatch, "to_agent"):
            assert dispatch.to_agent == told["to"]
        else:
            assert dispatch.to_agent == told.get("via_tool", "main")


@pytest.mark.parametrize("name", SESSIONS)
def test_tools_of_a_session_are_those_that_were_called(name: str) -> None:
    trace = only(name)
    told = TRUTH[name]["domain_tools_called"]
    assert calls_of(trace) == [(call["name"], call["args"], call["ok"]) for call in told]
    assert trace.turns[0].input is not None
    assert trace.turns[0].input.text == TRUTH[name]["input"]


@pytest.mark.parametrize("name", ["report_session.json", "report_interactions.json"])
def test_a_report_is_one_recording_a_case(name: str) -> None:
    rows = TRUTH[name]["rows"]
    traces = load_traces(DATA / name)
    assert [trace.case for trace in traces] == list(dict.fromkeys(row["case"] for row in rows))
    assert [integrity_problems(trace) for trace in traces] == [[] for _ in traces]
    for trace in traces:
        if chain := TRUTH[name].get("chains", {}).get(trace.case):
            assert agent_chain(trace, trace.turns[0]) == chain


def test_a_graph_in_a_session_is_linked_by_the_answers_that_were_passed_on() -> None:
    (turn,) = only("session_graph.json").turns
    told = TRUTH["session_graph.json"]
    nodes = [told["node_names"][name] for name in told["agent_run_chain"]]
    assert [run.node for run in turn.runs] == [*nodes[:-1], None]
    by_id = {run.id: place for place, run in enumerate(turn.runs)}
    chain = told["agent_run_chain"]
    found = [(chain[by_id[d.from_run or ""]], chain[by_id[d.runs[0]]]) for d in turn.dispatches]
    assert sorted(found) == sorted((h["from"], h["to"]) for h in told["handoffs"])
    assert turn.output is not None
    assert turn.output.text == told["final_output"]


def test_the_same_swarm_is_the_same_in_a_session_and_in_its_state() -> None:
    session, state = only("session_swarm.json").turns[0], only("swarm_state.json").turns[0]
    for field in ("kind", "from_agent", "to_agent", "status"):
        ours = [getattr(dispatch, field) for dispatch in session.dispatches]
        assert ours == [getattr(dispatch, field) for dispatch in state.dispatches]
    assert session.output == state.output
    assert session.input == state.input


def test_a_graph_that_continues_with_two_nodes_starts_them_together() -> None:
    (turn,) = only("session_graph.json").turns
    assert [dispatch.group for dispatch in turn.dispatches] == [1, 1, None, None]
