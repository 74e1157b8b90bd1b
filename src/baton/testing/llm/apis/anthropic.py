"""Anthropic's Messages."""

from __future__ import annotations

import json
from typing import Any

from baton.testing.llm.exchange import Asked, Event, Finish, Message, Said, halves, text_of

from .openai import shape

_FINISH: dict[Finish, str] = {
    "stop": "end_turn",
    "tool": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
    "filter": "refusal",
}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def read(body: dict[str, Any]) -> Asked:
    """Read a request."""
    messages = [
        Message(message["role"], text_of(message.get("content")))
        for message in body.get("messages", [])
    ]
    if body.get("system"):
        messages.insert(0, Message("system", text_of(body["system"])))
    tools = {
        tool["name"]: tool["input_schema"]
        for tool in body.get("tools") or []
        if "input_schema" in tool
    }
    form = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    mode, schema, tool = shape(form, tools, (body.get("tool_choice") or {}).get("name"))
    return Asked(
        messages=messages,
        model=body.get("model") or "",
        mode=mode,
        schema=schema,
        tools=tools,
        tool=tool,
        stream=bool(body.get("stream")),
    )


def answer(said: Said) -> dict[str, Any]:
    """Return the body of an answer.

    The input of a tool is an object here, so that invalid JSON becomes an empty one.
    """
    content: list[dict[str, Any]] = []
    if said.tool is not None:
        call = {"type": "tool_use", "id": f"toolu_{said.number}", "name": said.tool}
        content = [{**call, "input": arguments_of(said)}]
    elif said.text and said.finish not in {"refusal", "filter"}:
        content = [{"type": "text", "text": said.text}]
    return {**_head(said), "content": content, **_end(said), "usage": _usage(said)}


def stream(said: Said, body: dict[str, Any]) -> list[Event]:  # noqa: ARG001
    """Return the events of a streamed answer."""
    start = {**_head(said), "content": [], "stop_reason": None, "stop_sequence": None}
    start["usage"] = {**_usage(said), "output_tokens": 1}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for block in answer(said)["content"]:
        text = said.arguments if said.tool is not None else said.text
        key, kind = ("text", "text_delta")
        empty: dict[str, Any] = {"type": "text", "text": ""}
        if said.tool is not None:
            key, kind, empty = "partial_json", "input_json_delta", {**block, "input": {}}
        events.append({"type": "content_block_start", "index": 0, "content_block": empty})
        for piece in halves(text):
            delta = {"type": kind, key: piece}
            events.append({"type": "content_block_delta", "index": 0, "delta": delta})
        events.append({"type": "content_block_stop", "index": 0})
    usage = {"output_tokens": said.output_tokens}
    events += [{"type": "message_delta", "delta": _end(said), "usage": usage}]
    events += [{"type": "message_stop"}]
    return [(event["type"], event) for event in events]


def error(status: int, message: str) -> dict[str, Any]:
    """Return the body of an error."""
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def arguments_of(said: Said) -> dict[str, Any]:
    """Return a tool's arguments as an object; anything but a JSON object becomes an empty one."""
    try:
        value = json.loads(said.arguments)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _head(said: Said) -> dict[str, Any]:
    return {
        "id": f"msg_{said.number}",
        "type": "message",
        "role": "assistant",
        "model": said.model,
    }


def _end(said: Said) -> dict[str, Any]:
    end: dict[str, Any] = {"stop_reason": _FINISH[said.finish], "stop_sequence": None}
    if end["stop_reason"] == "refusal":
        explanation = said.text or None
        end["stop_details"] = {"type": "refusal", "category": None, "explanation": explanation}
    return end


def _usage(said: Said) -> dict[str, int]:
    return {"input_tokens": said.input_tokens, "output_tokens": said.output_tokens}
