"""What Mastra writes beyond its recordings: calls that wait, unknown sub-agents, odd values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.model import Content, Turn

from .spans import Piece, chain, edges, only, piece, read, tools, using


def _span(kind: str, *inside: Piece, **told: Any) -> Piece:
    values = {"mastra.span.type": kind} | told
    attributes = {k: v if isinstance(v, str | bool) else json.dumps(v) for k, v in values.items()}
    return using(piece(kind, *inside), "@mastra/otel-exporter", **attributes)


def _agent(name: str, *inside: Piece, asked: Any = "Go.", made: Any = None, **told: Any) -> Piece:
    named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    held = {"mastra.agent_run.input": asked, "mastra.agent_run.output": made or {"text": "Done."}}
    return _span("agent_run", *inside, **named, **held, **told)


def _step(made: Any, *inside: Piece) -> Piece:
    request = _span("model_inference", **{"gen_ai.operation.name": "chat"})
    return _span("model_step", request, *inside, **{"mastra.model_step.output": made})


def _loop(*steps: Piece) -> Piece:
    asked = {"messages": [{"role": "user", "content": "Go."}]}
    return _span("model_generation", *steps, **{"mastra.model_generation.input": asked})


def _tool(name: str, *inside: Piece, result: Any = "ok", id_: str = "c1") -> Piece:
    named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    held = {"gen_ai.tool.call.id": id_, "gen_ai.tool.call.arguments": {"prompt": "Go on."}}
    return _span("tool_call", *inside, **named, **held, **{"gen_ai.tool.call.result": result})


def _calls(name: str) -> dict[str, Any]:
    return {"text": "", "toolCalls": [{"toolCallId": "c1", "toolName": name, "args": {"n": 1}}]}


def _read(*pieces: Piece) -> Turn:
    return read(*pieces)


def test_a_call_that_waits_for_a_person_has_the_arguments_of_the_stream() -> None:
    asks = {"status": "suspended", "toolName": "water", "toolCallId": "c1"}
    chunk = {"toolCallId": "c1", "toolName": "water", "args": {"bed": "east"}}
    stream = _span("model_chunk", **{"mastra.model_chunk.output": chunk})
    turn = _read(_agent("gardener", _loop(_step(None, stream)), made=asks))
    [call] = tools(turn.runs[0])
    assert (turn.status, turn.output, call.status) == ("waiting", None, "waiting")
    assert call.arguments == {"bed": "east"}


def test_the_rest_of_a_run_that_a_person_resumed_belongs_to_it() -> None:
    asks = {"status": "suspended", "toolName": "water", "toolCallId": "c1"}
    decision = {"approved": True, "toolName": "water", "toolCallId": "c1"}
    steps = [_tool("water"), _step(_calls("water")), _step({"text": "Watered."})]
    told = {"mastra.metadata.resumed": True}
    rest = _agent("gardener", _loop(*steps), asked=decision, made={"text": "Watered."}, **told)
    turn = _read(_agent("gardener", _loop(_step(None), rest), made=asks))
    [call] = tools(turn.runs[0])
    assert (chain(turn), turn.status, call.status) == (["gardener"], "completed", "ok")
    assert turn.output == Content(text="Watered.")


def test_a_call_that_starts_no_sub_agent_names_it() -> None:
    made = _loop(_step(_calls("agent-botanist"), _tool("agent-botanist")))
    assert edges(_read(_agent("gardener", made))) == [("gardener", "botanist", "delegate")]


@pytest.mark.parametrize("result", [
    {"text": "Good.", "subAgentThreadId": "t", "subAgentToolResults": []}, "Good."
])  # fmt: skip
def test_the_result_of_a_sub_agent_is_what_its_caller_was_told(result: Any) -> None:
    inside = _agent("Botanist", _loop(_step({"text": "Good."})), made={"text": "Good."})
    called = _tool("agent-botanist", inside, result=result)
    turn = _read(_agent("gardener", _loop(_step(_calls("agent-botanist"), called))))
    assert edges(turn) == [("gardener", "Botanist", "delegate")]
    assert only(turn).result == Content(text="Good.")


def test_a_call_with_arguments_that_the_schema_does_not_allow_failed() -> None:
    result = {"error": True, "message": "Tool input validation failed", "validationErrors": {}}
    made = _loop(_step(_calls("soil"), _tool("soil", result=result)))
    [call] = tools(_read(_agent("gardener", made)).runs[0])
    assert (call.status, call.error) == ("failed", "Tool input validation failed")


@pytest.mark.parametrize(
    "odd", ["", "{", "[]", [1], {"messages": 3}, {"text": 3}, {"a": {"b": []}}]
)
def test_values_of_other_shapes_are_no_error(odd: Any) -> None:
    told = {"mastra.model_generation.input": odd, "mastra.model_generation.output": odd}
    made = _span("model_generation", _step(odd, _tool("soil", result=odd)), **told)
    turn = _read(_agent("gardener", made, asked=odd, made=odd or {"text": ""}))
    assert chain(turn) == ["gardener"]


def test_an_answer_that_is_not_recorded_is_unknown() -> None:
    request = _span("model_inference", **{"gen_ai.operation.name": "chat"})
    made = _span("model_generation", _span("model_step", request))
    named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "gardener"}
    turn = _read(_span("agent_run", made, **named))
    assert "output" in turn.runs[0].unknown


def test_an_older_loop_without_requests_of_its_own_has_its_steps_as_requests() -> None:
    asks, says = {**_calls("soil"), "text": "I look."}, {"text": "Beans."}
    steps = [
        _span("model_step", _tool("soil"), **{"mastra.model_step.output": asks}),
        _span("model_step", **{"mastra.model_step.output": says}),
    ]
    counts: dict[str, Any] = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20}
    made = using(_loop(*steps), **{"gen_ai.operation.name": "chat"}, **counts)
    [run] = _read(_agent("gardener", made, made={"text": "I look.Beans."})).runs
    assert (run.output, [call.status for call in tools(run)]) == (Content(text="Beans."), ["ok"])
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.output_tokens, run.usage.requests) == (100, 20, 2)
