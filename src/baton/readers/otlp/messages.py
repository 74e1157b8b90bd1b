"""Chat messages in the shapes that instrumentations write, as one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from baton.model import Content, Part

from .values import HIDDEN, attachment, block_text, content, first, parsed, shown, text

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "aimessagechunk": "assistant",
    "function": "tool",
    "developer": "system",
}
_REPR = re.compile(r"\b(name|call_id|arguments)='([^']*)'")
_THOUGHTS = ("reasoning", "thinking", "reasoning_content")
_CALLS = ("tool_call", "tool_use", "function_call", "server_tool_call", "toolUse", "functionCall")
_ANSWERS = (
    "tool_call_response",
    "tool_result",
    "function_call_output",
    "function_response",
    "server_tool_call_response",
    "toolResult",
    "functionResponse",
    "tool_response",
)


class Call(msgspec.Struct, kw_only=True):
    """A tool call as a model wrote it."""

    id: str | None = None
    name: str
    arguments: Any = None


class Answer(msgspec.Struct, kw_only=True):
    """The answer to a tool call, as a model was given it; ``at`` when it came after the call."""

    id: str | None = None
    name: str | None = None
    result: Content | None = None
    failed: bool = False
    at: float | None = None


class Message(msgspec.Struct, kw_only=True):
    """One message. ``role`` is user, assistant, system or tool, or what the source says.

    ``hidden`` says that its text was left out when it was recorded.
    """

    role: str
    name: str | None = None
    content: Content | None = None
    thought: str | None = None
    calls: list[Call] = msgspec.field(default_factory=list)
    answers: list[Answer] = msgspec.field(default_factory=list)
    hidden: bool = False


def read_messages(value: Any, role: str = "user") -> list[Message]:
    """Read a list of messages, or one; a bare text is a message of ``role``."""
    value = parsed(value)
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if isinstance(value, str):
        message = read_message(value, role)
        return [] if message is None else [message]
    items = value if isinstance(value, list) else [value]
    if items and isinstance(items[0], list):
        items = items[0]
    if items and all(_is_block(item) for item in items):
        return [_message(role, None, items)]
    return [message for item in items if (message := read_message(item, role)) is not None]


def read_message(value: Any, role: str = "user") -> Message | None:
    """Read one message of any shape; ``None`` for what is none."""
    if isinstance(value, str):
        return _message(role, None, value) if value else None
    if not isinstance(value, dict):
        return None
    inner = first(value, "kwargs", "data", "message")
    if isinstance(inner, dict) and ("content" in inner or "role" in inner):
        value = {"type": value.get("type"), **inner}
    kind = text(value.get("type"))
    if kind in _CALLS or kind in _ANSWERS or kind == "reasoning":
        return _message("assistant" if kind not in _ANSWERS else "tool", None, [value])
    said = text(value.get("role")) or kind or role
    said = _ROLES.get(said.lower(), said.lower())
    body = first(value, "parts", "content", "contents")
    message = _message(said, text(value.get("name")), parsed(body))
    for call in parsed(value.get("tool_calls")) or ():
        if isinstance(call, dict):
            message.calls += _calls(call)
    if said == "tool" and not message.answers:
        message.answers.append(
            Answer(
                id=text(first(value, "tool_call_id", "id")),
                name=message.name,
                result=message.content,
                failed=value.get("status") == "error",
            )
        )
        message.content = None
    return message


def _is_block(value: Any) -> bool:
    """Tell a part of a message from a message."""
    if not isinstance(value, dict) or "role" in value:
        return False
    kind = value.get("type")
    return (
        block_text(value) is not None
        or kind in _CALLS
        or kind in _ANSWERS
        or (kind is None and any(key in value for key in (*_CALLS, *_ANSWERS)))
        or (kind in (None, "function") and isinstance(value.get("function"), dict))
    )


def _message(role: str, name: str | None, body: Any) -> Message:
    message = Message(role=role, name=name)
    if not isinstance(body, list):
        message.content = content(body)
        message.hidden = isinstance(body, str) and body in HIDDEN
        return message
    texts: list[str] = []
    thoughts: list[str] = []
    data: list[Any] = []
    parts: list[Part] = []
    for block in body:
        if isinstance(block, str):
            texts.append(block)
        elif not isinstance(block, dict):
            data.append(block)
        elif _take(block, message, thoughts):
            continue
        elif (call := _repr_call(block_text(block))) is not None:
            message.calls.append(call)
        elif (said := block_text(block)) is not None:
            texts.append("" if said in HIDDEN else said)
            message.hidden = message.hidden or said in HIDDEN
        elif set(block) == {"type"}:
            message.hidden = True
        elif (part := attachment(block)) is not None:
            parts.append(part)
        else:
            data.append(block)
    whole = Content(
        text="\n".join(line for line in texts if line) or None,
        data=data[0] if len(data) == 1 else data or None,
        parts=parts or None,
    )
    message.content = whole or None
    message.thought = "\n".join(thoughts) or None
    return message


def _take(block: Mapping[str, Any], message: Message, thoughts: list[str]) -> bool:
    """Take a call, an answer or a thought out of the blocks of a message."""
    kind = block.get("type")
    if kind in _THOUGHTS or "reasoningContent" in block or block.get("thought") is True:
        thought = first(block, "content", "text", "thinking", "reasoning", "summary")
        if isinstance(thought, list):
            thought = "\n".join(block_text(t) or "" for t in thought if isinstance(t, dict))
        if text(thought):
            thoughts.append(str(thought))
        return True
    if kind in (None, "function") and isinstance(block.get("function"), dict):
        message.calls += _calls(block)
        return True
    for key in _CALLS:
        if kind == key or (kind is None and isinstance(block.get(key), dict)):
            message.calls += _calls(block if kind == key else block[key])
            return True
    for key in _ANSWERS:
        if kind == key or (kind is None and isinstance(block.get(key), dict)):
            message.answers.append(_answer(block if kind == key else block[key]))
            return True
    return False


def _repr_call(said: str | None) -> Call | None:
    """Read a call of the OpenAI SDK that an instrumentation wrote down as Python prints it."""
    if said is None or not said.startswith("ResponseFunctionToolCall("):
        return None
    told = dict(_REPR.findall(said))
    if "name" not in told:
        return None
    return Call(id=told.get("call_id"), name=told["name"], arguments=shown(told.get("arguments")))


def _calls(call: Mapping[str, Any]) -> Iterator[Call]:
    function = first(call, "function", "tool_call")
    inner = function if isinstance(function, dict) else call
    if isinstance(inner.get("function"), dict):
        inner = inner["function"]
    name = text(inner.get("name"))
    if name is not None:
        arguments = first(inner, "arguments", "args", "input", "parameters")
        yield Call(
            id=text(first(call, "id", "call_id", "tool_call_id", "toolUseId", "tool_use_id")),
            name=name,
            arguments=shown(arguments),
        )


def _answer(answer: Mapping[str, Any]) -> Answer:
    result = first(answer, "response", "result", "content", "output")
    return Answer(
        id=text(first(answer, "id", "tool_call_id", "call_id", "tool_use_id", "toolUseId")),
        name=text(answer.get("name")),
        result=content(result),
        failed=answer.get("is_error") is True or answer.get("status") == "error",
    )
