"""Traces of 25 spans as the OpenTelemetry Collector writes them to a file, and reading these.

``spans.py write FILE TRACES`` makes a file, one trace a line, or one protobuf message for all where
the file ends in ``.pb``; ``spans.py read FILE TRACES`` reads it to the end as Baton does and fails
when traces are missing.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

JSON = dict[str, Any]

SPANS = 25
AGENTS = ("desk", "billing", "refunds")
_START = 1_767_225_600_000_000_000
_STEP = 1_000_000
_TOOLS = [
    {"type": "function", "name": name, "description": f"Does {name} for the customer"}
    for name in ("transfer_to_agent", "find_order", "refund", "send_mail", "open_ticket")
]


def write(file: Path, traces: int) -> None:
    """Write so many traces of three agents that hand over, each with models and tools."""
    if file.suffix == ".pb":
        from google.protobuf.json_format import ParseDict
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

        with file.open("wb") as packed:  # messages of one type join to one message
            for number in range(1, traces + 1):
                packed.write(
                    ParseDict(_with_base64(_trace(number)), TracesData()).SerializeToString()
                )
        return
    with file.open("w", encoding="utf-8") as lines:
        for number in range(1, traces + 1):
            lines.write(json.dumps(_trace(number), separators=(",", ":")) + "\n")


def export_of(number: int, text: Callable[[], str]) -> bytes:
    """Return one trace as a protobuf message, each span with a text of its own."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    trace = _with_base64(_trace(number))
    for scoped in trace["resourceSpans"][0]["scopeSpans"]:
        for span in scoped["spans"]:
            span["attributes"] += _attributes({"shop.note": text()})
    return ParseDict(trace, TracesData()).SerializeToString()


def _with_base64(trace: JSON) -> JSON:
    """Write ids as protobuf's own JSON has them, where OTLP's has hexadecimal digits."""
    for resource in trace["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if span.get(name):
                        span[name] = b64encode(bytes.fromhex(span[name])).decode()
    return trace


def read(file: Path, traces: int) -> None:
    """Read the file; every trace has to come out with its three agents."""
    from baton.readers import iter_traces

    found = sum([run.agent for run in t.turns[0].runs] == list(AGENTS) for t in iter_traces(file))
    if found != traces:
        raise SystemExit(f"{traces} traces were to be read, and {found} came out whole")


def _trace(number: int) -> JSON:
    spans: list[JSON] = []
    root = _span(spans, number, None, "invoke_workflow help", {"gen_ai.workflow.name": "help"})
    history = [_message("user", f"Where is order {number}, and may I send it back?")]
    for place, agent in enumerate(AGENTS):
        own = _span(spans, number, root, f"invoke_agent {agent}", {"gen_ai.agent.name": agent})
        target = AGENTS[place + 1] if place + 1 < len(AGENTS) else None
        tools = ["find_order", "open_ticket", "transfer_to_agent" if target else "refund"]
        for call, tool in enumerate(tools):
            arguments = {"agent_name": target} if tool == "transfer_to_agent" else {"id": number}
            called = {"type": "tool_call", "id": f"c{place}{call}", "name": tool}
            asked = {"role": "assistant", "parts": [{**called, "arguments": arguments}]}
            _model(spans, number, own, agent, history, asked)
            _tool(spans, number, own, agent, f"c{place}{call}", tool, arguments)
            history = [*history, asked, _result(f"c{place}{call}", f"done: {tool}")]
        if target is None:
            said = _message("assistant", f"Order {number} is on its way back.")
            _model(spans, number, own, agent, history, said)
    while len(spans) < SPANS:
        _span(spans, number, root, "POST /orders", {"http.request.method": "POST"})
    scope = {"scope": {"name": "bench"}, "spans": spans}
    resource = {"attributes": _attributes({"service.name": "shop"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _model(
    spans: list[JSON], number: int, parent: str, agent: str, heard: list[JSON], said: JSON
) -> None:
    attributes = {
        "gen_ai.provider.name": "bench",
        "gen_ai.agent.name": agent,
        "gen_ai.request.model": "model-1",
        "gen_ai.response.model": "model-1",
        "gen_ai.request.temperature": 0.2,
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 14,
        "gen_ai.tool.definitions": json.dumps(_TOOLS),
        "gen_ai.system_instructions": f"You are {agent}.",
        "gen_ai.input.messages": json.dumps(heard),
        "gen_ai.output.messages": json.dumps([said]),
    }
    _span(spans, number, parent, "chat model-1", attributes)


def _tool(
    spans: list[JSON], number: int, parent: str, agent: str, call: str, name: str, given: JSON
) -> None:
    attributes = {
        "gen_ai.agent.name": agent,
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call,
        "gen_ai.tool.call.arguments": json.dumps(given),
        "gen_ai.tool.call.result": f"done: {name}",
    }
    _span(spans, number, parent, f"execute_tool {name}", attributes)


def _span(spans: list[JSON], number: int, parent: str | None, name: str, attributes: JSON) -> str:
    """Add a span; each starts when the one before has ended."""
    id_ = f"{number:08x}{len(spans):08x}"
    at = _START + (number * SPANS + len(spans)) * _STEP
    operation = name.partition(" ")[0]
    told = {
        "gen_ai.operation.name": operation,
        "gen_ai.conversation.id": f"s-{number}",
        "thread.id": 7,
        "thread.name": "MainThread",
        "code.function.name": f"shop.{operation}",
        **attributes,
    }
    if operation == "POST":
        del told["gen_ai.operation.name"], told["gen_ai.conversation.id"]
    long = operation.startswith("invoke")
    span = {
        "traceId": f"{number:032x}",
        "spanId": id_,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(at),
        "endTimeUnixNano": str(at + _STEP * ((8 if parent else SPANS) if long else 1) - 1),
        "attributes": _attributes(told),
        "status": {},
    }
    if parent is not None:
        span["parentSpanId"] = parent
    spans.append(span)
    return id_


def _attributes(values: JSON) -> list[JSON]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> JSON:
    if isinstance(value, str):
        return {"stringValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"doubleValue": value}


def _message(role: str, text: str) -> JSON:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _result(call: str, text: str) -> JSON:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call, "response": text}]}


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
