"""What really happened in each recorded session, by every way of reading it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton import iter_traces, load_traces
from baton.model import (
    AgentRun,
    Dispatch,
    GotBack,
    Said,
    ToolCall,
    Trace,
    integrity_problems,
    known,
)
from baton.model.views import agent_chain, dispatch_usage, dispatch_view

DATA = Path(__file__).parents[2] / "data" / "claude"
CAPTURES = sorted(path.parent for path in DATA.glob("*/*/truth.json"))
EXPORTED = [path for path in CAPTURES if (path / "otlp_native.jsonl").exists()]
TOKENS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
OURS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def _main_file(capture: Path) -> Path:
    files = capture.glob("session/projects/*/*.jsonl")
    return next(file for file in files if not file.name.startswith("agent-"))


WAYS: dict[str, Callable[[Path], Path]] = {
    "stream": lambda capture: capture / "messages.jsonl",
    "session": _main_file,
    "project": lambda capture: capture / "session",
}


@pytest.fixture(params=CAPTURES, ids=lambda path: f"{path.parent.name}-{path.name}")
def capture(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture(params=sorted(WAYS))
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def truth(capture: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((capture / "truth.json").read_text())
    return value


@pytest.fixture
def trace(capture: Path, way: str) -> Trace:
    (trace,) = load_traces(WAYS[way](capture))
    return trace


def _dispatches(trace: Trace) -> list[Dispatch]:
    return [dispatch for turn in trace.turns for dispatch in turn.dispatches]


def _runs(trace: Trace) -> dict[str, AgentRun]:
    return {run.id: run for turn in trace.turns for run in turn.runs}


def _calls(run: AgentRun) -> list[ToolCall]:
    return [step for step in run.steps if isinstance(step, ToolCall)]


def test_the_record_holds_together(trace: Trace) -> None:
    assert integrity_problems(trace) == []
    assert trace.dropped == []


def test_turns_start_with_the_user_and_end_with_the_last_answer(
    trace: Trace, truth: dict[str, Any], way: str
) -> None:
    prompts = truth.get("prompts") or [truth["user_prompt"]]
    finals = truth.get("final_texts") or [truth["final_text"]]
    assert [turn.output.text if turn.output else None for turn in trace.turns] == finals
    assert [turn.status for turn in trace.turns] == ["completed"] * len(finals)
    if way == "stream":
        assert not any(known(trace, turn, "input") for turn in trace.turns)
    else:
        assert [turn.input.text if turn.input else None for turn in trace.turns] == prompts


def test_the_agents_worked_in_this_order(trace: Trace, truth: dict[str, Any]) -> None:
    chain = truth.get("chain") or ["main", *(d["subagent_type"] for d in truth["dispatches"])]
    assert [name for turn in trace.turns for name in agent_chain(trace, turn)] == chain


def test_each_dispatch_is_reported_with_what_came_of_it(
    trace: Trace, truth: dict[str, Any]
) -> None:
    found = _dispatches(trace)
    assert [d.call for d in found] == [d["tool_use_id"] for d in truth["dispatches"]]
    for dispatch, told in zip(found, truth["dispatches"], strict=True):
        assert dispatch.kind == "delegate"
        assert dispatch.to_agent == told["subagent_type"]
        assert dispatch.prompt is not None
        assert dispatch.prompt.text == told["prompt"]
        assert (dispatch.status, dispatch.depth) == (told["status"], told["depth"])
        assert (dispatch.result.text if dispatch.result else None) == told["result_text"]
        if told["status"] != "completed":
            assert (dispatch.error or "").startswith(told["error_starts"])
        if "mode" in told:
            by_call = {d.call: d.id for d in found}
            assert dispatch.mode == told["mode"]
            assert dispatch.group == told["group"]
            assert dispatch.continues == by_call.get(told["continues"])
        if "agent_id" in told:
            assert dispatch.runs == [told["agent_id"]]
            assert dispatch.description == told["description"]


def test_the_receiver_got_what_the_sender_said(trace: Trace, capture: Path) -> None:
    for dispatch in _dispatches(trace):
        for run in (_runs(trace)[id_] for id_ in dispatch.runs):
            assert known(trace, run, "input")
            if "queue" not in capture.name:
                assert run.input == dispatch.prompt


def test_each_agent_called_these_tools_and_some_were_refused(
    trace: Trace, truth: dict[str, Any], way: str
) -> None:
    runs = _runs(trace)
    for dispatch, told in zip(_dispatches(trace), truth["dispatches"], strict=True):
        if not all(known(trace, runs[id_], "steps.tool_call") for id_ in dispatch.runs):
            # A stream of the older version leaves out what a background agent does.
            assert (way, dispatch.mode) == ("stream", "background")
            assert truth["cli_version"].startswith("2.0")
            continue
        calls = [call for id_ in dispatch.runs for call in _calls(runs[id_])]
        wanted = [(t["tool_use_id"], t["name"]) for t in told["tools_used"]]
        assert [(call.id, call.name) for call in calls] == wanted
        for call, tool in zip(calls, told["tools_used"], strict=True):
            assert _outcome(call) == _told_outcome(tool)
    if "main" in truth:
        calls = [call for turn in trace.turns for call in _calls(turn.runs[0])]
        tools = truth["main"]["tools_used"]
        outcomes: list[tuple[Any, ...]] = [(c.id, c.status, c.refused_by) for c in calls]
        assert outcomes == [(t["tool_use_id"], t["status"], t["refused_by"]) for t in tools]


def _outcome(call: ToolCall) -> tuple[bool, bool]:
    return call.status != "ok", call.status == "refused"


def _told_outcome(tool: dict[str, Any]) -> tuple[bool, bool]:
    if "status" in tool:
        return tool["status"] != "ok", tool["status"] == "refused"
    return tool["is_error"], tool["is_error"] and not tool["in_allowed_tools"]


def test_every_request_is_counted_once(
    trace: Trace, truth: dict[str, Any], way: str, capture: Path
) -> None:
    main = truth.get("main") or truth["supervisor"]
    mains = [turn.runs[0].usage for turn in trace.turns]
    for wire, ours in zip(TOKENS, OURS, strict=True):
        spent = sum(getattr(usage, ours) or 0 for usage in mains if usage)
        assert spent == main["tokens"].get(wire, 0)
    for dispatch, told in zip(_dispatches(trace), truth["dispatches"], strict=True):
        own = dispatch_usage(trace, dispatch).own
        if own is None or not told["tokens"]["output_tokens"]:
            assert way == "stream" or not told["tokens"]["output_tokens"]
            continue
        assert own.failed_requests == (told.get("failed_requests") or None)
        if own.complete:
            for wire, ours in zip(TOKENS, OURS, strict=True):
                assert (getattr(own, ours) or 0) == told["tokens"].get(wire, 0)
        else:
            assert way == "stream"
            assert (own.output_tokens or 0) <= told["tokens"]["output_tokens"]


def test_totals_are_those_of_the_source(trace: Trace, truth: dict[str, Any], way: str) -> None:
    assert trace.usage is not None
    if trace.usage.cost_usd is None:
        assert way != "stream"
        assert truth["cli_version"].startswith("2.0")
    else:
        assert trace.usage.cost_usd == pytest.approx(truth["total_cost_usd"], abs=1e-9)
        assert trace.usage.cost_from == "source"
    if "tokens_total" in truth:
        assert trace.usage.input_tokens == truth["tokens_total"]["input_tokens"]
        assert trace.usage.output_tokens == truth["tokens_total"]["output_tokens"]


def test_each_answer_comes_back_once_and_the_caller_continues_from_there(trace: Trace) -> None:
    steps = [step for run in _runs(trace).values() for step in run.steps]
    for dispatch in _dispatches(trace):
        assert sum(isinstance(s, GotBack) and s.dispatch == dispatch.id for s in steps) == 1
        assert dispatch_view(trace, dispatch).after


def test_a_folder_with_all_recordings_of_a_session_holds_one_trace(
    capture: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "session"
    shutil.copytree(capture, folder, ignore=shutil.ignore_patterns("otlp*", "spans*"))
    notes: list[str] = []
    (trace,) = iter_traces(folder, on_note=notes.append)
    assert trace.source.format == "claude-session"
    assert trace.attributes["merged_with"] == ["claude-stream"]
    assert trace.usage is not None
    assert trace.usage.cost_usd is not None
    assert integrity_problems(trace) == []
    assert notes == [f"{folder / 'truth.json'}: contains no trace"]


@pytest.mark.parametrize("capture", EXPORTED, ids=lambda path: path.name, indirect=True)
def test_the_export_of_spans_adds_what_each_agent_cost(tmp_path: Path, capture: Path) -> None:
    folder = tmp_path / "session"
    shutil.copytree(capture, folder, ignore=shutil.ignore_patterns("messages*", "spans*"))
    truth = json.loads((capture / "truth.json").read_text())
    (trace,) = iter_traces(folder)
    assert integrity_problems(trace) == []
    main = trace.turns[0].runs[0].usage
    assert main is not None
    assert main.cost_usd == pytest.approx(truth["supervisor"]["cost_usd"])
    for dispatch, told in zip(_dispatches(trace), truth["dispatches"], strict=True):
        own, whole = dispatch_usage(trace, dispatch)
        assert own is not None
        assert own.cost_usd == pytest.approx(told["cost_usd"])
        assert whole is not None
        assert whole.cost_usd == pytest.approx(told["cost_usd_with_children"])


def test_a_stream_and_its_transcript_are_the_same_run(capture: Path) -> None:
    (stream,), (session,) = (load_traces(WAYS[way](capture)) for way in ("stream", "session"))
    for one, other in zip(stream.turns, session.turns, strict=True):
        assert _steps(one.runs[0]) == _steps(other.runs[0])
        assert [d.status for d in one.dispatches] == [d.status for d in other.dispatches]
        assert [d.error for d in one.dispatches] == [d.error for d in other.dispatches]
        assert [r.status for r in one.runs] == [r.status for r in other.runs]


def _steps(run: AgentRun) -> list[tuple[object, ...]]:
    return [
        (type(step).__name__, step.content.text if isinstance(step, Said) else step.dispatch)
        for step in run.steps
    ]
