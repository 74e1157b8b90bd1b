"""OpenAI's responses."""

from __future__ import annotations

from typing import Any

from baton.testing.llm.exchange import Asked, Message, Said, halves, text_of

from .events import Event
from .openai_chat import error, shape

__all__ = ["answer", "error", "read", "stream"]

_ROLES = {"developer": "system"}


def read(body: dict[str, Any]) -> Asked:
    """Read a request."""
    given = body.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages = [
        Message(_role(item), text_of(item))
        for item in items
        if "role" in item or item.get("type") == "function_call_output"
    ]
    if body.get("instructions"):
        messages.insert(0, Message("system", body["instructions"]))
    tools = {
        tool["name"]: tool.get("parameters") or {}
        for tool in body.get("tools") or []
        if tool.get("type") == "function"
    }
    choice = body.get("tool_choice")
    named = choice.get("name") if isinstance(choice, dict) else None
    mode, schema, tool = shape((body.get("text") or {}).get("format") or {}, tools, named)
    return Asked(
        messages=messages,
        model=body.get("model") or "",
        mode=mode,
        schema=schema,
        tools=tools,
        tool=tool,
        stream=bool(body.get("stream")),
    )


def _role(item: dict[str, Any]) -> str:
    role = str(item.get("role", "tool"))
    return _ROLES.get(role, role)


def answer(said: Said) -> dict[str, Any]:
    """Return the body of an answer."""
    reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(said.finish)
    return {
        **_head(said),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [] if said.finish == "filter" else [_item(said)],
        "usage": {
            "input_tokens": said.input_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": said.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": said.input_tokens + said.output_tokens,
        },
    }


def stream(said: Said, body: dict[str, Any]) -> list[Event]:  # noqa: ARG001
    """Return the events of a streamed answer."""
    whole = answer(said)
    events: list[dict[str, Any]] = [
        {
            "type": "response.created",
            "response": {**_head(said), "status": "in_progress", "output": []},
        }
    ]
    for item in whole["output"]:
        at = {"output_index": 0, "item_id": item["id"]}
        start = {**item, "content": []} if "content" in item else {**item, "arguments": ""}
        events.append({"type": "response.output_item.added", "output_index": 0, "item": start})
        events += _call_events(item, at) if said.tool else _text_events(item, at)
        events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    events.append({"type": f"response.{whole['status']}", "response": whole})
    return [(e["type"], {**e, "sequence_number": n}) for n, e in enumerate(events)]


def _text_events(item: dict[str, Any], at: dict[str, Any]) -> list[dict[str, Any]]:
    part = item["content"][0]
    kind, key = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
    at = {**at, "content_index": 0}
    return [
        {"type": "response.content_part.added", **at, "part": {**part, key: ""}},
        *(
            {"type": f"response.{kind}.delta", **at, "delta": piece, "logprobs": []}
            for piece in halves(part[key])
        ),
        {"type": f"response.{kind}.done", **at, key: part[key], "logprobs": []},
        {"type": "response.content_part.done", **at, "part": part},
    ]


def _call_events(item: dict[str, Any], at: dict[str, Any]) -> list[dict[str, Any]]:
    kind, text = "response.function_call_arguments", item["arguments"]
    return [
        {"type": f"{kind}.delta", **at, "delta": text},
        {"type": f"{kind}.done", **at, "name": item["name"], "arguments": text},
    ]


def _item(said: Said) -> dict[str, Any]:
    status = "incomplete" if said.finish == "length" else "completed"
    if said.tool is not None:
        return {
            "id": f"fc_{said.number}",
            "type": "function_call",
            "status": status,
            "call_id": f"call_{said.number}",
            "name": said.tool,
            "arguments": said.arguments,
        }
    part: dict[str, Any] = {"type": "output_text", "text": said.text, "annotations": []}
    if said.finish == "refusal":
        part = {"type": "refusal", "refusal": said.text}
    return {
        "id": f"msg_{said.number}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [part],
    }


def _head(said: Said) -> dict[str, Any]:
    return {
        "id": f"resp_{said.number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": said.model,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
