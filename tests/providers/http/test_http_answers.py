"""What comes back: paths into it, and the record they make."""

from __future__ import annotations

from typing import Any

import pytest
from tests.providers.conftest import case_of, reply
from tests.providers.http.conftest import Endpoint, play, refused

from baton.model import Content, ToolCall, Trace, Turn, known
from baton.model.views import agent_chain

TOOLS = {
    "path": "$.steps[?@.tool]",
    "name": "$.tool",
    "arguments": "$.args",
    "result": "$.out",
    "agent": "$.agent",
    "error": "$.error",
}


def turn_of(endpoint: Endpoint, body: Any, /, **options: Any) -> tuple[Trace, Turn]:
    """Play one message that is answered like this."""
    endpoint.answers(body)
    trace = play(endpoint, case_of("hi"), **options)
    return trace, trace.turns[0]


def calls_of(turn: Turn) -> list[tuple[str, ToolCall]]:
    """Return the tool calls with the agents that made them."""
    return [
        (run.agent, step) for run in turn.runs for step in run.steps if isinstance(step, ToolCall)
    ]


def test_what_no_path_states_is_unknown(endpoint: Endpoint) -> None:
    trace, turn = turn_of(endpoint, {"reply": "ok"})
    assert turn.output == Content(text="ok")
    assert [known(trace, turn, name) for name in ("output", "runs", "dispatches", "state")] == [
        True, False, False, False,
    ]  # fmt: skip
    assert not known(trace, trace, "usage")
    assert trace.source.format == "http"
    assert trace.source.location == endpoint.url
    assert turn.started is not None
    assert turn.ended is not None


def test_agents_calls_and_hand_offs_come_by_their_paths(endpoint: Endpoint) -> None:
    answer = {
        "reply": "Refunded.",
        "steps": [
            {"agent": "router", "to": "billing", "message": "refund 7"},
            {"agent": "billing", "tool": "lookup", "args": {"id": 7}, "out": {"sum": 5}},
            {"agent": "billing", "tool": "refund", "args": '{"id": 7}', "error": "too late"},
        ],
    }
    dispatches = {
        "path": "$.steps[?@.to]", "from": "$.agent", "to": "$.to", "prompt": "$.message",
        "kind": "transfer",
    }  # fmt: skip
    agents = "$.steps[*].agent"
    trace, turn = turn_of(endpoint, answer, agents=agents, tools=TOOLS, dispatches=dispatches)
    assert agent_chain(trace, turn) == ["router", "billing"]
    assert [(who, c.name, c.arguments, c.status, c.error) for who, c in calls_of(turn)] == [
        ("billing", "lookup", {"id": 7}, "ok", None),
        ("billing", "refund", {"id": 7}, "failed", "too late"),
    ]
    lookup, refund = (call for _, call in calls_of(turn))
    assert lookup.result == Content(data={"sum": 5})
    assert not known(trace, refund, "result")
    (dispatch,) = turn.dispatches
    assert (dispatch.from_agent, dispatch.to_agent) == ("router", "billing")
    assert (dispatch.kind, dispatch.prompt) == ("transfer", Content(text="refund 7"))
    assert dispatch.runs == [turn.runs[1].id]
    assert not known(trace, dispatch, "result")


def test_whether_a_call_worked_is_unknown_unless_a_path_says_where_errors_stand(
    endpoint: Endpoint,
) -> None:
    tools = {"path": "$.calls[*]", "name": "$"}
    trace, turn = turn_of(endpoint, {"reply": "ok", "calls": ["lookup"]}, tools=tools)
    ((agent, call),) = calls_of(turn)
    assert (agent, call.name, call.status) == ("main", "lookup", "unknown")
    assert not known(trace, turn.runs[0], "agent")
    assert not known(trace, call, "arguments")


def test_an_empty_list_of_calls_is_none_and_a_missing_one_is_unknown(endpoint: Endpoint) -> None:
    options: dict[str, Any] = {"agents": "$.by", "tools": {"path": "$.calls[*]", "name": "$.n"}}
    trace, turn = turn_of(endpoint, {"reply": "ok", "by": "a", "calls": []}, **options)
    assert known(trace, turn.runs[0], "steps.tool_call")
    trace, turn = turn_of(endpoint, {"reply": "ok", "by": "a"}, **options)
    assert not known(trace, turn.runs[0], "steps.tool_call")
    options["tools"]["absent"] = "none"
    trace, turn = turn_of(endpoint, {"reply": "ok", "by": "a"}, **options)
    assert known(trace, turn.runs[0], "steps.tool_call")


