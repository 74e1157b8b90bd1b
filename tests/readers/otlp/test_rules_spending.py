"""Tokens come from the requests themselves, and errors from status."""

from __future__ import annotations

from typing import Any

import pytest
from tests.readers.otlp.spans import Event
from tests.readers.otlp.truth import CAPTURES

from baton import load_traces

from .spans import (
    Piece,
    agent,
    call,
    chain,
    model,
    only,
    piece,
    read,
    read_trace,
    spans,
    tool,
    tools,
    using,
    workflow,
)  # fmt: skip

_SUMS: dict[str, Any] = {"gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 6}


def test_what_an_agent_sums_up_is_not_counted_again() -> None:
    trace = read_trace(
        spans(agent("a", model(tokens=(10, 2)), model("ok", tokens=(20, 4)), **_SUMS))
    )
    assert trace.usage is not None
    assert (trace.usage.input_tokens, trace.usage.output_tokens) == (30, 6)
    assert trace.usage.requests == 2


def test_the_sum_of_an_agent_counts_where_no_request_is_recorded() -> None:
    trace = read_trace(spans(agent("a", tool("look_up"), **_SUMS)))
    assert trace.usage is not None
    assert (trace.usage.input_tokens, trace.usage.output_tokens) == (30, 6)
    assert trace.usage.requests is None


def test_the_sum_of_an_agent_counts_where_its_requests_tell_nothing() -> None:
    trace = read_trace(spans(agent("a", model(), model("ok"), **_SUMS)))
    assert trace.usage is not None
    assert (trace.usage.input_tokens, trace.usage.requests) == (30, 2)


def test_a_request_within_a_request_is_the_same_one() -> None:
    outer = model("ok", tokens=(10, 2))
    outer.inside = (model("ok", tokens=(10, 2)),)
    trace = read_trace(spans(agent("a", outer)))
    assert trace.usage is not None
    assert (trace.usage.input_tokens, trace.usage.requests) == (10, 1)


def test_each_agent_spends_its_own_tokens() -> None:
    inner = agent("b", model("ok", tokens=(5, 1)), **_SUMS)
    turn = read(agent("a", model(tokens=(10, 2)), tool("ask", inner), **_SUMS))
    spent = {run.agent: run.usage.input_tokens for run in turn.runs if run.usage}
    assert spent == {"a": 10, "b": 5}


def test_a_request_that_tells_no_tokens_makes_the_sum_a_lower_bound() -> None:
    trace = read_trace(spans(agent("a", model(tokens=(10, 2)), model("ok"))))
    assert trace.usage is not None
    assert (trace.usage.input_tokens, trace.usage.complete) == (10, False)


def test_no_tokens_at_all_are_unknown_and_not_zero() -> None:
    [run] = read(agent("a", model("ok"))).runs
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.complete) == (None, False)


def _raising(one: Piece) -> Piece:
    told = {"exception.type": "langgraph.errors.ParentCommand", "exception.message": "go"}
    one.events = [Event(name="exception", at=1000.0, attributes=told)]
    return one


def test_an_exception_event_on_a_span_that_did_not_fail_is_no_error() -> None:
    turn = read(agent("a", model(), _raising(tool("look_up", result="ok"))))
    [step] = tools(turn.runs[0])
    assert (step.status, step.error) == ("ok", None)


def test_a_tool_that_failed_says_why_and_the_agent_continues() -> None:
    turn = read(agent("a", model(), tool("look_up", error="no such row"), model("Sorry.")))
    [step] = tools(turn.runs[0])
    assert (step.status, step.error) == ("failed", "no such row")
    assert (turn.runs[0].status, turn.status) == ("completed", "completed")


def test_the_error_of_a_span_without_a_message_is_its_exception() -> None:
    failed = _raising(tool("look_up", error=""))
    failed.message = None
    turn = read(agent("a", model(), failed))
    assert tools(turn.runs[0])[0].error == "go"


def test_an_agent_that_failed_fails_its_delegation_and_not_its_caller() -> None:
    inner = tool("ask", agent("b", model(error="overloaded"), error="overloaded"))
    turn = read(agent("a", model(), inner, model("Sorry.")))
    assert [run.status for run in turn.runs] == ["completed", "failed"]
    assert (only(turn).status, only(turn).error) == ("failed", "overloaded")


