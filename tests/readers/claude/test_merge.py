"""One session seen several ways is one trace."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from baton import load_traces
from baton.model import (
    ToolCall,
    Trace,
    Usage,
    integrity_problems,
)
from baton.model.views import dispatch_usage
from baton.readers.claude.merge_recordings import merge, merge_stream
from baton.testing.build import Passing, call, delegate, run, trace, turn

DATA = Path(__file__).parents[2] / "data" / "claude"


def _session(capture: str) -> Trace:
    (trace,) = load_traces(DATA / capture / "session")
    return trace


def _spans(calls: dict[str, float], mains: list[float], *, tokens: int | None = None) -> Trace:
    """Make a trace as spans tell it: ids of their own, the calls of dispatches, and costs."""
    asked = [delegate("x", id=f"span-{id_}", call=id_) for id_ in calls]
    steps: list[ToolCall | Passing] = []
    for id_, passing in zip(calls, asked, strict=True):
        steps += [call("Agent", id=id_, dispatch=f"span-{id_}"), passing]
    helpers = [
        run("x", id=f"span-run-{id_}", usage=_usage(cost, tokens)) for id_, cost in calls.items()
    ]
    turns = []
    for number, cost in enumerate(mains):
        first = number == 0
        main = run(
            "main",
            *(steps if first else []),
            id=f"span-main{number}",
            model="spans",
            usage=_usage(cost, tokens),
        )
        turns.append(turn(main, *(helpers if first else []), id=f"span-turn{number}"))
    made = trace(*turns, id="s", source="otlp")
    assert integrity_problems(made) == []
    return made


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


def test_spans_of_a_round_that_a_notification_started_belong_to_the_same_turn() -> None:
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
    for name, one in (("a.json", spans), ("z.json", other)):
        (tmp_path / name).write_bytes(msgspec.json.encode(one))
    traces = load_traces(tmp_path)
    assert [trace.id for trace in traces] == ["another", spans.id]
    main = traces[1].turns[0].runs[0].usage
    assert main is not None
    assert main.cost_usd == 0.25


def test_spans_without_figures_change_nothing() -> None:
    plain = _session("current/03_scope_bleed")
    empty = _spans({"toolu_s03_d1": 0.0}, [0.0], tokens=0)
    for of_turn in empty.turns:
        for of_run in of_turn.runs:
            of_run.usage = Usage(input_tokens=0, output_tokens=0)
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
