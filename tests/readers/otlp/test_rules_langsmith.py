"""What LangSmith writes is read in all its spellings, and only if it is LangSmith's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.readers.otlp.spans import Event, read_spans

from baton.model import Content, Trace

from .spans import (
    Piece,
    agent,
    chain,
    edges,
    model,
    only,
    piece,
    read,
    read_trace,
    spans,
    tools,
    using,
)

OPERATIONS = {"llm": "chat", "tool": "execute_tool", "prompt": "chat", "retriever": "embeddings"}


def _run(
    kind: str, name: str, *inside: Piece, given: Any = None, made: Any = None, **metadata: Any
) -> Piece:
    """A run of LangSmith, with its inputs, outputs and metadata."""
    told = {
        "langsmith.span.kind": kind,
        "langsmith.trace.name": name,
        "langsmith.trace.session_name": "default",
        "gen_ai.operation.name": OPERATIONS.get(kind, kind),
        "gen_ai.system": "langchain",
        "gen_ai.prompt": json.dumps({} if given is None else given),
        "gen_ai.completion": json.dumps({} if made is None else made),
    }
    told |= {f"langsmith.metadata.{key}": value for key, value in metadata.items()}
    return using(piece(name, *inside), "langsmith", **told)


def _said(text: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text, **more}}]}


def _asked(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def test_a_template_of_a_prompt_is_not_a_request_though_its_operation_is_chat() -> None:
    template = _run("prompt", "ChatPromptTemplate", given={"x": "y"}, made={"messages": []})
    request = _run("llm", "ChatModel", given=_asked("Hi?"), made=_said("Hi."))
    trace = read_trace(spans(_run("chain", "desk", template, request)))
    [run] = trace.turns[0].runs
    assert (len(run.steps), trace.dropped) == (1, [])


def test_what_failed_says_why_without_its_traceback() -> None:
    lookup = _run("tool", "look_up", given={"city": "Porto"})
    lookup.status = 2
    told = "RuntimeError('service is down')Traceback (most recent call last):\n  File x\n"
    named = {"exception.type": "Exception", "exception.message": told}
    lookup.events = [Event(name="exception", attributes=named)]
    [call] = tools(read(_run("chain", "desk", lookup)).runs[0])
    assert (call.status, call.error, call.arguments) == (
        "failed",
        "service is down",
        {"city": "Porto"},
    )


def test_an_error_that_is_not_an_exception_of_python_stays_as_it_is() -> None:
    lookup = _run("tool", "look_up", given={"city": "Porto"})
    lookup.status, lookup.message = 2, "Error: 503 from (upstream"
    [call] = tools(read(_run("chain", "desk", lookup)).runs[0])
    assert call.error == "Error: 503 from (upstream"


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ({"city": "Porto"}, {"city": "Porto"}),
        ({"input": "{'city': 'Porto', 'near': True}"}, {"city": "Porto", "near": True}),
        ({"input": "Porto"}, {"input": "Porto"}),
        ({"input": "{'city': __import__('os')}"}, {"input": "{'city': __import__('os')}"}),
    ],
)
def test_arguments_are_read_as_older_and_newer_versions_write_them(
    given: Any, arguments: Any
) -> None:
    ran = _run("tool", "look_up", given=given, made={"output": "ok"})
    [call] = tools(read(_run("chain", "desk", ran)).runs[0])
    assert (call.arguments, call.result) == (arguments, Content(text="ok"))


def test_a_tool_without_arguments_is_distinguished_from_one_whose_arguments_are_hidden() -> None:
    plain = _run("tool", "now", made={"output": "noon"})
    hidden = _run("tool", "then")
    first, second = tools(read(_run("chain", "desk", plain, hidden)).runs[0])
    assert (first.arguments, "arguments" in first.unknown) == ({}, False)
    assert (second.arguments, second.result) == (None, None)
    assert {"arguments", "result"} <= set(second.unknown)


def test_cached_and_thinking_tokens_and_cost_are_those_of_the_metadata() -> None:
    spent = {
        "input_tokens": 50,
        "output_tokens": 10,
        "total_tokens": 60,
        "total_cost": 0.002,
        "input_token_details": {"cache_read": 30, "cache_creation": 5},
        "output_token_details": {"reasoning": 4},
    }
    request = _run("llm", "m", made=_said("Hi."), usage_metadata=json.dumps(spent))
    [run] = read(_run("chain", "desk", request)).runs
    told = run.usage
    assert told is not None
    assert (told.input_tokens, told.cache_read_tokens, told.cache_write_tokens) == (15, 30, 5)
    assert (told.output_tokens, told.cost_usd, told.cost_from) == (10, 0.002, "source")


def test_token_details_are_read_as_python_prints_them() -> None:
    told: dict[str, Any] = {
        "gen_ai.usage.input_tokens": 50,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.input_token_details": "{'cache_read': 30}",
    }
    request = using(_run("llm", "m", made=_said("Hi.")), **told)
    [run] = read(_run("chain", "desk", request)).runs
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.cache_read_tokens) == (20, 30)


def test_chains_that_integrations_mark_are_agents_and_what_inherits_the_mark_is_not() -> None:
    helper = _run("chain", "format", ls_agent_type="subagent")
    request = _run("llm", "m", made=_said("Found."), ls_agent_type="subagent")
    scout = _run("chain", "scout", helper, request, given={"prompt": "Look."},
                 made={"output": "Found."}, ls_agent_type="subagent")  # fmt: skip
    ask = _run("tool", "Task", scout, given={"prompt": "Look."}, made={"output": "Found."},
               ls_agent_type="root")  # fmt: skip
    step = _run("chain", "step", ls_agent_type="root")
    turn = read(
        _run("chain", "claude.conversation", _run("llm", "m", made=_said("I look.")), step, ask,
             ls_agent_type="root")
    )  # fmt: skip
    assert chain(turn) == ["main", "scout"]
    assert edges(turn) == [("main", "scout", "delegate")]


def test_a_tool_that_names_where_it_hands_over_to_is_a_transfer_whatever_its_name() -> None:
    def node(name: str, *inside: Piece) -> Piece:
        place = f"{name}:1"
        return _run("chain", name, *inside, langgraph_checkpoint_ns=place, langgraph_node=name)

    def request(name: str, text: str) -> Piece:
        return _run("llm", "m", made=_said(text), langgraph_checkpoint_ns=f"{name}:1")

    leave = _run("tool", "ask_colleague", langgraph_checkpoint_ns="front:1",
                 __handoff_destination="back")  # fmt: skip
    graph = _run("chain", "LangGraph", node("front", request("front", "One moment."), leave),
                 node("back", request("back", "Done.")), ls_integration="langgraph")  # fmt: skip
    turn = read(graph)
    assert chain(turn) == ["front", "back"]
    assert (only(turn).kind, only(turn).to_agent) == ("transfer", "back")


def test_spans_of_others_stay_theirs_when_they_are_labelled_for_langsmith() -> None:
    labels = {"langsmith.span.kind": "chain", "langsmith.metadata.user": "u"}
    turn = read(using(agent("guide", model("Hi.")), **labels))
    assert (chain(turn), turn.output) == (["guide"], Content(text="Hi."))


def test_a_request_labelled_by_hand_has_its_messages_in_the_names_of_opentelemetry() -> None:
    told = {"langsmith.span.kind": "llm", "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "Hi?", "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "Hi."}  # fmt: skip
    turn = read(using(piece("call"), **told))
    assert (turn.input, turn.output) == (Content(text="Hi?"), Content(text="Hi."))


@pytest.mark.parametrize("key", ["session_id", "thread_id", "conversation_id"])
def test_metadata_name_the_conversation(key: str) -> None:
    traces: list[Trace] = read_spans(
        [
            span
            for number in (1, 2)
            for span in spans(
                _run("chain", "desk", _run("llm", "m", made=_said("Hi.")), **{key: "c-1"}),
                trace=f"{number}" * 32,
                at=1000.0 * number,
            )
        ],
        [],
    )
    assert [(trace.id, len(trace.turns)) for trace in traces] == [("c-1", 2)]


@pytest.mark.parametrize("odd", [None, "", "{", "9" * 6000, 7, True, [], [[]], {"a": []}])
def test_values_of_any_type_break_nothing(odd: Any) -> None:
    keys = ("gen_ai.prompt", "gen_ai.completion", "gen_ai.operation.name", "gen_ai.tool.name",
            "langsmith.trace.session_id", "langsmith.metadata.ls_agent_type",
            "langsmith.metadata.usage_metadata", "langsmith.metadata.langgraph_checkpoint_ns",
            "langsmith.metadata.lc_agent_name", "gen_ai.usage.input_token_details")  # fmt: skip
    told = dict.fromkeys(keys, odd)
    runs = [using(_run(kind, "x"), **told) for kind in ("llm", "tool", "chain", "agent", "odd")]
    read(_run("chain", "desk", *runs, _run("llm", "m", made=_said("Hi."))))