def test_a_null_is_a_result_and_nothing_is_no_result(endpoint: Endpoint) -> None:
    tools = {"path": "$.calls[*]", "name": "$.n", "result": "$.r"}
    answer = {"reply": "ok", "calls": [{"n": "a", "r": None}, {"n": "b"}]}
    trace, turn = turn_of(endpoint, answer, tools=tools)
    assert [known(trace, call, "result") for _, call in calls_of(turn)] == [True, False]


def test_a_sender_that_is_not_stated_is_unknown(endpoint: Endpoint) -> None:
    dispatches = {"path": "$.to[*]", "to": "$", "kind": "delegate"}
    trace, turn = turn_of(endpoint, {"reply": "ok", "to": ["b"]}, dispatches=dispatches)
    (dispatch,) = turn.dispatches
    assert not any(known(trace, dispatch, name) for name in ("from_agent", "from_run", "depth"))


def test_text_and_structured_output_stand_side_by_side(endpoint: Endpoint) -> None:
    answer = {"reply": "Two.", "form": {"n": 2}}
    _, turn = turn_of(endpoint, answer, structured="$.form")
    assert turn.output == Content(text="Two.", data={"n": 2})
    _, turn = turn_of(endpoint, {"form": '{"n": 2}'}, answer=None, structured="$.form")
    assert turn.output == Content(data={"n": 2})


def test_structured_output_is_reported_where_the_config_says_where_it_is(
    endpoint: Endpoint,
) -> None:
    trace, turn = turn_of(endpoint, {"reply": "Two."}, structured="$.form")
    assert known(trace, turn, "output.data")
    trace, turn = turn_of(endpoint, {"reply": "Two."})
    assert not known(trace, turn, "output.data")


def test_several_texts_are_one_answer(endpoint: Endpoint) -> None:
    answer = {"content": [{"text": "Two "}, {"image": "x"}, {"text": "parts."}]}
    _, turn = turn_of(endpoint, answer, answer="$.content[*].text")
    assert turn.output == Content(text="Two parts.")


def test_usage_is_added_up_and_cached_tokens_are_distinguished(endpoint: Endpoint) -> None:
    calls = [{"in": 10, "hit": 4, "out": 3}, {"in": 5, "hit": 0, "out": 2}]
    usage = {
        "input_tokens": "$.u[*].in", "cache_read_tokens": "$.u[*].hit",
        "output_tokens": "$.u[*].out", "cost_usd": "$.usd", "cached_in_input": True,
    }  # fmt: skip
    trace, _ = turn_of(endpoint, {"reply": "ok", "u": calls, "usd": 0.25}, usage=usage)
    assert trace.usage is not None
    found = trace.usage
    assert (found.input_tokens, found.cache_read_tokens, found.output_tokens) == (11, 4, 5)
    assert (found.cost_usd, found.cost_from) == (0.25, "source")


def test_the_trace_id_of_an_answer_is_kept_for_joining_spans(endpoint: Endpoint) -> None:
    id_ = "0af7651916cd43dd8448eb211c80319c"
    for told in (id_, f"00-{id_}-b7ad6b7169203331-01"):
        trace, _ = turn_of(endpoint, {"reply": "ok", "trace": told}, trace_id="$.trace")
        assert trace.attributes == {"trace_ids": {"turn1": id_}}


