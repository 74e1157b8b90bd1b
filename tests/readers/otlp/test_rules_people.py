"""Calls that a person has to allow, and calls that nothing carried out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.readers.otlp.spans import Event

from .spans import (
    Piece,
    agent,
    call,
    chain,
    model,
    only,
    piece,
    read,
    tool,
    tools,
    using,
    workflow,
)  # fmt: skip

_WRITTEN = [call("pay", "1", to="Ana")]


def _told(answer: str) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": answer}]}
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "Tool execution was not approved.",
        "The tool call was denied.",
        "Error: Tool call invocation was rejected by user.",
        "User rejected the tool call for `pay` with id 1",
    ],
)
@pytest.mark.parametrize("asked", [(), (tool("pay", args={"to": "Ana"}),)], ids=["no span", "span"])
def test_a_call_that_a_person_rejected_is_refused_by_the_user(
    answer: str, asked: tuple[Piece, ...]
) -> None:
    turn = read(agent("a", model(calls=_WRITTEN), *asked, model("Then not.", hears=_told(answer))))
    [step] = tools(turn.runs[0])
    assert (step.status, step.refused_by, step.error) == ("refused", "user", answer)
    assert step.result is None


def test_a_call_that_was_allowed_after_a_wait_is_one_call_with_its_result() -> None:
    asks = tool("pay", args={"to": "Ana"})
    pays = tool("pay", args={"to": "Ana"}, result="paid")
    first = agent("a", model(calls=_WRITTEN), asks)
    turn = read(workflow("w", first, agent("a", pays, model("Done.", hears=_told("paid")))))
    assert chain(turn) == ["a"]
    [step] = tools(turn.runs[0])
    assert step.status == "ok"
    assert step.result is not None
    assert step.result.text == "paid"


def test_a_call_that_still_waits_for_a_person_is_waiting() -> None:
    asks = "This tool call requires confirmation, please approve or reject."
    turn = read(
        agent("a", model(calls=_WRITTEN), tool("pay", id_="1", args={"to": "Ana"}, result=asks))
    )
    assert tools(turn.runs[0])[0].status == "waiting"


def test_one_tool_called_twice_with_the_same_arguments_is_two_calls() -> None:
    written = [call("look_up", "1", q=1), call("look_up", "2", q=1)]
    ran = [tool("look_up", args={"q": 1}, id_=id_) for id_ in "12"]
    turn = read(agent("a", model(calls=written), *ran, model("ok")))
    assert [step.id for step in tools(turn.runs[0])] == ["1", "2"]


def test_a_call_of_a_tool_that_was_not_on_offer_is_refused_by_the_runtime() -> None:
    offers: Any = {"gen_ai.tool.definitions": '[{"name": "pay"}]'}
    turn = read(agent("a", model(calls=[call("fly", "1")], **offers), model("I cannot.", **offers)))
    [step] = tools(turn.runs[0])
    assert (step.status, step.refused_by) == ("refused", "runtime")


def test_a_tool_that_the_provider_ran_is_not_refused_though_no_span_is_of_it() -> None:
    parts = [
        {"type": "server_tool_call", "id": "1", "name": "web_search",
         "server_tool_call": {"type": "web_search", "query": "x"}},
        {"type": "server_tool_call_response", "id": "1",
         "server_tool_call_response": {"type": "web_search", "results": ["y"]}},
        {"type": "text", "content": "y"},
    ]  # fmt: skip
    offers: Any = {
        "gen_ai.tool.definitions": '[{"name": "pay"}]',
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
    }
    [run] = read(agent("a", model(**offers))).runs
    [step] = tools(run)
    assert (step.name, step.status, step.arguments) == ("web_search", "ok", {"query": "x"})
    assert step.result is not None


def test_a_transfer_to_a_name_that_means_a_person_ends_there() -> None:
    dispatch = only(read(agent("a", model(), tool("transfer_to_human"))))
    assert (dispatch.to_kind, dispatch.status) == ("human", "completed")


def _asks_a_person(*inside: Piece) -> Piece:
    """A graph of LangGraph that stops with the exception by which it asks a person."""
    asked = using(piece("approve", *inside), **{"openinference.span.kind": "CHAIN"})
    told = {"exception.type": "langgraph.errors.GraphInterrupt", "exception.message": "?"}
    asked.events = [Event(name="exception", at=1000.0, attributes=told)]
    asked.scope = "openinference.instrumentation.langchain"
    return asked


def test_a_turn_that_stops_for_a_person_is_waiting_with_its_calls() -> None:
    turn = read(workflow("w", agent("a", model(calls=_WRITTEN), _asks_a_person())))
    assert (turn.status, turn.runs[0].status) == ("waiting", "waiting")
    assert tools(turn.runs[0])[0].status == "waiting"


def test_a_turn_that_went_on_after_a_person_was_asked_is_not_waiting() -> None:
    went_on = (tool("pay", id_="1", result="paid"), model("Done."))
    turn = read(workflow("w", agent("a", model(calls=_WRITTEN), _asks_a_person(), *went_on)))
    assert (turn.status, tools(turn.runs[0])[0].status) == ("completed", "ok")