def test_a_request_that_failed_and_was_made_again_is_one_that_failed_and_one_that_did_not() -> None:
    turn = read(agent("a", model(error="429"), model("ok", tokens=(10, 2))))
    [run] = turn.runs
    assert run.usage is not None
    assert (run.usage.requests, run.usage.failed_requests, run.usage.input_tokens) == (1, 1, 10)
    assert (run.status, turn.status) == ("completed", "completed")
    assert turn.output is not None
    assert turn.output.text == "ok"


def test_a_transfer_that_arrived_is_completed_though_its_span_is_an_error() -> None:
    """The SDK of OpenAI marks the one that was carried out when a model asked for two."""
    both = model(calls=[call("transfer_to_b", "1"), call("transfer_to_c", "2")])
    move = Piece(
        name="a -> b",
        status=2,
        message="Multiple handoffs requested",
        attributes={
            "gen_ai.operation.name": "handoff",
            "gen_ai.handoff.from_agent": "a",
            "gen_ai.handoff.to_agent": "b",
        },
    )
    turn = read(workflow("w", agent("a", both, move), agent("b", model("Done."))))
    assert chain(turn) == ["a", "b"]
    status = {dispatch.to_agent: dispatch.status for dispatch in turn.dispatches}
    assert status == {"b": "completed", "c": "refused"}


def test_a_run_that_never_ended_leaves_its_turn_incomplete() -> None:
    made = spans(agent("a", model("Wait"), using(tool("look_up"))))
    made[0].ended = made[2].ended = None
    [turn] = read_trace(made).turns
    assert (turn.status, turn.runs[0].status) == ("incomplete", "unknown")
    assert tools(turn.runs[0])[0].status == "unanswered"


@pytest.mark.parametrize("operation", ["chat", "text_completion", "chat.completions", "response"])
def test_a_request_is_told_by_its_operation_old_and_new(operation: str) -> None:
    asked = using(model("ok", tokens=(3, 1)), **{"gen_ai.operation.name": operation})
    trace = read_trace(spans(agent("a", asked)))
    assert trace.usage is not None
    assert (trace.usage.input_tokens, trace.usage.requests) == (3, 1)


def test_a_kind_stands_for_the_operation_where_a_span_has_only_that() -> None:
    asked: dict[str, Any] = {"gen_ai.span.kind": "LLM", "input.value": "Hi", "output.value": "Hello.",
             "gen_ai.usage.input_tokens": 3}  # fmt: skip
    looked = {"gen_ai.span.kind": "TOOL", "gen_ai.tool.name": "look_up", "input.value": '{"q": 1}',
              "output.value": "42"}  # fmt: skip
    told = using(piece("a", using(piece("m"), **asked), using(piece("t"), **looked)),
                 **{"gen_ai.span.kind": "AGENT", "gen_ai.agent.name": "a"})  # fmt: skip
    trace = read_trace(spans(told))
    [run] = trace.turns[0].runs
    [step] = tools(run)
    assert (run.agent, step.name, step.arguments) == ("a", "look_up", {"q": 1})
    assert run.input is not None
    assert run.input.text == "Hi"
    assert trace.usage is not None
    assert trace.usage.input_tokens == 3
    assert trace.dropped == []


def test_tokens_are_incomplete_if_requests_of_google_adk_overwrote_others() -> None:
    """OpenInference writes all requests of an agent into one span; the last one stays."""
    [trace] = load_traces(CAPTURES / "openinference-added" / "google_adk_ping_pong.json")
    told = {run.id: run.usage.complete for run in trace.turns[0].runs if run.usage is not None}
    assert list(told.values()) == [True, False, True]


def test_calls_whose_request_was_overwritten_come_before_the_last_ones() -> None:
    [trace] = load_traces(CAPTURES / "openinference-added" / "google_adk_ping_pong.json")
    billing = trace.turns[0].runs[1]
    assert [call.name for call in tools(billing)] == ["refund", "transfer_to_agent"]
