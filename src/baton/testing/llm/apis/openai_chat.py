"""OpenAI's chat completions; Mistral's chat differs from it in little."""

from __future__ import annotations

from typing import Any

from baton.testing.llm.exchange import Asked, Finish, Message, Mode, Said, halves, text_of

from .events import Event

_ROLES = {"developer": "system"}
_FINISH: dict[Finish, str] = {
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


def read(body: dict[str, Any]) -> Asked:
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
    """Return how the answer is wanted, its schema, and the tool to call, if that is the way."""
    if form.get("type") == "json_schema":
        native = form.get("json_schema", form)
        return "schema", native.get("schema"), None
    if tools:
        tool = named if named in tools else next(iter(tools))
        return "tool", tools[tool], tool
    return ("json" if form.get("type") == "json_object" else "text"), None, None


def answer(said: Said) -> dict[str, Any]:
    """Return the body of an answer."""
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None, "refusal": None}
    if said.finish == "refusal":
        message |= {"content": None, "refusal": said.text}
    elif said.tool is not None:
        message["tool_calls"] = [_call(said)]
    elif said.finish != "filter":
        message["content"] = said.text
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _FINISH[said.finish],
    }
    return {**_head(said, "chat.completion"), "choices": [choice], "usage": usage(said)}


def stream(said: Said, body: dict[str, Any]) -> list[Event]:
    """Return the events of a streamed answer."""
    head = _head(said, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[None, dict[str, Any]]:
        return None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events: list[Event] = [chunk({"role": "assistant", "content": ""})]
    key = "refusal" if said.finish == "refusal" else "content"
    events += [chunk({key: piece}) for piece in halves(said.text)]
    if said.tool is not None:
        events.append(chunk({"tool_calls": [{"index": 0, **_call(said)}]}))
    events.append(chunk({}, _FINISH[said.finish]))
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


def _head(said: Said, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{said.number}",
        "object": kind,
        "created": 1_700_000_000,
        "model": said.model,
    }


def _call(said: Said) -> dict[str, Any]:
    function = {"name": said.tool, "arguments": said.arguments}
    return {"id": f"call_{said.number}", "type": "function", "function": function}
