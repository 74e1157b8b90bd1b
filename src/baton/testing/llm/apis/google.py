"""Google's generateContent, of Gemini."""

from __future__ import annotations

from typing import Any

from baton.testing.llm.exchange import Asked, Event, Finish, Message, Said, halves, text_of

from .anthropic import arguments_of

_FINISH: dict[Finish, str] = {
    "stop": "STOP",
    "tool": "STOP",
    "length": "MAX_TOKENS",
    "refusal": "SAFETY",
    "filter": "SAFETY",
}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_PARAMETERS = ("parametersJsonSchema", "parameters_json_schema", "parameters")
_ROLES = {"model": "assistant"}


def read(body: dict[str, Any]) -> Asked:
    """Read a request; the path has the model and whether to stream."""
    messages = [
        Message(_ROLES.get(content.get("role", "user"), "user"), text_of(content.get("parts")))
        for content in body.get("contents") or []
    ]
    instruction = body.get("systemInstruction") or body.get("system_instruction")
    if instruction:
        messages.insert(0, Message("system", text_of(instruction.get("parts"))))
    config = body.get("generationConfig") or {}
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    tools: dict[str, dict[str, Any]] = {
        function["name"]: next((function[key] for key in _PARAMETERS if key in function), {})
        for tool in body.get("tools") or []
        for function in tool.get("functionDeclarations") or []
    }
    if schema:
        return Asked(messages=messages, mode="schema", schema=schema, tools=tools)
    if tools:
        choice = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
        allowed = [name for name in choice.get("allowedFunctionNames") or [] if name in tools]
        tool = allowed[0] if allowed else next(iter(tools))
        return Asked(messages=messages, mode="tool", schema=tools[tool], tool=tool, tools=tools)
    prompted = config.get("responseMimeType") == "application/json"
    return Asked(messages=messages, mode="json" if prompted else "text")


def answer(said: Said) -> dict[str, Any]:
    """Return the body of an answer; a filtered prompt has feedback and no candidate."""
    if said.finish == "filter":
        return {"promptFeedback": {"blockReason": "SAFETY"}, **_end(said)}
    return {"candidates": [_candidate(_parts(said), said)], **_end(said)}


def stream(said: Said, body: dict[str, Any]) -> list[Event]:  # noqa: ARG001
    """Return the events of a streamed answer."""
    if said.finish in {"filter", "refusal"} or said.tool is not None or len(said.text) < 2:
        return [(None, answer(said))]
    first, last = ([{"text": piece}] for piece in halves(said.text))
    start = {"index": 0, "content": {"role": "model", "parts": first}}
    end = _candidate(last, said)
    head = {"modelVersion": said.model, "responseId": f"resp-{said.number}"}
    return [(None, {"candidates": [start], **head}), (None, {"candidates": [end], **_end(said)})]


def error(status: int, message: str) -> dict[str, Any]:
    """Return the body of an error."""
    kind = _STATUS.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
    return {"error": {"code": status, "message": message, "status": kind}}


def _parts(said: Said) -> list[dict[str, Any]]:
    """Return the parts of an answer; none for a truncated call."""
    if said.tool is not None and said.finish != "length":
        return [{"functionCall": {"name": said.tool, "args": arguments_of(said)}}]
    return [{"text": said.text}] if said.text else []


def _candidate(parts: list[dict[str, Any]], said: Said) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "finishReason": _FINISH[said.finish]}
    if said.finish != "refusal":
        candidate["content"] = {"role": "model", "parts": parts}
    return candidate


def _end(said: Said) -> dict[str, Any]:
    return {
        "usageMetadata": {
            "promptTokenCount": said.input_tokens,
            "candidatesTokenCount": said.output_tokens,
            "totalTokenCount": said.input_tokens + said.output_tokens,
        },
        "modelVersion": said.model,
        "responseId": f"resp-{said.number}",
    }
