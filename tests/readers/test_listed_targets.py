"""A hand-over tool that lists its targets proves which agents exist, whoever recorded it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.readers.claude.conftest import Script
from tests.readers.otlp import spans as otlp
from tests.readers.strands import conftest as strands

import baton
from baton.model import Trace
from baton.readers.tool_definitions import targets_of

Json = dict[str, Any]
LISTED = ["billing", "tech"]


def schema(argument: str, listed: list[str]) -> Json:
    return {"type": "object", "properties": {argument: {"type": "string", "enum": listed}}}


def from_adk(folder: Path, target: str) -> Trace:
    """A result file: ADK writes of each invocation which tools its agents had."""
    declared = {
        "name": "transfer_to_agent",
        "parameters_json_schema": schema("agent_name", LISTED),
    }
    tools = [{"function_declarations": [declared], "google_search": None}]
    asked = {"name": "transfer_to_agent", "args": {"agent_name": target}, "id": "c1"}
    invocation = {
        "invocation_id": "i1",
        "user_content": {"parts": [{"text": "My bill?"}], "role": "user"},
        "final_response": {"parts": [{"text": "One moment."}], "role": "model"},
        "intermediate_data": {
            "invocation_events": [
                {"author": "desk", "content": {"parts": [{"functionCall": asked}]}}
            ]
        },
        "app_details": {"agent_details": {"desk": {"name": "desk", "tool_declarations": tools}}},
    }
    case = {
        "eval_id": "c",
        "session_id": "s",
        "eval_metric_result_per_invocation": [{"actual_invocation": invocation}],
    }
    return _read(folder, json.dumps({"eval_case_results": [case]}))


def from_strands(folder: Path, target: str) -> Trace:
    asked = {"agent_name": target, "message": "His bill."}
    desk = strands.agent("a", "My bill?", "One moment.", metadata={"agent_name": "desk"})
    desk["available_tools"] = [
        {"name": "handoff_to_agent", "parameters": {"json": schema("agent_name", LISTED)}}
    ]
    failed = strands.tool("t", "handoff_to_agent", asked, "", "a", at=1, error="it broke")
    return _read(folder, json.dumps(strands.session(desk, failed)))


def from_claude(folder: Path, target: str) -> Trace:
    say = Script()
    defined = {"name": "Agent", "input_schema": schema("subagent_type", LISTED)}
    lines = [
        say.hears("My bill?"),
        {"type": "api-request-shape", "shape": {"tools": [defined]}},
        say.dispatches("d1", target),
    ]
    common = {"sessionId": "s", "version": "2", "isSidechain": False}
    return _read(folder, "\n".join(json.dumps({**common, **line}) for line in lines))


def from_vercel(_: Path, target: str) -> Trace:
    inputs = schema("agent_name", LISTED)
    defined = {"type": "function", "name": "transfer_to_agent", "inputSchema": inputs}
    asked = [{"toolCallId": "c", "toolName": "transfer_to_agent", "input": {"agent_name": target}}]
    request = _operation(
        "generateText.doGenerate",
        **{
            "ai.prompt.messages": json.dumps([{"role": "user", "content": "My bill?"}]),
            "ai.prompt.tools": [json.dumps(defined)],
            "ai.response.toolCalls": json.dumps(asked),
        },
    )
    desk = _operation("generateText", request, **{"ai.telemetry.functionId": "desk"})
    return otlp.read_trace(otlp.spans(desk))


def from_mlflow(_: Path, target: str) -> Trace:
    function = {"name": "transfer_to_agent", "parameters": schema("agent_name", LISTED)}
    called = {"name": "transfer_to_agent", "arguments": json.dumps({"agent_name": target})}
    answer = {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": called}],
    }
    request = _mlflow(
        "chat",
        "CHAT_MODEL",
        **{
            "mlflow.chat.tools": json.dumps([{"type": "function", "function": function}]),
            "mlflow.spanInputs": json.dumps(
                {"messages": [{"role": "user", "content": "My bill?"}]}
            ),
            "mlflow.spanOutputs": json.dumps({"choices": [{"message": answer}]}),
        },
    )
    return otlp.read_trace(otlp.spans(_mlflow("desk", "AGENT", request)))


def from_haystack(_: Path, target: str) -> Trace:
    tool = {"name": "transfer_to_agent", "parameters": schema("agent_name", LISTED)}
    told = {"haystack.agent.tools": json.dumps([{"type": "haystack.tools.Tool", "data": tool}])}
    call = {"tool_name": "transfer_to_agent", "arguments": {"agent_name": target}, "id": "c"}
    said = {"role": "assistant", "content": [{"tool_call": call}], "meta": {}}
    asked = otlp.using(
        otlp.piece("haystack.agent.step.llm"),
        **{
            "haystack.agent.step.llm.input": json.dumps({"messages": []}),
            "haystack.agent.step.llm.output": json.dumps({"replies": [said]}),
        },
    )
    return otlp.read_trace(otlp.spans(otlp.using(otlp.piece("haystack.agent.run", asked), **told)))


def from_traceloop(_: Path, target: str) -> Trace:
    defined: Json = {
        "gen_ai.operation.name": "chat",
        "llm.request.functions.0.name": "search",
        "llm.request.functions.0.parameters": json.dumps({"properties": {}}),
        "llm.request.functions.1.name": "transfer_to_agent",
        "llm.request.functions.1.parameters": json.dumps(schema("agent_name", LISTED)),
    }
    asked = [otlp.call("transfer_to_agent", agent_name=target)]
    return otlp.read_trace(otlp.spans(otlp.agent("desk", otlp.model(calls=asked, **defined))))


def _operation(name: str, *inside: otlp.Piece, **told: Any) -> otlp.Piece:
    return otlp.using(
        otlp.piece(f"ai.{name}", *inside), "ai", **{"ai.operationId": f"ai.{name}"}, **told
    )


def _mlflow(name: str, kind: str, *inside: otlp.Piece, **told: Any) -> otlp.Piece:
    return otlp.using(otlp.piece(name, *inside), **{"mlflow.spanType": json.dumps(kind)}, **told)


def _read(folder: Path, content: str) -> Trace:
    file = folder / "run.jsonl"
    file.write_text(content, encoding="utf-8")
    (trace,) = baton.load_traces(file)
    return trace


@pytest.mark.parametrize(
    "record",
    [from_adk, from_strands, from_claude, from_vercel, from_mlflow, from_haystack, from_traceloop],
)
def test_an_agent_that_the_tool_does_not_list_is_unknown(
    tmp_path: Path, record: Callable[[Path, str], Trace]
) -> None:
    verdicts = {}
    for target in ("refunds", "billing"):
        trace = record(tmp_path, target)
        assert [d.to_agent for turn in trace.turns for d in turn.dispatches] == [target]
        (result,) = baton.score([trace], evaluators=["dispatch_target_known"]).results
        verdicts[target] = result.scores[0].status, result.scores[0].reason
    assert verdicts["refunds"][0] == "failed"
    assert "`billing`, `tech`" in verdicts["refunds"][1]
    assert verdicts["billing"][0] == "passed"


@pytest.mark.parametrize(
    ("argument", "listed"),
    [
        ({"enum": ["billing", "tech"]}, ["billing", "tech"]),
        ({"const": "billing"}, ["billing"]),
        ({"$ref": "#/$defs/Target"}, ["billing", "tech"]),
        ({"anyOf": [{"enum": ["billing"]}, {"const": "tech"}, {"type": "null"}]}, LISTED),
        ({"anyOf": [{"enum": ["billing"]}, {"type": "string"}]}, None),
        ({"enum": ["billing", 7]}, None),
        ({"$ref": "#/$defs/Loop"}, None),
        ({"type": "string"}, None),
    ],
)
def test_whatever_lists_the_values_of_an_argument_is_read(argument: Json, listed: Any) -> None:
    defined = {"Target": {"enum": LISTED, "type": "string"}, "Loop": {"$ref": "#/$defs/Loop"}}
    parameters = {"properties": {"agent_name": argument}, "$defs": defined}
    found = targets_of(json.dumps([{"name": "hand_on", "parameters": parameters}]))
    assert found == ({"hand_on": listed} if listed else {})


def test_an_argument_beside_the_target_lists_no_agents() -> None:
    parameters = {"properties": {"agent_name": {}, "recipient": {"enum": ["ann", "bob"]}}}
    assert targets_of([{"name": "hand_on", "parameters": parameters}]) == {}


def test_what_any_request_of_an_agent_listed_exists() -> None:
    def request(*listed: str) -> otlp.Piece:
        tool = {"name": "transfer_to_agent", "parameters": schema("agent_name", list(listed))}
        called = [otlp.call("transfer_to_agent", agent_name="billing")]
        defined: Json = {"gen_ai.tool.definitions": json.dumps([tool])}
        return otlp.model(calls=called, **defined)

    trace = otlp.read_trace(otlp.spans(otlp.agent("desk", request("billing"), request("tech"))))
    (result,) = baton.score([trace], evaluators=["dispatch_target_known"]).results
    assert {score.status for score in result.scores} == {"passed"}
