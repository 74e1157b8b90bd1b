"""Spans that contradict themselves: what they tell is kept, and the record holds together."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.readers.otlp.spans import Span

from baton.model import Content, ToolCall, Trace
from baton.readers.otlp.span_content import Node, Overlaps, PlainSpan, node_of
from baton.readers.otlp.wire.sdk import log_from_sdk

from .spans import (
    Piece,
    agent,
    call,
    chain,
    edges,
    model,
    piece,
    read,
    read_trace,
    spans,
    together,
    tool,
    tools,
    using,
    workflow,
)


def test_a_run_stands_after_the_one_that_set_it_to_work_whatever_their_clocks_say() -> None:
    made = spans(agent("boss", model("One moment."), agent("helper", model("Done."))))
    late = [s.span_id for s in made if s.name == "invoke_agent boss"]
    moved = [msgspec.structs.replace(s, started=1001.9) if s.span_id in late else s for s in made]
    [turn] = read_trace(moved).turns
    assert chain(turn) == ["boss", "helper"]


def test_a_call_makes_one_hand_off_also_when_its_agent_began_before_the_caller() -> None:
    asked = model(calls=[call("transfer_to_helper", "c1")])
    made = spans(agent("boss", asked, agent("helper", model("Done."))))
    moved = [
        msgspec.structs.replace(s, started=1002.0) if s.name == "invoke_agent boss" else s
        for s in made
    ]
    [turn] = read_trace(moved).turns
    assert len(turn.dispatches) == 1


def test_numbers_that_json_cannot_hold_are_kept_as_text() -> None:
    ran = tool("measure", args={"a": 1}, result="x")
    ran.attributes["gen_ai.tool.call.arguments"] = {"a": math.nan, "b": [math.inf]}
    trace = read_trace(spans(agent("a", model("Hi."), ran)))
    [measured] = tools(trace.turns[0].runs[0])
    assert measured.arguments == {"a": "nan", "b": ["inf"]}
    assert msgspec.json.decode(msgspec.json.encode(trace), type=Trace) == trace


def test_calls_that_are_no_list_are_no_calls() -> None:
    asked = model("Hi.")
    asked.attributes["gen_ai.output.messages"] = json.dumps(
        [{"role": "assistant", "content": "Hi.", "tool_calls": 5}]
    )
    turn = read(agent("a", asked))
    assert turn.output is not None
    assert turn.output.text == "Hi."


def test_half_a_surrogate_pair_in_a_program_is_mended() -> None:
    record = SimpleNamespace(
        attributes={"a\ud800": ["b\udfff"]}, body="c\ud800", timestamp=1, trace_id=1, span_id=2
    )
    log = log_from_sdk(record)
    assert (log.attributes, log.body) == ({"a?": ["b?"]}, "c?")


def test_far_too_many_ways_into_a_join_are_named_unknown_and_not_written_down() -> None:
    half = [agent(f"a{n}", model("A.")) for n in range(260)]
    rest = [agent(f"b{n}", model("B.")) for n in range(260)]
    turn = read(workflow("all", together(*half), together(*rest)))
    assert len(turn.runs) == 520
    assert len(edges(turn)) < 60_000
    limited = [run for run in turn.runs if "started_by" in run.unknown]
    assert limited
    assert all(len(run.started_by) == 1 for run in limited)


_TIMES = st.tuples(st.integers(0, 50), st.none() | st.integers(0, 20) | st.just(10**6))


def _node(times: tuple[int, int | None]) -> Node:
    start, length = times
    ended = None if length is None else float(start + length)
    made: dict[str, Any] = {"trace_id": "", "span_id": "", "started": float(start), "ended": ended}
    return node_of(Span(**made), PlainSpan())


@given(st.lists(_TIMES, max_size=30), _TIMES)
def test_nodes_at_work_together_are_found_in_the_order_of_adding(
    times: list[tuple[int, int | None]], one: tuple[int, int | None]
) -> None:
    nodes, node = [_node(each) for each in times], _node(one)
    found = list(Overlaps(nodes).around(node))
    assert found == [n for n in nodes if n.started <= node.ended and n.ended >= node.started]


@pytest.mark.parametrize(
    "made", ['{"tool_messages": [1, {"content": 5}, {"content": [1]}]}', '{"tool_messages": 7}']
)
def test_messages_of_haystack_that_are_none_are_left_out(made: str) -> None:
    told = {"haystack.component.type": "ToolInvoker", "haystack.component.output": made}
    inner = piece("haystack.agent.run", piece("haystack.agent.step.llm"))
    invoker = using(piece("haystack.component.run", inner), **told)
    turn = read(piece("haystack.agent.run", invoker, piece("haystack.agent.step.llm")))
    assert all(run.agent == "main" for run in turn.runs)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("Failed to invoke Tool `add` with parameters {'a': 1}. Error: too big", "failed"),
        ("Failed to invoke Tool `other` with parameters {}. Error: too big", "ok"),
        ("too big", "ok"),
    ],
)
def test_haystack_3_0_says_in_words_that_a_tool_failed(error: str, status: str) -> None:
    told = {"haystack.tool.name": "add"}
    told["haystack.agent.step.tool.output"] = json.dumps({"error": error})
    called = using(piece("haystack.agent.step.tool"), **told)
    (run,) = read(piece("haystack.agent.run", called)).runs
    (call,) = run.steps
    assert isinstance(call, ToolCall)
    assert (call.status, call.error) == (status, error if status == "failed" else None)


@pytest.mark.parametrize(
    ("error", "output", "status"),
    [(None, None, "unknown"), (True, None, "failed"), (None, "3", "ok")],
)
def test_it_is_unknown_whether_a_tool_of_haystack_failed_if_its_output_is_not_recorded(
    error: bool | None, output: str | None, status: str
) -> None:
    told: dict[str, Any] = {"haystack.tool.name": "add"}
    if error is not None:
        told["haystack.tool.error"] = error
    if output is not None:
        told["haystack.agent.step.tool.output"] = output
    called = using(piece("haystack.agent.step.tool"), **told)
    (run,) = read(piece("haystack.agent.run", called)).runs
    (call,) = run.steps
    assert isinstance(call, ToolCall)
    assert (call.status, "result" in call.unknown) == (status, status == "unknown")


_ASKED = "[ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[TextContent(text='Hi <b>')])]"


@pytest.mark.parametrize(
    ("tools", "offered"),
    [
        ("[Tool(name='add', function=<function <lambda> at 0x7f21>)]", ["add"]),
        ("[Tool(name='add'), <desk.Search object at 0x7f21>]", None),
        ("[Tool(name='add'), Tool(na", None),
    ],
)
def test_haystack_prints_what_is_no_json(tools: str, offered: list[str] | None) -> None:
    callback = "'streaming_callback': <function <lambda> at 0x7f21>"
    said = json.dumps({"replies": [{"role": "assistant", "content": [{"text": "Ho"}]}]})
    told = {"haystack.agent.input": f"{{'messages': {_ASKED}, {callback}}}"}
    told["haystack.agent.tools"] = tools
    asked = using(piece("haystack.agent.step.llm"), **{"haystack.agent.step.llm.output": said})
    (run,) = read(using(piece("haystack.agent.run", asked), **told)).runs
    assert (run.input, run.tools_offered) == (Content(text="Hi <b>"), offered)
    assert ("tools_offered" in run.unknown) is (offered is None)


@pytest.mark.parametrize(
    "printed",
    [
        "<agent_framework._types.Content object at 0x7f79215e7150>",
        "[<Report object at 0x7f1>, <__main__.main.<locals>.Report object at 0x7F2>]",
    ],
)
def test_a_printed_object_is_no_result_and_what_it_held_is_unknown(printed: str) -> None:
    asked = tool("helper", agent("helper", model(hears="Look.")), args={"task": "Look."})
    looked = tool("look", args={"at": "x"}, result=printed)
    asked.attributes["gen_ai.tool.call.result"] = printed
    turn = read(agent("boss", model("Hm."), looked, asked))
    call_, _ = tools(turn.runs[0])
    assert (call_.result, call_.unknown) == (None, ["result"])
    [dispatch] = turn.dispatches
    assert dispatch.result is None
    assert "result" in dispatch.unknown


def test_a_text_about_a_printed_object_is_a_result() -> None:
    said = "It printed <Report object at 0x7f1>."
    turn = read(agent("boss", model("Hm."), tool("look", args={"at": "x"}, result=said)))
    result = tools(turn.runs[0])[0].result
    assert result is not None
    assert result.text == said


def test_a_placeholder_is_no_id_of_a_call() -> None:
    """Google ADK writes it for each tool that raises."""
    lost = "<not specified>"
    raised = [tool(name, id_=lost, error="ValueError: no") for name in ("a", "b", "a")]
    turn = read(agent("boss", model("Hm."), *raised))
    calls = tools(turn.runs[0])
    assert [each.name for each in calls] == ["a", "b", "a"]
    assert lost not in {each.id for each in calls}


def test_what_traceai_records_of_google_adk_is_read_as_adk_means_it() -> None:
    retold = "For context:\n[front] said: Billing helps."
    heard = [{"role": "user", "content": "Money back"}, {"role": "user", "content": retold}]
    asked = model("Done.", hears=heard)
    paid = tool("pay", args={"to": "me"}, result='{"result": "Paid."}')
    made = [using(each, "traceai_google_adk") for each in (asked, paid)]
    run = read(using(agent("billing", *made), "traceai_google_adk")).runs[0]
    assert run.input is not None
    assert run.input.text == "Money back"
    result = tools(run)[0].result
    assert result is not None
    assert result.text == "Paid."


def test_a_run_of_pydantic_ai_that_traceai_records_twice_counts_once() -> None:
    def run(method: str, result: str, *inside: Piece) -> Piece:
        told: dict[str, Any] = {
            "pydantic_ai.span_kind": "agent_run",
            "pydantic_ai.agent.name": "boss",
            "pydantic_ai.run.method": method,
            "pydantic_ai.run.prompt": "Hello?",
            "pydantic_ai.run.result": result,
            "gen_ai.request.model": "m",
            "gen_ai.usage.input_tokens": 7,
            "gen_ai.usage.output_tokens": 3,
        }
        return using(piece("pydantic_ai.agent.run", *inside), **told)

    turn = read(run("run_sync", "Hi.", run("run", "Hi.")))
    [only_run] = turn.runs
    assert (only_run.agent, only_run.usage and only_run.usage.input_tokens) == ("boss", 7)
    assert (turn.input and turn.input.text, turn.output and turn.output.text) == ("Hello?", "Hi.")
    assert "steps.tool_call" in only_run.unknown  # only a tool that a program wraps has a span
    truncated = read(run("run", "x" * 1997 + "...")).runs[0]
    assert truncated.output is None
    assert "output" in truncated.unknown
