"""Messages as the Python SDK's classes hold them, dumped as plain data.

The classes leave out what the JSON calls ``type`` and lift the message's fields to the top:
``AssistantMessage(content=[ToolUseBlock(id, name, input)], model, parent_tool_use_id, ...)``.
"""

from __future__ import annotations

from typing import Any

_WIRE_TYPES = {
    "AssistantMessage": "assistant",
    "UserMessage": "user",
    "ResultMessage": "result",
    "StreamEvent": "stream_event",
    "RateLimitEvent": "rate_limit_event",
}
_SYSTEM = "Message"


def from_sdk(value: dict[str, Any]) -> dict[str, Any]:
    """Return a dumped message as the JSON it was read from; any other object as it is."""
    kind = str(value.get("type", value.get("_type", value.get("__class__", ""))))
    named = _WIRE_TYPES.get(kind)
    if "message" in value or (kind and named is None and not _is_system(value, kind)):
        return value
    if named is None:
        named = _told_by(value)
    plain = {key: item for key, item in value.items() if key not in ("_type", "__class__")}
    match named:
        case "system":
            return {**plain["data"], "type": "system", "subtype": plain["subtype"]}
        case "assistant" | "user":
            return _with_message(plain, named)
        case "result":
            usage = plain.pop("model_usage", None)
            return {**plain, "type": "result", "modelUsage": usage}
        case None:
            return value
        case _:
            return {**plain, "type": named}


def _is_system(value: dict[str, Any], kind: str) -> bool:
    return kind.endswith(_SYSTEM) and isinstance(value.get("data"), dict) and "subtype" in value


def _told_by(value: dict[str, Any]) -> str | None:
    """Tell a message without a type by its fields."""
    if isinstance(value.get("data"), dict) and isinstance(value.get("subtype"), str):
        return "system"
    if "content" in value and "model" in value:
        return "assistant"
    if "content" in value and ("parent_tool_use_id" in value or "tool_use_result" in value):
        return "user"
    if "num_turns" in value and "subtype" in value:
        return "result"
    return None


def _with_message(plain: dict[str, Any], kind: str) -> dict[str, Any]:
    content = plain.pop("content", None)
    message: dict[str, Any] = {"role": kind, "content": content}
    if isinstance(content, list):
        message["content"] = [_block(block) for block in content]
    if kind == "assistant":
        message["id"] = plain.pop("message_id", None)
        for key in ("model", "usage", "stop_reason"):
            message[key] = plain.pop(key, None)
    return {**plain, "type": kind, "message": message}


def _block(block: Any) -> Any:
    if not isinstance(block, dict) or any(block.get("type") == kind for kind in _BLOCK_TYPES):
        return block
    for key, kind in (("text", "text"), ("thinking", "thinking"), ("tool_use_id", "tool_result")):
        if key in block:
            return {**block, "type": kind}
    return {**block, "type": "tool_use"} if {"id", "name", "input"} <= set(block) else block


_BLOCK_TYPES = {"text", "thinking", "tool_use", "tool_result", "server_tool_use", "image"}
