"""Bedrock's Converse."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable
from typing import Any

import msgspec

from baton.testing.llm.exchange import Asked, Event, Finish, Message, Said, halves, text_of

from .anthropic import arguments_of
from .openai import shape

_FINISH: dict[Finish, str] = {
    "stop": "end_turn",
    "tool": "tool_use",
    "length": "max_tokens",
    "refusal": "content_filtered",
    "filter": "guardrail_intervened",
}
_ERRORS = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}


def read(body: dict[str, Any]) -> Asked:
    """Read a request; the model is in the path."""
    messages = [
        Message(message["role"], text_of(message.get("content")))
        for message in body.get("messages") or []
    ]
    if body.get("system"):
        messages.insert(0, Message("system", text_of(body["system"])))
    config = body.get("toolConfig") or {}
    tools = {
        tool["toolSpec"]["name"]: tool["toolSpec"]["inputSchema"]["json"]
        for tool in config.get("tools") or []
        if "toolSpec" in tool
    }
    named = ((config.get("toolChoice") or {}).get("tool") or {}).get("name")
    form = (body.get("outputConfig") or {}).get("textFormat") or {}
    native = (form.get("structure") or {}).get("jsonSchema")
    form = {} if native is None else {"type": "json_schema", "schema": json.loads(native["schema"])}
    mode, schema, tool = shape(form, tools, named)
    return Asked(messages=messages, mode=mode, schema=schema, tools=tools, tool=tool)


def answer(said: Said) -> dict[str, Any]:
    """Return the body of an answer."""
    content: list[dict[str, Any]] = [{"text": said.text}] if said.text else []
    if said.tool is not None:
        use = {"toolUseId": f"tooluse_{said.number}", "name": said.tool}
        content = [{"toolUse": {**use, "input": arguments_of(said)}}]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _FINISH[said.finish],
        "usage": {
            "inputTokens": said.input_tokens,
            "outputTokens": said.output_tokens,
            "totalTokens": said.input_tokens + said.output_tokens,
        },
        "metrics": {"latencyMs": 1},
    }


def stream(said: Said, body: dict[str, Any]) -> list[Event]:  # noqa: ARG001
    """Return the events of a streamed answer."""
    whole = answer(said)
    at = {"contentBlockIndex": 0}
    events: list[Event] = [("messageStart", {"role": "assistant"})]
    for block in whole["output"]["message"]["content"]:
        if said.tool is not None:
            start = {key: block["toolUse"][key] for key in ("toolUseId", "name")}
            events.append(("contentBlockStart", {"start": {"toolUse": start}, **at}))
        for piece in halves(said.text if said.tool is None else said.arguments):
            delta = {"text": piece} if said.tool is None else {"toolUse": {"input": piece}}
            events.append(("contentBlockDelta", {"delta": delta, **at}))
        events.append(("contentBlockStop", at))
    events.append(("messageStop", {"stopReason": whole["stopReason"]}))
    return [*events, ("metadata", {"usage": whole["usage"], "metrics": whole["metrics"]})]


def error(status: int, message: str) -> dict[str, Any]:
    """Return the body of an error."""
    return {"__type": error_name(status), "message": message}


def error_name(status: int) -> str:
    """Return the name of an error, which also goes into a header."""
    return _ERRORS.get(status, "InternalServerException" if status >= 500 else _ERRORS[400])


# The type of a header with text, in the event streams of AWS.
_TEXT_HEADER = 7


def amazon(events: Iterable[Event]) -> bytes:
    """Write messages of ``application/vnd.amazon.eventstream``.

    A message consists of its length, the length of its headers, the checksum of both, the headers,
    the JSON, and the checksum of all that; numbers are big-endian, with 4 bytes.
    """
    return b"".join(_message(name or "", msgspec.json.encode(data)) for name, data in events)


def _message(name: str, payload: bytes) -> bytes:
    fields = {
        ":event-type": name,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    headers = b"".join(_header(key.encode(), value.encode()) for key, value in fields.items())
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    start = lengths + struct.pack(">I", zlib.crc32(lengths)) + headers + payload
    return start + struct.pack(">I", zlib.crc32(start))


def _header(name: bytes, value: bytes) -> bytes:
    return (
        struct.pack(">B", len(name)) + name + struct.pack(">BH", _TEXT_HEADER, len(value)) + value
    )
