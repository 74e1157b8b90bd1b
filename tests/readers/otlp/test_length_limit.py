"""Values that a length limit truncated are unknown: no fact is missed that was behind the limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.readers.otlp.truth import CAPTURES

from baton import load_traces
from baton.evaluators import (
    ContextCarried,
    DispatchCompleted,
    DispatchScope,
    DispatchTargetKnown,
    HandoffLoops,
    ResultUsed,
)
from baton.model import EvalContext, Trace

from .exports import DATA, FILES
from .spans import agent, model, read_trace, spans, tool, tools

EVALUATORS = (
    ContextCarried(),
    DispatchCompleted(),
    DispatchScope(),
    DispatchTargetKnown(),
    HandoffLoops(),
    ResultUsed(),
)
RECORDINGS = (
    "crewai/failing_tool.json",
    "langgraph-traceloop/subagents_parallel.json",
    "langgraph/supervisor.json",
    "langgraph/swarm_nocontent.json",
    "langgraph/swarm_v0_3.json",
    "langsmith/interrupt_in_tool.json",
    "langsmith/swarm.json",
    "openai-agents/handoff_bad_input.json",
    "openai-agents/multiple_handoffs.json",
    "openai-agents/tool_fails.json",
)


def _truncated(value: Any, limit: int) -> Any:
    """Truncate like OpenTelemetry's SDK: every text of an attribute, except of the resource."""
    if isinstance(value, list):
        return [_truncated(item, limit) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("stringValue"), str):
        return {**value, "stringValue": value["stringValue"][:limit]}
    return {k: v if k == "resource" else _truncated(v, limit) for k, v in value.items()}


def _load(recording: str, limit: int, folder: Path) -> Trace:
    spans = msgspec.json.decode((CAPTURES / recording).read_bytes())
    (folder / "spans.json").write_bytes(msgspec.json.encode(_truncated(spans, limit)))
    [trace] = load_traces(folder / "spans.json")
    return trace


def _failed(trace: Trace) -> set[str]:
    found = (e.evaluate(trace, None, EvalContext()) for e in EVALUATORS)
    return {s.evaluator for scores in found for s in scores if s.status == "failed"}


@pytest.mark.parametrize("limit", [128, 250])
@pytest.mark.parametrize("recording", RECORDINGS)
def test_a_limit_adds_no_failure(recording: str, limit: int, tmp_path: Path) -> None:
    [whole] = load_traces(CAPTURES / recording)
    trace = _load(recording, limit, tmp_path)
    assert _failed(trace) <= _failed(whole)
    assert trace.dropped[0].what == "values truncated by a length limit of attributes"


@pytest.mark.heavy
@pytest.mark.parametrize("limit", [128, 256, 512, 1024])
def test_no_limit_adds_a_failure_to_any_recording(limit: int, tmp_path: Path) -> None:
    for file in FILES:
        spans = _truncated(msgspec.json.decode(file.read_bytes()), limit)
        (tmp_path / "spans.json").write_bytes(msgspec.json.encode(spans))
        whole = {name for trace in load_traces(file) for name in _failed(trace)}
        for trace in load_traces(tmp_path / "spans.json"):
            assert _failed(trace) <= whole, file


def test_what_was_truncated_proves_no_failure(tmp_path: Path) -> None:
    """Instructions show which agent sent a request, and lists of tools which tools are agents."""
    for recording, limit in (("langgraph-genai/own_agents", 128),
                             ("google-adk/task_nested_content", 512)):  # fmt: skip
        trace = _load(str(DATA / f"{recording}.json"), limit, tmp_path)
        assert _failed(trace) == set(), recording


def test_agents_of_langgraph_keep_their_names_if_their_path_is_truncated(tmp_path: Path) -> None:
    trace = _load("langgraph/swarm.json", 250, tmp_path)
    assert [run.agent for run in trace.turns[0].runs] == ["flights", "hotels", "flights"]


def _heard(*texts: str) -> Trace:
    """An agent whose model is asked each text."""
    return read_trace(spans(agent("front", *(model("Fine.", hears=text) for text in texts))))


def test_texts_that_happen_to_be_the_longest_are_kept() -> None:
    assert not _heard(
        "What is the rate of Alpha, please?", "What is the rate of Delta, please?"
    ).dropped


def test_one_text_of_a_usual_length_that_ends_as_a_sentence_does_is_kept() -> None:
    told = agent(
        "front", model("Fine."), **{"gen_ai.system_instructions": f"{'Be kind. ' * 28}Go on."}
    )
    assert not read_trace(spans(told)).dropped


def test_several_texts_of_a_usual_length_are_truncated() -> None:
    long = [tool("look", args={}, result=f"{n}{' and so on' * 26}"[:256]) for n in range(2)]
    trace = read_trace(spans(agent("front", model("Fine."), *long)))
    assert [call.result for call in tools(trace.turns[0].runs[0])] == [None, None]
    assert [call.unknown for call in tools(trace.turns[0].runs[0])] == [["result"], ["result"]]


def test_names_of_agents_are_kept_at_any_length() -> None:
    names = [letter * 256 for letter in "ab"]
    inner = agent(names[1], model("Fine."))
    trace = read_trace(spans(agent(names[0], model("Ask."), inner, model("So."))))
    assert [run.agent for run in trace.turns[0].runs] == names


def test_whole_json_of_a_usual_length_is_kept() -> None:
    long = [tool("look", args={}, result=f'{{"n":{n},"a":"{"x" * 86}"}}') for n in range(2)]
    trace = read_trace(spans(agent("front", model("Fine."), *long)))
    assert [call.unknown for call in tools(trace.turns[0].runs[0])] == [[], []]