@pytest.mark.parametrize(
    ("answer", "options", "reason"),
    [
        ({"text": "hi"}, {}, '`answer` ($.reply) matches nothing in what came: {"text":"hi"}'),
        ({"reply": None}, {}, "`answer` ($.reply) matches nothing in what came"),
        ([], {}, "matches nothing in what came: []"),
        ({"reply": "x" * 999, "a": 1}, {"agents": "$.by"}, "xxx…"),
        ({"reply": "ok"}, {"agents": "$.by"}, "`agents` ($.by) matches nothing"),
        ({"reply": "ok", "by": 7}, {"agents": "$.by"}, "`agents` ($.by) is not a name: 7"),
        ({"reply": "ok"}, {"trace_id": "$.t"}, "`trace_id` ($.t) matches nothing"),
        (
            {"reply": "ok", "steps": [{"tool": {}}]},
            {"tools": TOOLS, "agents": "$.reply"},
            "`tools.name` ($.tool) is not text: {}",
        ),
        (
            {"reply": "ok", "by": ["a", "b"], "calls": ["lookup"]},
            {"agents": "$.by[*]", "tools": {"path": "$.calls[*]", "name": "$"}},
            "cannot tell which agent made call `lookup`: state `tools.agent`",
        ),
        (
            {"reply": "ok", "to": ["b"]},
            {"dispatches": {"path": "$.to", "to": "$[0]", "kind": "$[0]"}},
            "“b” is not one of transfer, delegate, sequence",
        ),
        ({"reply": ["a", 1]}, {"answer": "$.reply[*]"}, "matches several values, not all text"),
        ({"reply": "ok", "n": "7"}, {"usage": {"requests": "$.n"}}, 'is not a number: "7"'),
        ({"reply": "ok", "n": -7}, {"usage": {"requests": "$.n"}}, "impossible token counts"),
        ({"error": {"code": 5}}, {"error": "$.error"}, 'turn 1: {"code":5}'),
        ({"reply": "sorry", "error": "boom"}, {"error": "$.error"}, "turn 1: boom"),
    ],
)
def test_an_answer_without_what_is_needed_is_an_error_that_shows_what_came(
    endpoint: Endpoint, answer: Any, options: dict[str, Any], reason: str
) -> None:
    endpoint.answers(answer)
    error = refused(endpoint, case_of("hi"), **options)
    assert reason in str(error)
    assert len(str(error)) < 400
    assert error.trace is not None
    assert error.trace.turns[0].error is not None
    assert len(endpoint.requests) == 1


def test_a_message_that_is_not_an_error_is_not_read_as_one(endpoint: Endpoint) -> None:
    nothing: list[Any] = [None, "", False, 0, [], {}]
    for told in nothing:
        endpoint.answers({"reply": "ok", "error": told})
        trace = play(endpoint, case_of("hi"), error="$.error")
        assert trace.turns[0].status == "completed"


def test_a_failed_turn_keeps_its_answer_and_ends_the_case(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok"}, {"reply": "sorry", "error": "boom"}, {"reply": "never"})
    error = refused(endpoint, case_of("one", "two", "three"), error="$.error")
    assert str(error) == "turn 2: boom"
    assert error.trace is not None
    assert [turn.status for turn in error.trace.turns] == ["completed", "failed"]
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize(
    ("body", "media", "reason"),
    [
        (b"<!doctype html><p>Sign in", "text/html", "an HTML page (a login page?"),
        (b"Service is fine", "text/plain", "the answer is “Service is fine”, not JSON"),
        (b"", "application/json", "the answer is nothing, not JSON"),
        (b'{"reply": "o', "application/json", 'the answer is “{"reply": "o”, not JSON'),
        (b'{"reply": "\xff"}', "application/json", "the answer is not utf-8"),
        (b"[" * 100_000, "application/json", "not JSON"),
        (b'{"reply": NaN}', "application/json", "not JSON"),
    ],
)
def test_what_is_not_json_is_an_error_that_shows_its_start(
    endpoint: Endpoint, body: bytes, media: str, reason: str
) -> None:
    endpoint.answers(reply(body, media=media))
    assert reason in str(refused(endpoint, case_of("hi")))


def test_json_in_another_encoding_is_read(endpoint: Endpoint) -> None:
    body = '{"reply": "Grüße"}'.encode("latin-1")
    endpoint.answers(reply(body, media="application/json; charset=latin-1"))
    assert play(endpoint, case_of("hi")).turns[0].output == Content(text="Grüße")


def test_an_answer_too_deep_to_be_searched_is_an_error(endpoint: Endpoint) -> None:
    endpoint.answers(reply(b'{"reply":' + b"[" * 900 + b"]" * 900 + b"}"))
    assert "cannot be searched for" in str(refused(endpoint, case_of("hi"), answer="$..text"))
