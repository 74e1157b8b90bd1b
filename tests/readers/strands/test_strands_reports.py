"""Reports of the Strands evaluation SDK as recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.readers.strands.conftest import agent, read, session, tool

from baton.model import Content, InputError, Said, ToolCall, Trace, known
from baton.model.views import agent_chain


def row(name: str | None = "a", evaluator: str = "Equals", **more: Any) -> dict[str, Any]:
    """Write a row of a report; ``out`` is what the task answered."""
    told = {"actual_output": more.pop("out", "yes\n"), "actual_trajectory": None}
    said = {"name": name, "input": "Is it?", "evaluator": evaluator, "evaluator_type": evaluator}
    return {**said, **told, "expected_output": "yes", "actual_interactions": None, **more}


def report(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    count = len(rows)
    return {
        "overall_score": 0.5,
        "scores": [0.5] * count,
        "cases": list(rows),
        "test_passes": [True] * count,
        "reasons": [""] * count,
        **more,
    }


def one(folder: Path, **told: Any) -> Trace:
    (trace,) = read(folder, report(row(**told)))
    return trace


def calls_of(trace: Trace) -> list[ToolCall]:
    steps = (step for run in trace.turns[0].runs for step in run.steps)
    return [step for step in steps if isinstance(step, ToolCall)]


def test_rows_of_several_evaluators_are_one_trace(tmp_path: Path) -> None:
    rows = [row("a"), row("b"), row("a", "Judge"), row("b", "Judge")]
    traces = read(tmp_path, report(*rows))
    assert [(trace.id, trace.case) for trace in traces] == [("a", "a"), ("b", "b")]


def test_cases_of_the_same_name_stay_apart(tmp_path: Path) -> None:
    rows = [row("a"), row("a"), row("a", out="no"), row("a", "Judge"), row("a", "Judge")]
    traces = read(tmp_path, report(*rows))
    assert [trace.id for trace in traces] == ["a", "a-2", "a-3"]
    assert {trace.case for trace in traces} == {"a"}


def test_a_case_without_a_name_is_named_by_its_place(tmp_path: Path) -> None:
    traces = read(tmp_path, report(row(None), row("b")))
    assert [trace.case for trace in traces] == ["case1", "b"]


def test_what_a_report_does_not_tell_is_unknown(tmp_path: Path) -> None:
    trace = one(tmp_path)
    (turn,) = trace.turns
    assert (turn.input, turn.output) == (Content(text="Is it?"), Content(text="yes"))
    assert not known(trace, turn, "runs")
    assert not known(trace, turn, "dispatches")


def test_a_session_in_a_row_is_read_and_the_case_says_what_was_asked(tmp_path: Path) -> None:
    spans = session(agent("x", "Context: Is it?", "yes\n"), tool("t", "look", {}, "5", "x", at=1))
    trace = one(tmp_path, actual_trajectory=spans)
    assert trace.turns[0].input == Content(text="Is it?")
    assert [call.name for call in calls_of(trace)] == ["look"]


def test_nodes_that_were_visited_are_runs_and_speak_on_their_last_visit(tmp_path: Path) -> None:
    said = [
        {"node_name": "a", "messages": ["Done."], "dependencies": ["b"]},
        {"node_name": "b", "messages": ["Back to you."], "dependencies": ["a"]},
    ]
    trace = one(tmp_path, actual_trajectory=["a", "b", "a"], actual_interactions=said)
    runs = trace.turns[0].runs
    assert agent_chain(trace, trace.turns[0]) == ["a", "b", "a"]
    assert [run.output for run in runs] == [
        None, Content(text="Back to you."), Content(text="Done."),
    ]  # fmt: skip
    assert not known(trace, runs[0], "output")
    assert not known(trace, runs[0], "steps")
    assert [entry.count for entry in trace.dropped] == [2]


def test_each_interaction_is_what_a_node_said_at_a_visit(tmp_path: Path) -> None:
    told = [("a", "One."), ("a", "And two."), ("b", "Three."), ("c", "Late.")]
    said = [{"node_name": name, "messages": [text]} for name, text in told]
    visits = ["a", "b", "c", "c"]
    trace = one(tmp_path, actual_trajectory=visits, actual_interactions=said)
    spoken = [
        [step.content.text for step in run.steps if isinstance(step, Said)]
        for run in trace.turns[0].runs
    ]
    assert spoken == [["One.", "And two."], ["Three."], [], ["Late."]]
    more = [*said, {"node_name": "c", "messages": "Last."}]
    trace = one(tmp_path, actual_trajectory=visits, actual_interactions=more)
    assert [run.output and run.output.text for run in trace.turns[0].runs[2:]] == ["Late.", "Last."]


def test_interactions_that_follow_each_other_in_a_circle_hide_visits(tmp_path: Path) -> None:
    said = [
        {"node_name": "a", "messages": ["A"], "dependencies": ["b"]},
        {"node_name": "b", "messages": ["B"], "dependencies": ["a"]},
    ]
    trace = one(tmp_path, actual_interactions=said)
    assert [run.agent for run in trace.turns[0].runs] == ["a", "b"]
    assert not known(trace, trace.turns[0], "runs")


def test_dependencies_are_dispatches_whose_kind_is_not_recorded(tmp_path: Path) -> None:
    said = [
        {"node_name": "market", "messages": ["M"], "dependencies": []},
        {"node_name": "tech", "messages": ["T"], "dependencies": []},
        {"node_name": "writer", "messages": ["W"], "dependencies": ["market", "tech", "tech"]},
        {"node_name": "editor", "messages": ["E"], "dependencies": []},
    ]
    trace = one(tmp_path, actual_interactions=said)
    (turn,) = trace.turns
    made = [(d.from_agent, d.to_agent, d.runs) for d in turn.dispatches]
    writer = turn.runs[2]
    assert made == [("market", "writer", [writer.id]), ("tech", "writer", [writer.id])]
    assert writer.started_by == [d.id for d in turn.dispatches]
    for name in ("kind", "prompt", "result", "depth", "group"):
        assert not known(trace, turn.dispatches[0], name)
    assert not known(trace, turn, "dispatches")
    assert trace.dropped == []
    # A node that is not listed was visited, too: what followed what is unknown.
    said[3]["dependencies"] = ["nobody"]
    trace = one(tmp_path, actual_interactions=said)
    assert trace.turns[0].dispatches == []
    assert [entry.count for entry in trace.dropped] == [3]


def test_dependencies_of_nodes_that_were_visited_again_join_no_visits(tmp_path: Path) -> None:
    said = [
        {"node_name": "a", "messages": ["A"], "dependencies": []},
        {"node_name": "b", "messages": ["B"], "dependencies": ["a", "c"]},
        {"node_name": "c", "messages": ["C"], "dependencies": ["b"]},
    ]
    visits = ["a", "b", "c", "b"]
    trace = one(tmp_path, actual_trajectory=visits, actual_interactions=said)
    assert trace.turns[0].dispatches == []
    assert [entry.count for entry in trace.dropped] == [3]


def test_a_list_of_calls_is_read_with_arguments_results_and_errors(tmp_path: Path) -> None:
    calls = [
        {"name": "look", "input": {"id": 7}, "tool_result": "5", "is_error": False},
        {"name": "pay", "input": {}, "tool_result": "Error: closed", "is_error": True},
        "wave",
        {"name": "sum", "input": {}, "call_count": 3},
        {"no": "tool"},
    ]
    trace = one(tmp_path, actual_trajectory=calls)
    look, pay, wave, total = calls_of(trace)
    assert (look.arguments, look.result, look.status) == ({"id": 7}, Content(text="5"), "ok")
    assert (pay.status, pay.error) == ("failed", "Error: closed")
    assert (wave.name, wave.status) == ("wave", "unknown")
    assert not known(trace, wave, "arguments")
    assert not known(trace, total, "result")
    assert not known(trace, trace.turns[0].runs[0], "steps.tool_call")
    assert sorted(entry.count for entry in trace.dropped) == [1, 2]


def test_no_calls_are_known_to_be_none(tmp_path: Path) -> None:
    trace = one(tmp_path, actual_trajectory=[])
    assert known(trace, trace.turns[0].runs[0], "steps.tool_call")
    assert calls_of(trace) == []


def test_calls_of_several_nodes_belong_to_nobody(tmp_path: Path) -> None:
    said = [{"node_name": name, "messages": [name], "dependencies": []} for name in "ab"]
    trace = one(tmp_path, actual_trajectory=["look"], actual_interactions=said)
    assert calls_of(trace) == []
    assert [(entry.what, entry.count) for entry in trace.dropped] == [
        ("a tool call without a recorded agent", 1)
    ]
    assert not known(trace, trace.turns[0].runs[0], "steps.tool_call")


def test_a_task_that_broke_is_a_failed_turn_with_its_reason(tmp_path: Path) -> None:
    broken = {"name": "a", "session_id": "s", "input": "Is it?", "evaluator": "Equals"}
    reasons = ["An error occurred: no model"]
    (trace,) = read(tmp_path, report(broken, reasons=reasons))
    (turn,) = trace.turns
    assert (turn.status, turn.error, turn.output) == ("failed", "no model", None)


def test_structured_output_is_data(tmp_path: Path) -> None:
    assert one(tmp_path, out={"n": 2}).turns[0].output == Content(data={"n": 2})


def test_states_of_the_environment_are_the_state_at_the_end(tmp_path: Path) -> None:
    states = [
        {"name": "loans", "state": {"open": 2}},
        {"name": "loans", "state": {"open": 3}},
        {"name": "desk", "state": None},
    ]
    kept = row("a", actual_trajectory=["look"], actual_environment_state=states)
    (trace,) = read(tmp_path, kept, "kept.json")
    assert trace.state == {"loans": {"open": 2}, "desk": None}
    assert known(trace, trace, "state")
    assert [(lost.what, lost.count) for lost in trace.dropped] == [("environment state", 1)]
    (trace,) = read(tmp_path, row("a", actual_trajectory=["look"]), "kept.json")
    assert not known(trace, trace, "state")


def test_a_case_that_is_kept_alone_is_read_as_well(tmp_path: Path) -> None:
    (trace,) = read(tmp_path, row("a", actual_trajectory=["look"]), "kept.json")
    assert (trace.id, [call.name for call in calls_of(trace)]) == ("a", ["look"])


def test_a_broken_row_does_not_stop_the_others(tmp_path: Path) -> None:
    broken = row("b", actual_trajectory={"traces": 7, "session_id": "s"})
    with pytest.raises(InputError, match=r"cases\[1\]\.actual_trajectory") as raised:
        read(tmp_path, report(row("a"), broken, row("c")))
    assert len(raised.value.problems) == 1
