"""Values of the record as attributes of spans, and back, so that nothing changes on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from baton.formats.nesting import decode_json
from baton.model import Content, Usage

Attributes = dict[str, Any]
USAGE = "baton.usage."
_TOKENS = {
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
}
_INPUT = "gen_ai.usage.input_tokens"
_BESIDE = ("requests", "failed_requests", "cost_usd", "cost_from", "complete")
_SAID = ("text", "reasoning")


class Form(NamedTuple):
    """How a value is written under a name, and read again as plain data."""

    write: Callable[[str, Any], Attributes]
    read: Callable[[str, Mapping[str, Any]], Any]


def as_json(value: Any) -> str:
    """Write a value as JSON text."""
    return msgspec.json.encode(value).decode()


def messages(content: Content, role: str, *, text: str = "text") -> str:
    """Write content as the one message of GenAI's ``gen_ai.*.messages``.

    Data and attachments are parts of types of their own, which GenAI allows; ``text`` is the
    type of the part that holds the text.
    """
    parts: list[Any] = []
    if content.text is not None:
        parts.append({"type": text, "content": content.text})
    if content.data is not None:
        parts.append({"type": "data", "content": content.data})
    for part in content.parts or ():
        kind = "attachment" if part.uri is None else "uri"
        told = {"mime_type": part.mime, "uri": part.uri, "sha256": part.sha256}
        known = {name: value for name, value in told.items() if value is not None}
        parts.append({"type": kind, "modality": part.type, **known})
    if content.parts == []:
        parts.append({"type": "attachments", "content": []})
    ending = {"finish_reason": "stop"} if role == "assistant" else {}
    return as_json([{"role": role, "parts": parts, **ending}])


def content_of(text: str) -> Attributes:
    """Read the content that :func:`messages` wrote, as plain data.

    Raises:
        ValueError: it is no such message.
    """
    found: Attributes = {}
    told = decode_json(text)
    if not (isinstance(told, list) and len(told) == 1 and isinstance(told[0], dict)):
        raise ValueError("not one message")
    for part in told[0].get("parts", ()):
        kind = part.get("type")
        if kind in _SAID:
            found["text"] = part.get("content")
        elif kind == "data":
            found["data"] = part.get("content")
        else:
            attachments = found.setdefault("parts", [])
            if kind != "attachments":
                attachments.append(_attachment(part))
    return found


def _attachment(part: Mapping[str, Any]) -> Attributes:
    names = {"modality": "type", "mime_type": "mime", "uri": "uri", "sha256": "sha256"}
    return {ours: part[theirs] for theirs, ours in names.items() if theirs in part}


def _write_messages(role: str) -> Callable[[str, Content], Attributes]:
    return lambda name, value: {name: messages(value, role)}


def _read_messages(name: str, attributes: Mapping[str, Any]) -> Any:
    return content_of(attributes[name])


def _write_result(name: str, value: Content) -> Attributes:
    """Write a result as tools give it; what is no plain text says so beside it."""
    if value == Content(text=value.text) and value.text is not None:
        return {name: value.text}
    if value == Content(data=value.data) and value.data is not None:
        return {name: as_json(value.data), "baton.result.form": "data"}
    return {name: value.plain(), "baton.result": as_json(value)}


def _read_result(name: str, attributes: Mapping[str, Any]) -> Any:
    if "baton.result" in attributes:
        return decode_json(attributes["baton.result"])
    told = attributes[name]
    if attributes.get("baton.result.form") == "data":
        return {"data": decode_json(told)}
    return {"text": told}


def _write_tools(name: str, value: list[str]) -> Attributes:
    return {name: as_json([{"type": "function", "name": each} for each in value])}


def _read_tools(name: str, attributes: Mapping[str, Any]) -> Any:
    return [each["name"] for each in decode_json(attributes[name])]


def write_usage(usage: Usage) -> Attributes:
    """Write what was spent; the input of GenAI has the cached tokens in it."""
    found: Attributes = {}
    if usage.input_tokens is not None:
        cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
        found[_INPUT] = usage.input_tokens + cached
    for field, name in _TOKENS.items():
        found[name] = getattr(usage, field)
    for field in _BESIDE:
        found[USAGE + field] = getattr(usage, field)
    return {name: value for name, value in found.items() if value is not None}


def read_usage(attributes: Mapping[str, Any]) -> Attributes | None:
    """Read what :func:`write_usage` wrote, as plain data; ``None`` where nothing was told."""
    if USAGE + "complete" not in attributes:
        return None
    names = {**_TOKENS, **{field: USAGE + field for field in _BESIDE}}
    found = {field: attributes[name] for field, name in names.items() if name in attributes}
    if _INPUT in attributes:
        cached = found.get("cache_read_tokens", 0) + found.get("cache_write_tokens", 0)
        found["input_tokens"] = attributes[_INPUT] - cached
    return found


PLAIN = Form(lambda name, value: {name: value}, lambda name, attributes: attributes[name])
DATA = Form(
    lambda name, value: {name: as_json(value)},
    lambda name, attributes: decode_json(attributes[name]),
)
ASKED = Form(_write_messages("user"), _read_messages)
ANSWERED = Form(_write_messages("assistant"), _read_messages)
RESULT = Form(_write_result, _read_result)
TOOLS = Form(_write_tools, _read_tools)
