"""OpenAI's chat completions and responses, and Mistral's chat, a variant of the former."""

from __future__ import annotations

from typing import Any

from baton.testing.llm.exchange import (
    Asked,
    Event,
    Finish,
    Message,
    Mode,
    Said,
    halves,
    text_of,
)

_ROLES = {"developer": "system"}
_CHAT_FINISH: dict[Finish, str] = {
    "stop": "stop",
    "tool": "tool_calls",
    "length": "length",
    "refusal": "stop",
    "filter": "content_filter",
}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def read_chat(body: dict[str, Any]) -> Asked:
    """Read a request."""
    messages = [
        Message(_ROLES.get(message["role"], message["role"]), text_of(message.get("content")))
        for message in body.get("messages", [])
    ]
    tools = {
        tool["function"]["name"]: tool["function"].get("parameters") or {}
        for tool in body.get("tools") or []
        if "function" in tool
    }
    choice = body.get("tool_choice")
    named = choice.get("function", {}).get("name") if isinstance(choice, dict) else None
    mode, schema, tool = shape(body.get("response_format") or {}, tools, named)
    return Asked(
        messages=messages,
        model=body.get("model") or "",
        mode=mode,
        schema=schema,
        tools=tools,
        tool=tool,
        stream=bool(body.get("stream")),
    )


def shape(
    form: dict[str, Any], tools: dict[str, dict[str, Any]], named: str | None
) -> tuple[Mode, dict[str, Any] | None, str | None]:
    """Return the form of the answer, its schema, and the tool to call, if it is a tool call."""
    if form.get("type") == "json_schema":
        native = form.get("json_schema", form)
        return "schema", native.get("schema"), None
    if tools:
        tool = named if named in tools else next(iter(tools))
        return "tool", tools[tool], tool
    return ("json" if form.get("type") == "json_object" else "text"), None, None


def answer_chat(said: Said) -> dict[str, Any]:
    """Return the body of an answer."""
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None, "refusal": None}
    if said.finish == "refusal":
        message |= {"content": None, "refusal": said.text}
    elif said.tool is not None:
        message["tool_calls"] = [_chat_call(said)]
    elif said.finish != "filter":
        message["content"] = said.text
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _CHAT_FINISH[said.finish],
    }
    return {**_chat_head(said, "chat.completion"), "choices": [choice], "usage": usage(said)}


def stream_chat(said: Said, body: dict[str, Any]) -> list[Event]:
    """Return the events of a streamed answer."""
    head = _chat_head(said, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[None, dict[str, Any]]:
        return None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events: list[Event] = [chunk({"role": "assistant", "content": ""})]
    key = "refusal" if said.finish == "refusal" else "content"
    events += [chunk({key: piece}) for piece in halves(said.text)]
    if said.tool is not None:
        events.append(chunk({"tool_calls": [{"index": 0, **_chat_call(said)}]}))
    events.append(chunk({}, _CHAT_FINISH[said.finish]))
    if (body.get("stream_options") or {}).get("include_usage"):
        events.append((None, {**head, "choices": [], "usage": usage(said)}))
    return [*events, (None, "[DONE]")]


def error(status: int, message: str) -> dict[str, Any]:
    """Return the body of an error."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def usage(said: Said) -> dict[str, int]:
    """Return the tokens."""
    return {
        "prompt_tokens": said.input_tokens,
        "completion_tokens": said.output_tokens,
        "total_tokens": said.input_tokens + said.output_tokens,
    }


def _chat_head(said: Said, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{said.number}",
        "object": kind,
        "created": 1_700_000_000,
        "model": said.model,
    }


def _chat_call(said: Said) -> dict[str, Any]:
    function = {"name": said.tool, "arguments": said.arguments}
    return {"id": f"call_{said.number}", "type": "function", "function": function}


# -------------------------------------------------------------------------------- responses


def read_responses(body: dict[str, Any]) -> Asked:
    """Read a request."""
    inputs = body.get("input") or []
    items = [{"role": "user", "content": inputs}] if isinstance(inputs, str) else inputs
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


def answer_responses(said: Said) -> dict[str, Any]:
    """Return the body of an answer."""
    reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(said.finish)
    return {
        **_response_head(said),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [] if said.finish == "filter" else [_response_item(said)],
        "usage": {
            "input_tokens": said.input_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": said.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": said.input_tokens + said.output_tokens,
        },
    }


def stream_responses(said: Said, body: dict[str, Any]) -> list[Event]:  # noqa: ARG001
    """Return the events of a streamed answer."""
    whole = answer_responses(said)
    events: list[dict[str, Any]] = [
        {
            "type": "response.created",
            "response": {**_response_head(said), "status": "in_progress", "output": []},
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


def _response_item(said: Said) -> dict[str, Any]:
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


def _response_head(said: Said) -> dict[str, Any]:
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


# ---------------------------------------------------------------------------------- Mistral


def answer_mistral(said: Said) -> dict[str, Any]:
    """Return the body of an answer; a refusal is plain text."""
    body = answer_chat(said)
    choice = body["choices"][0]
    choice["finish_reason"] = _mistral_finish(choice["finish_reason"])
    choice.pop("logprobs")
    refusal = choice["message"].pop("refusal")
    choice["message"]["content"] = refusal or choice["message"]["content"] or ""
    return body


def stream_mistral(said: Said, body: dict[str, Any]) -> list[Event]:
    """Return the events of a streamed answer; the last one has the usage."""
    events = stream_chat(said, body)
    for _, event in events[:-1]:
        choice = event["choices"][0]
        choice["finish_reason"] = _mistral_finish(choice["finish_reason"])
        delta = choice["delta"]
        if "refusal" in delta:
            delta["content"] = delta.pop("refusal")
    events[-2][1]["usage"] = usage(said)
    return events


def error_mistral(status: int, message: str) -> dict[str, Any]:
    """Return the body of an error."""
    return {"object": "error", "message": message, "type": "api_error", "code": str(status)}


def _mistral_finish(reason: str | None) -> str | None:
    return "error" if reason == "content_filter" else reason
