"""One session seen several ways is one trace."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from baton.model import (
    AgentRun,
    Dispatch,
    HandedOff,
    Source,
    ToolCall,
    Trace,
    Turn,
    Usage,
    integrity_problems,
)
from baton.model.views import dispatch_usage
from baton.readers import load_traces
from baton.readers.claude.reader import merge, merge_stream

DATA = Path(__file__).parents[2] / "data" / "claude"


def _session(capture: str) -> Trace:
    (trace,) = load_traces(DATA / capture / "session")
    return trace


def _spans(calls: dict[str, float], mains: list[float], *, tokens: int | None = None) -> Trace:
    """Make a trace as spans tell it: ids of their own, the calls of dispatches, and costs."""
    turns = []
    for number, cost in enumerate(mains):
        run = AgentRun(
            id=f"span-main{number}", agent="main", model="spans", usage=_usage(cost, tokens)
        )
        turns.append(Turn(id=f"span-turn{number}", runs=[run]))
    first = turns[0]
    for call, cost in calls.items():
        first.runs[0].steps += [
            ToolCall(id=call, name="Agent", dispatch=f"span-{call}"),
            HandedOff(id=f"h-{call}", dispatch=f"span-{call}"),
        ]
        run = AgentRun(id=f"span-run-{call}", agent="x", started_by=[f"span-{call}"])
        run.usage = _usage(cost, tokens)
        first.runs.append(run)
        dispatch = Dispatch(id=f"span-{call}", kind="delegate", to_agent="x", call=call)
        dispatch.from_run, dispatch.from_agent = first.runs[0].id, "main"
        dispatch.runs = [run.id]
        first.dispatches.append(dispatch)
    trace = Trace(schema_version=1, id="s", source=Source(format="otlp"), turns=turns)
    assert integrity_problems(trace) == []
    return trace


def _usage(cost: float, tokens: int | None) -> Usage:
    return Usage(input_tokens=tokens, output_tokens=tokens, cost_usd=cost, cost_from="source")


def test_spans_give_each_dispatch_its_cost_and_leave_the_content() -> None:
    plain = _session("current/01_correct_dispatch")
    merged = merge(
        _session("current/01_correct_dispatch"),
        _spans({"toolu_s01_d1": 0.011505, "toolu_s01_d2": 0.00912}, [0.031455]),
    )
    costs = [dispatch_usage(merged, d).own for d in merged.turns[0].dispatches]
    assert [usage.cost_usd for usage in costs if usage] == [0.011505, 0.00912]
    assert [usage.output_tokens for usage in costs if usage] == [163, 152]
    main = merged.turns[0].runs[0]
    assert main.usage is not None
    assert (main.usage.cost_usd, main.usage.input_tokens) == (0.031455, 4700)
    assert main.steps == plain.turns[0].runs[0].steps
    assert merged.usage is not None
    assert merged.usage.cost_usd == pytest.approx(0.05208)
    assert merged.attributes["merged_with"] == ["otlp"]
    assert integrity_problems(merged) == []


def test_a_total_that_the_transcript_lacks_is_added_up() -> None:
    merged = merge(
        _session("legacy/01_correct_dispatch"),
        _spans({"toolu_s01_d1": 0.25, "toolu_s01_d2": 0.5}, [1.0]),
    )
    assert merged.usage is not None
    assert merged.usage.cost_usd == pytest.approx(1.75)


def test_spans_of_a_round_that_a_notification_began_belong_to_the_same_turn() -> None:
    merged = merge(
        _session("current/08_background_dispatch"), _spans({"toolu_s08_d1": 0.25}, [0.5, 0.125])
    )
    main = merged.turns[0].runs[0].usage
    assert main is not None
    assert main.cost_usd == 0.625


def test_tokens_are_taken_from_spans_where_a_stream_has_a_lower_bound_only() -> None:
    (stream,) = load_traces(DATA / "current" / "10_parallel" / "messages.jsonl")
    merged = merge(stream, _spans({"toolu_s10_d1": 1.0}, [1.0], tokens=77))
    first, second = (dispatch_usage(merged, d).own for d in merged.turns[0].dispatches)
    assert first is not None
    assert (first.output_tokens, first.complete) == (77, True)
    assert second is not None
    assert not second.complete


def test_a_folder_with_a_session_and_its_spans_holds_one_trace(tmp_path: Path) -> None:
    shutil.copytree(DATA / "current" / "11_nested" / "session", tmp_path / "session")
    spans = _spans({"toolu_s11_d1": 0.5}, [0.25])
    spans.id = _session("current/11_nested").id
    other = _spans({}, [0.25])
    other.id = "another"
    for name, trace in (("a.json", spans), ("z.json", other)):
        (tmp_path / name).write_bytes(msgspec.json.encode(trace))
    traces = load_traces(tmp_path)
    assert [trace.id for trace in traces] == ["another", spans.id]
    main = traces[1].turns[0].runs[0].usage
    assert main is not None
    assert main.cost_usd == 0.25


def test_spans_without_figures_change_nothing() -> None:
    plain = _session("current/03_scope_bleed")
    empty = _spans({"toolu_s03_d1": 0.0}, [0.0], tokens=0)
    for turn in empty.turns:
        for run in turn.runs:
            run.usage = Usage(input_tokens=0, output_tokens=0)
    merged = merge(_session("current/03_scope_bleed"), empty)
    assert merged.turns == plain.turns
    assert merged.usage == plain.usage


def test_a_stream_tells_why_a_turn_failed_that_a_transcript_leaves_open() -> None:
    transcript = _session("current/11_nested")
    (stream,) = load_traces(DATA / "current" / "11_nested" / "messages.jsonl")
    stream.turns[0].status = "failed"
    stream.turns[0].error = stream.turns[0].runs[0].error = "error_max_turns"
    merged = merge_stream(transcript, stream)
    assert (merged.turns[0].status, merged.turns[0].error) == ("failed", "error_max_turns")
    assert merged.attributes["permission_mode"] == "acceptEdits"
