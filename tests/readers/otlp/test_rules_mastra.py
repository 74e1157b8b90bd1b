"""What Mastra writes beyond its recordings: calls that wait, unknown sub-agents, odd values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.model import Content, Said, Turn

from .spans import (
    Piece,
    chain,
    edges,
    only,
    piece,
    read,
    read_spans,
    read_trace,
    spans,
    tools,
    using,
)


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


def _generation(*steps: Piece, **told: Any) -> Piece:
    counts: dict[str, Any] = {"gen_ai.usage.input_tokens": 50, "gen_ai.usage.output_tokens": 10}
    return using(_loop(*steps), **{"gen_ai.operation.name": "chat"}, **counts, **told)


def _chunk(made: Any) -> Piece:
    return _span("model_chunk", **{"mastra.model_chunk.output": made})


def test_a_loop_whose_agent_left_no_span_is_that_agent() -> None:
    failed = {"gen_ai.agent.name": "watcher", "gen_ai.response.finish_reasons": ["error"]}
    error = _chunk({"type": "error", "error": {"message": "no station"}})
    step = _span("model_step", error, **{"mastra.model_step.output": {"text": ""}})
    loop, *inside = spans(_generation(step, **failed))
    loop.parent_id = "00000000000000ff"
    [turn] = read_trace([loop, *inside]).turns
    [run] = turn.runs
    assert (run.agent, run.status, run.error) == ("watcher", "failed", "no station")
    assert run.output is None


def test_requests_without_counts_of_their_own_have_those_of_the_loop() -> None:
    [run] = _read(_agent("gardener", _generation(_step({"text": "Beans."})))).runs
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.output_tokens, run.usage.requests) == (50, 10, 1)


def test_what_the_memory_of_an_agent_asks_is_no_answer_of_the_agent() -> None:
    own, title = _step({"text": "Beans."}), _step({"text": "About beans"})
    run_id = {"mastra.metadata.runId": "r1"}
    loops = _generation(own, **run_id), _generation(title)
    [run] = _read(_agent("gardener", *loops, made={"text": "Beans."}, **run_id)).runs
    assert [step.content.plain() for step in run.steps if type(step) is Said] == ["Beans."]
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.complete) == (100, True)


def test_a_call_that_did_not_run_has_its_answer_from_the_stream() -> None:
    result = {"error": True, "message": "bed: Required", "validationErrors": {}}
    refused = _chunk({"toolCallId": "c1", "toolName": "soil", "result": result})
    steps = [
        _span("model_step", refused, **{"mastra.model_step.output": _calls("soil")}),
        _span("model_step", **{"mastra.model_step.output": {"text": "Beans."}}),
    ]
    [call] = tools(_read(_agent("gardener", _generation(*steps))).runs[0])
    assert (call.status, call.error) == ("failed", "bed: Required")


_RUN, _THREAD = "mastra.metadata.runId", {"mastra.metadata.threadId": "t-1"}


@pytest.mark.parametrize(("second", "turns"), [("r1", 1), ("r2", 2)])
def test_the_agents_of_one_run_of_a_network_are_one_turn(second: str, turns: int) -> None:
    botanist, watcher = (
        using(_agent(name, _loop(_step({"text": "Done."}))), **_THREAD, **{_RUN: run})
        for name, run in (("botanist", "r1"), ("watcher", second))
    )
    made = [*spans(botanist), *spans(watcher, trace="cd" * 16, at=2000.0)]
    assert len(read_trace(made).turns) == turns


def test_version_0_3_names_agents_and_threads_by_attributes_of_their_own() -> None:
    told = {"mastra.span.type": "agent_run", "agent.id": "botanist", "threadId": "t-1"}
    made = using(piece("agent.botanist"), **told, input="Beans?", output='{"text":"Yes."}')
    [trace] = read_spans([*spans(made), *spans(made, trace="cd" * 16, at=2000.0)], [])
    assert [(run.agent, run.output) for turn in trace.turns for run in turn.runs] == [
        ("botanist", Content(text="Yes.")),
        ("botanist", Content(text="Yes.")),
    ]


def test_by_openinference_a_call_that_did_not_run_failed() -> None:
    result = {"error": True, "message": "bed: Required", "validationErrors": {}}
    told = {"openinference.span.kind": "TOOL", "tool.name": "soil", "tool_call.id": "c1"}
    called = using(piece("execute_tool soil"), "@mastra/otel-exporter", **told)
    called = using(called, **{"mastra.span.type": "tool_call", "output.value": json.dumps(result)})
    [call] = tools(_read(_agent("gardener", _loop(_step(_calls("soil"), called)))).runs[0])
    assert (call.id, call.status, call.error) == ("c1", "failed", "bed: Required")
