"""Chat messages in the shapes that instrumentations write, as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from baton.model import Content, Part

from .blocks import (
    Answer,
    Call,
    calls,
    calls_and_answers,
    is_answer,
    is_block,
    is_call,
    is_thought,
    repr_call,
    thought_of,
)
from .values import HIDDEN, attachment, block_kind, block_text, content, finite, first, parsed, text

__all__ = ["Answer", "Call", "Message", "read_message", "read_messages"]

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "aimessagechunk": "assistant",
    "function": "tool",
    "developer": "system",
}
_SAYS = frozenset({"user", "assistant", "system", "tool", *_ROLES})
_BODIES = ("parts", "content", "contents", "blocks")
_WRAPPED = ("kwargs", "data", "message")


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
    if isinstance(value, dict) and "role" not in value:
        value, role = _unwrapped(value, role)
    if isinstance(value, str):
        message = read_message(value, role)
        return [] if message is None else [message]
    items = value if isinstance(value, list) else [value]
    if items and isinstance(items[0], list):
        items = _pairs(items) or items[0]
    if items and all(is_block(item) for item in items):
        return [_message(role, None, items)]
    return [message for item in items if (message := read_message(item, role)) is not None]


def last_said(value: Any, role: str) -> Content | None:
    """Return what the last message of a role says, reading no more of a long list than needed."""
    value = parsed(value)
    if isinstance(value, list) and all(isinstance(item, dict) and "role" in item for item in value):
        for item in reversed(value):
            message = read_message(item) if _role(item["role"]) == role else None
            if message is not None and message.content:
                return message.content
        return None
    return last_of(read_messages(value), role)


def last_of(messages: list[Message], role: str) -> Content | None:
    """Return what the last message of a role says."""
    found = (m.content for m in reversed(messages) if m.role == role and m.content)
    return next(found, None)


def _unwrapped(value: Mapping[str, Any], role: str) -> tuple[Any, str]:
    """Take the messages out of a request, a response or the state of a graph."""
    if isinstance(value.get("messages"), list):
        return value["messages"], role
    for key in ("choices", "candidates", "generations"):
        if isinstance(value.get(key), list):
            options = value[key]
            while options and isinstance(options[0], list):
                options = options[0]
            option = options[0] if options else None
            inner = option if isinstance(option, dict) else {}
            return first(inner, "message", "content", "delta", "text"), "assistant"
    output = value.get("output")
    if isinstance(output, list) and value.get("object") == "response":
        return output, "assistant"
    if isinstance(output, dict) and isinstance(output.get("message"), dict):
        return output["message"], "assistant"
    return value, role


def _pairs(items: list[Any]) -> list[Any] | None:
    """Read messages that are pairs of a role and a text; ``None`` for what is none."""
    pairs = [item for item in items if isinstance(item, list) and len(item) == 2]
    if len(pairs) < len(items) or not all(isinstance(pair[0], str) for pair in pairs):
        return None
    if any(pair[0].lower() not in _SAYS for pair in pairs):
        return None
    return [{"role": role, "content": said} for role, said in pairs]


def read_message(value: Any, role: str = "user") -> Message | None:
    """Read one message of any shape; ``None`` for what is none."""
    if isinstance(value, str):
        return _message(role, None, value) if value else None
    if not isinstance(value, dict):
        return None
    inner = first(value, *_WRAPPED)
    if isinstance(inner, dict) and ("content" in inner or "role" in inner):
        value = {"type": _class(value), **inner}
    kind = text(value.get("type"))
    if "role" not in value and (is_call(kind) or is_answer(kind) or is_thought(value, kind)):
        return _message("tool" if is_answer(kind) else "assistant", None, [value])
    said = _role(text(value.get("role")) or kind or role)
    body = parsed(first(value, *_BODIES))
    message = _message(said, text(value.get("name")), body)
    _beside(value, message)
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
    if value and body is None and "role" not in value and kind is None and not message.calls:
        message.content = content(value)
    return message


def _role(told: Any) -> str:
    plain = str(told).lower()
    return _ROLES.get(plain, plain)


def _class(value: Mapping[str, Any]) -> str | None:
    """Return the type of a serialised message: its own, or that of its class."""
    kind, path = text(value.get("type")), value.get("id")
    if kind == "constructor" and isinstance(path, list) and path:
        return str(path[-1]).lower().removesuffix("chunk").removesuffix("message")
    return kind


def _beside(value: Mapping[str, Any], message: Message) -> None:
    """Take what stands beside the text of a message: calls, reasoning, a refusal."""
    more = value.get("additional_kwargs")
    for told in (value, more if isinstance(more, dict) else {}):
        if not message.calls:
            written = parsed(told.get("tool_calls"))
            for call in written if isinstance(written, list) else ():
                if isinstance(call, dict):
                    message.calls += calls(call)
        if not message.calls and isinstance(told.get("function_call"), dict):
            message.calls += calls(told["function_call"])
    if message.thought is None:
        message.thought = text(value.get("reasoning_content"))
    if message.content is None and text(value.get("refusal")):
        message.content = Content(text=value["refusal"])


def _message(role: str, name: str | None, body: Any) -> Message:
    message = Message(role=role, name=name)
    if not isinstance(body, list):
        message.hidden = _is_left_out(body)
        message.content = None if message.hidden else content(body)
        return message
    texts: list[str] = []
    thoughts: list[str] = []
    data: list[Any] = []
    parts: list[Part] = []
    for block in body:
        if isinstance(block, str):
            texts.append(block)
        elif not isinstance(block, dict):
            data.append(finite(block))
        elif _take(block, message, thoughts):
            continue
        elif (call := repr_call(block_text(block))) is not None:
            message.calls.append(call)
        elif (said := block_text(block)) is not None:
            texts.append("" if said in HIDDEN else said)
            message.hidden = message.hidden or said in HIDDEN
        elif _is_left_out(block):
            message.hidden = True
        elif (part := attachment(block)) is not None:
            parts.append(part)
        else:
            data.append(finite(block))
    whole = Content(
        text="\n".join(line for line in texts if line) or None,
        data=data[0] if len(data) == 1 else data or None,
        parts=parts or None,
    )
    message.content = whole or None
    message.thought = "\n".join(thoughts) or None
    return message


def _is_left_out(body: Any) -> bool:
    """Tell what stands in place of a content that was left out: a word, or its type alone."""
    if isinstance(body, dict):
        return set(body) in ({"type"}, {"kind"})
    return isinstance(body, str) and body in HIDDEN


def _take(block: Mapping[str, Any], message: Message, thoughts: list[str]) -> bool:
    """Take a call, an answer or a thought out of the blocks of a message."""
    kind = block_kind(block)
    if is_thought(block, kind):
        thought = thought_of(block)
        thoughts += [thought] if thought and thought not in HIDDEN else []
        return True
    found = calls_and_answers(block, kind)
    for one in found or ():
        if isinstance(one, Call):
            message.calls.append(one)
        else:
            message.answers.append(one)
    return found is not None
