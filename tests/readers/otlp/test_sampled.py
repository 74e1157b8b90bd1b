"""Batches in any order, and spans that a sampler dropped: less is known, and nothing is made up."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest
from tests.readers.otlp.spans import Event, Span, read_conversations, read_spans
from tests.readers.otlp.truth import CAPTURES

from baton.evaluators import (
    AnnouncedDispatch,
    ClaimsSupported,
    ContextCarried,
    DispatchCompleted,
    DispatchScope,
    DispatchTargetKnown,
    HandoffLoops,
    ResultUsed,
)
from baton.formats.input_files import InputFile
from baton.model import EvalContext, Trace, integrity_problems

from .spans import agent, call, model, only, read, read_trace, spans, tool, tools, workflow

EVALUATORS = (
    AnnouncedDispatch(),
    ClaimsSupported(),
    ContextCarried(),
    DispatchCompleted(),
    DispatchScope(),
    DispatchTargetKnown(),
    HandoffLoops(),
    ResultUsed(),
)
# One recording of each way in which control passes, where all went well.
GOOD = (
    "autogen/swarm_ping_pong_rooted.json",
    "claude-export/mcp_parallel.json",
    "crewai/delegate.json",
    "google-adk/transfer_content.json",
    "google-adk/transfer_ping_pong_legacy_content.json",
    "google-adk/transfer_ping_pong_v1_16.json",
    "langgraph-traceloop/swarm.json",
    "langgraph/supervisor.json",
    "langsmith/swarm.json",
    "llama-index/transfer.json",
    "microsoft-agent-framework/handoff_two_turns.json",
    "openai-agents/handoff_chain.json",
    "openai-agents-otel-genai/ping_pong.json",
    "semantic-kernel/handoff_logs.json",
    "strands/swarm.json",
)


def _spans(capture: str) -> tuple[list[Span], list[Event]]:
    found = list(read_conversations([InputFile(CAPTURES / capture)], on_lost=lambda _: None))
    return [s for c in found for s in c.spans], [log for c in found for log in c.logs]


def _alarms(traces: list[Trace]) -> list[str]:
    return [
        f"{score.evaluator}: {score.reason}"
        for trace in traces
        for evaluator in EVALUATORS
        for score in evaluator.evaluate(trace, None, EvalContext())
        if score.status == "failed"
    ]


def _below(spans: list[Span], top: Span) -> list[Span]:
    """Return the spans of a subtree."""
    ids = {top.span_id}
    for _ in spans:
        more = {s.span_id for s in spans if s.trace_id == top.trace_id and s.parent_id in ids}
        if more <= ids:
            break
        ids |= more
    return [s for s in spans if s.trace_id == top.trace_id and s.span_id in ids]


def _sampled(spans: list[Span]) -> Iterator[tuple[str, list[Span]]]:
    for span in spans:
        yield f"without {span.name}", [s for s in spans if s is not span]
        gone = _below(spans, span)
        yield f"without all of {span.name}", [s for s in spans if s not in gone]
    done = sorted(spans, key=lambda s: s.ended or 0.0)
    for number in range(1, len(done)):
        yield f"the first {number} that ended", done[:number]


@pytest.mark.heavy
@pytest.mark.parametrize("capture", GOOD)
def test_a_good_run_of_which_spans_are_missing_gives_no_alarm(capture: str) -> None:
    spans, logs = _spans(capture)
    assert _alarms(read_spans(spans, logs)) == []
    found: dict[str, list[str]] = {}
    for name, left in _sampled(spans):
        traces = read_spans(left, logs)
        assert [problem for trace in traces for problem in integrity_problems(trace)] == []
        alarms = _alarms(traces)
        if alarms:
            found[name] = alarms
    assert found == {}


@pytest.mark.parametrize("capture", ["crewai/delegate_texts.json", "crewai/sequential_texts.json"])
def test_a_lost_span_of_a_crew_whose_calls_are_texts_gives_no_alarm(capture: str) -> None:
    spans, logs = _spans(capture)
    for lost in spans:
        assert _alarms(read_spans([span for span in spans if span is not lost], logs)) == []


@pytest.mark.parametrize("capture", GOOD)
def test_the_order_in_which_spans_arrive_does_not_matter(capture: str) -> None:
    spans, logs = _spans(capture)
    assert read_spans(spans[::-1], logs[::-1]) == read_spans(spans, logs)


def test_messages_that_an_exporter_cut_off_are_no_text_of_the_user() -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": "Pay Ana " * 40}]}]
    cut = msgspec.json.encode(asked).decode()[:100]
    [run] = read(agent("a", model("Paid."), **{"gen_ai.input.messages": cut})).runs
    assert run.input is None
    assert "input" in run.unknown


def test_a_transfer_after_which_nothing_is_recorded_is_unknown() -> None:
    assert only(read(agent("a", model(), tool("transfer_to_b")))).status == "unknown"


def test_a_call_of_an_agent_after_which_nothing_is_recorded_is_unknown() -> None:
    asked = model(calls=[call("transfer_to_b", "1")])
    assert only(read(agent("a", asked))).status == "unknown"


def test_a_transfer_that_came_to_nothing_is_unanswered() -> None:
    turn = read(agent("a", model(), tool("transfer_to_b"), model("Nobody takes over.")))
    assert only(turn).status == "unanswered"


def test_of_two_transfers_the_one_passed_over_was_refused() -> None:
    asked = model(calls=[call("transfer_to_b", "1"), call("transfer_to_c", "2")])
    turn = read(workflow("w", agent("a", asked), agent("b", model("Hi."))))
    assert [d.status for d in turn.dispatches] == ["completed", "refused"]


def test_a_result_that_says_that_control_has_passed_is_no_refusal() -> None:
    """The span of the tool is missing, and the agent got control back later."""
    told = [{"role": "tool", "tool_call_id": "1", "content": "Transferred to b"}]
    front = agent("a", model(calls=[call("transfer_to_b", "1")]))
    turn = read(workflow("w", front, agent("a", model("Bye.", hears=told))))
    assert {d.status for d in turn.dispatches if d.to_agent == "b"} == {"unknown"}


def test_a_result_that_says_that_there_is_no_such_tool_is_a_refusal() -> None:
    told = [{"role": "tool", "tool_call_id": "1", "content": "Error: transfer_to_b is no tool"}]
    front = agent("a", model(calls=[call("transfer_to_b", "1")]))
    turn = read(workflow("w", front, agent("a", model("Bye.", hears=told))))
    assert {d.status for d in turn.dispatches if d.to_agent == "b"} == {"refused"}


def test_a_workflow_that_another_program_called_is_complete() -> None:
    """The span of the web server around it is not in the file."""
    made = spans(
        workflow("w", model("Checked."), agent("a", model("Hi.")), agent("b", model("Bye.")))
    )
    made[0].parent_id = "ab" * 8
    [turn] = read_trace(made).turns
    assert turn.status == "completed"


def test_a_call_that_never_ended_keeps_its_result() -> None:
    look = {"id": "c1", "name": "look", "arguments": {}}
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "17."}]}]
    ran = tool("look", args={}, result="17 left", id_="c1")
    answered = {"gen_ai.output.messages": json.dumps(said)}
    made = spans(agent("clerk", model(calls=[look]), ran, **answered))
    for span in made:
        if span.name.startswith("execute_tool"):
            span.ended = None
    (step,) = tools(read_trace(made).turns[0].runs[0])
    assert step.result is not None
    assert (step.result.text, step.unknown) == ("17 left", [])
