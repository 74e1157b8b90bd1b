"""A trace that answers a call which waits belongs to the turn of the trace before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.readers.otlp.spans import Event, read_spans
from tests.readers.otlp.truth import CAPTURES

from baton import load_traces
from baton.model import Trace

from .spans import (
    Piece,
    agent,
    call,
    chain,
    edges,
    model,
    piece,
    read_trace,
    spans,
    tool,
    tools,
    using,
)

PAY = [call("pay", "id-7", to="Ana")]
ASKED = {"role": "user", "parts": [{"type": "text", "content": "Pay Ana"}]}
WROTE = {"role": "assistant", "parts": [{"type": "tool_call", **PAY[0]}]}


def _answer(result: str = "paid", id_: str = "id-7") -> dict[str, Any]:
    part = {"type": "tool_call_response", "id": id_, "response": result}
    return {"role": "tool", "parts": [part]}


def _read(*traces: Piece, session: str = "s") -> Trace:
    made = [
        msgspec.structs.replace(span, attributes=span.attributes | {"session.id": session})
        for number, one in enumerate(traces)
        for span in spans(one, trace=f"{number + 10}" * 16, at=1000.0 + 100 * number)
    ]
    return read_trace(made)


def _asks(**more: Any) -> Piece:
    return agent("a", model(calls=PAY, hears=[ASKED]), **more)


def test_a_tool_that_runs_in_the_next_trace_is_the_call_that_waited() -> None:
    resumed = agent(
        "a",
        tool("pay", id_="id-7", args={"to": "Ana"}, result="paid"),
        model("Done.", hears=[ASKED, WROTE, _answer()]),
    )
    [turn] = _read(_asks(), resumed).turns
    assert chain(turn) == ["a"]
    [step] = tools(turn.runs[0])
    assert (step.status, step.result.plain() if step.result else None) == ("ok", "paid")
    assert (turn.status, turn.output.plain() if turn.output else None) == ("completed", "Done.")
    assert turn.input is not None
    assert turn.input.text == "Pay Ana"


def test_a_result_from_outside_resumes_the_turn_without_a_span_of_the_tool() -> None:
    resumed = agent("a", model("Done.", hears=[ASKED, WROTE, _answer()]))
    [turn] = _read(_asks(), resumed).turns
    assert [step.status for step in tools(turn.runs[0])] == ["ok"]


def test_a_decision_that_repeats_the_call_is_no_message_of_the_user() -> None:
    decided = {"type": "function_approval_response", "function_call": PAY[0], "approved": True}
    heard = [{"role": "user", "parts": [decided]}]
    told = {"gen_ai.input.messages": json.dumps(heard)}
    done = tool("pay", id_="id-7", args={"to": "Ana"}, result="paid")
    resumed = agent("a", done, model("Done.", hears=[ASKED, WROTE, _answer()]), **told)
    [turn] = _read(_asks(), resumed).turns
    assert turn.input is not None
    assert turn.input.text == "Pay Ana"
    [alone] = _read(resumed).turns
    assert alone.input is not None
    assert alone.input.text == "Pay Ana"


def test_a_person_who_refuses_resumes_the_turn() -> None:
    told = _answer("The tool call was denied.")
    [turn] = _read(_asks(), agent("a", model("Then not.", hears=[ASKED, WROTE, told]))).turns
    [step] = tools(turn.runs[0])
    assert (step.status, step.refused_by) == ("refused", "user")


def test_each_request_in_a_trace_of_its_own_is_one_turn() -> None:
    again = [call("pay", "id-8", to="Bo")]
    wrote = {"role": "assistant", "parts": [{"type": "tool_call", **again[0]}]}
    heard = [ASKED, WROTE, _answer()]
    more = [*heard, wrote, _answer(id_="id-8")]
    requests = (
        model(calls=PAY, hears=[ASKED]),
        model(calls=again, hears=heard),
        model("Done.", hears=more),
    )
    [turn] = _read(*requests).turns
    assert chain(turn) == ["main"]
    assert [step.id for step in tools(turn.runs[0])] == ["id-7", "id-8"]


def test_a_new_message_is_a_new_turn_even_if_the_call_is_answered_with_it() -> None:
    new = {"role": "user", "parts": [{"type": "text", "content": "Never mind. Hello?"}]}
    hears = [ASKED, WROTE, _answer("cancelled"), new]
    _, second = _read(_asks(), agent("a", model("Hello.", hears=hears))).turns
    assert second.input is not None
    assert second.input.text == "Never mind. Hello?"


def test_a_call_that_was_answered_before_is_not_resumed() -> None:
    """The program then only repeats the history: it asks its model once more."""
    first = agent("a", model(calls=PAY, hears=[ASKED]), tool("pay", id_="id-7", result="paid"))
    again = agent("a", model("Done.", hears=[ASKED, WROTE, _answer()]))
    assert len(_read(first, again).turns) == 2


def test_ids_that_a_model_gives_again_prove_nothing() -> None:
    own = [call("pay", "id-7", to="Bo")]
    hears = [{"role": "user", "parts": [{"type": "text", "content": "Pay Bo"}]}]
    second = agent("a", model(calls=own, hears=hears), tool("pay", id_="id-7", result="paid"))
    assert len(_read(_asks(), second).turns) == 2


def test_another_tool_with_the_same_id_proves_nothing() -> None:
    second = agent("b", tool("look_up", id_="id-7", result="x"), model("Hi."))
    assert len(_read(_asks(), second).turns) == 2


def test_another_conversation_does_not_answer_a_call() -> None:
    made = []
    for number, one in enumerate(
        (_asks(), agent("a", model("Done.", hears=[ASKED, WROTE, _answer()])))
    ):
        for span in spans(one, trace=f"{number + 10}" * 16, at=1000.0 + 100 * number):
            own = span.attributes | {"session.id": f"s{number}"}
            made.append(msgspec.structs.replace(span, attributes=own))
    assert len(read_spans(made, [])) == 2


def _graph(given: Any, *inside: Piece, asks: bool = False) -> Piece:
    """A run of a LangGraph graph, which may stop to ask a person in a node without a model."""
    node = using(
        piece("approve"),
        **{
            "openinference.span.kind": "CHAIN",
            "metadata": json.dumps(
                {"langgraph_node": "approve", "langgraph_checkpoint_ns": "approve:1"}
            ),
        },
    )
    if asks:
        told = {"exception.type": "langgraph.errors.GraphInterrupt", "exception.message": "?"}
        node.events = [Event(name="exception", at=1000.0, attributes=told)]
    made = using(
        piece("LangGraph", *inside, node),
        **{"openinference.span.kind": "CHAIN", "input.value": json.dumps(given)},
    )
    return _scoped(made)


def _scoped(made: Piece) -> Piece:
    made.scope = "openinference.instrumentation.langchain"
    for each in made.inside:
        _scoped(each)
    return made


def _writes(text: str) -> Piece:
    return using(
        piece("ChatOpenAI"),
        **{
            "openinference.span.kind": "LLM",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": text,
            "metadata": json.dumps(
                {"langgraph_node": "writer", "langgraph_checkpoint_ns": "writer:1"}
            ),
        },
    )


RESUME: Any = {"graph": None, "update": None, "resume": "yes", "goto": []}
QUESTION = {"messages": [{"role": "user", "content": "Write it"}]}


def test_the_command_that_resumes_a_graph_resumes_the_turn_without_a_call() -> None:
    first = _graph(QUESTION, _writes("Draft."), asks=True)
    [turn] = _read(first, _graph(RESUME, _writes("Sent."))).turns
    assert turn.status == "completed"
    assert turn.output is not None
    assert turn.output.text == "Sent."


def test_a_graph_that_does_not_wait_is_not_resumed() -> None:
    assert len(_read(_graph(QUESTION, _writes("A.")), _graph(RESUME, _writes("B."))).turns) == 2


def test_a_new_message_to_a_graph_that_waits_is_a_new_turn() -> None:
    first = _graph(QUESTION, _writes("Draft."), asks=True)
    assert len(_read(first, _graph(QUESTION, _writes("Again."))).turns) == 2


def _kept(tmp_path: Path, capture: str, which: int) -> Trace:
    """Read only one trace of a recording that has several."""
    export = json.loads((CAPTURES / capture).read_text())
    scopes = [s for r in export["resourceSpans"] for s in r["scopeSpans"]]
    made = sorted(
        (s for scope in scopes for s in scope["spans"]), key=lambda s: int(s["startTimeUnixNano"])
    )
    wanted = list(dict.fromkeys(span["traceId"] for span in made))[which]
    for scope in scopes:
        scope["spans"] = [span for span in scope["spans"] if span["traceId"] == wanted]
    file = tmp_path / "kept.json"
    file.write_text(json.dumps(export))
    [trace] = load_traces(file)
    return trace


@pytest.mark.parametrize("framework", ["langgraph", "langgraph-traceloop", "langsmith"])
def test_a_resumed_graph_alone_is_a_turn_whose_message_is_the_answer(
    tmp_path: Path, framework: str
) -> None:
    [turn] = _kept(tmp_path, f"{framework}/interrupt_in_tool.json", -1).turns
    assert turn.input is not None
    assert turn.input.text == "yes"
    assert edges(turn) == [("front", "billing", "delegate")]


@pytest.mark.parametrize(
    "capture",
    [
        "google-adk/confirmation_content.json",
        "langgraph/interrupt_in_tool.json",
        "langgraph/sub_agent_approval.json",
        "microsoft-agent-framework/approval_waits.json",
        "pydantic-ai/approval.json",
        "strands/interrupted.json",
        "strands/interrupted_latest_semconv.json",
    ],
)
def test_a_turn_whose_resumption_is_not_recorded_yet_waits(tmp_path: Path, capture: str) -> None:
    [turn] = _kept(tmp_path, capture, 0).turns
    assert (turn.status, turn.output) == ("waiting", None)
    assert tools(turn.runs[-1])[-1].status == "waiting"


def test_agents_of_another_session_of_adk_get_nothing_back(tmp_path: Path) -> None:
    """A program may play two sessions in one trace; the second starts anew."""
    [trace] = load_traces(CAPTURES / "google-adk" / "two_sessions_content.json")
    [turn] = trace.turns
    assert "return" not in {dispatch.kind for dispatch in turn.dispatches}
