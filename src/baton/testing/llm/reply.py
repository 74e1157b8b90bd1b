"""From what a script replies to the words of a model, as the client asked for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .exchange import Api, Received, Reply, Said, ScriptError

_STATED_NOTHING: Any = object()


def fill(stated: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``stated`` with the required properties that it lacks.

    These are the first of an ``enum``, the least number that is allowed, a short text, ``false``,
    and as few items as may be. A ``pattern`` is not heeded.
    """
    filled: dict[str, Any] = _filled(stated, schema, schema)
    return filled


def _filled(stated: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    schema = _resolved(schema, root)
    if isinstance(stated, Mapping) and "properties" in schema:
        return {**_required(stated, schema, root), **_inside(stated, schema, root)}
    if isinstance(stated, list) and "items" in schema:
        return [_filled(item, schema["items"], root) for item in stated]
    if stated is not _STATED_NOTHING:
        return stated
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "object")
    kind = str(kinds[0] if isinstance(kinds, list) else kinds).lower()
    match kind:
        case "object":
            return _required({}, schema, root)
        case "array":
            item = _filled(_STATED_NOTHING, schema.get("items", {}), root)
            return [item] * schema.get("minItems", 0)
        case "string":
            return "scripted".ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]
        case "number" | "integer":
            return schema.get("minimum", min(0, schema.get("maximum", 0)))
    return False if kind == "boolean" else None


def _required(
    stated: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]
) -> dict[str, Any]:
    properties = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in stated]
    return {name: _filled(_STATED_NOTHING, properties.get(name, {}), root) for name in missing}


def _inside(
    stated: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]
) -> dict[str, Any]:
    properties = schema["properties"]
    return {name: _filled(value, properties.get(name, {}), root) for name, value in stated.items()}


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references into ``$defs``, and take the first of several ways."""
    while True:
        if "$ref" in schema:
            schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
        elif "anyOf" in schema:
            schema = schema["anyOf"][0]
        else:
            return schema


REFUSAL = "I cannot help with that."
_STRANGE = {"of_another_schema": True}
_BROKEN = '{"of_another_schema": tr'
_WRITTEN: frozenset[Api] = frozenset({"openai", "openai_responses", "mistral"})
_WRITTEN_IN_STREAMS: frozenset[Api] = frozenset({"anthropic", "bedrock"})
"""APIs whose tools get what the model wrote, always or in streams; others have an object there, so
that broken JSON can only be sent as text."""

_LETTERS_PER_TOKEN = 4


def said(reply: Reply, received: Received) -> Said:
    """Return the words; faults of the answer itself are worked in."""
    fields = _fields(reply, received)
    written = fields.get("text", "") + fields.get("arguments", "")
    return Said(
        number=received.number,
        model=reply.as_model or received.model,
        input_tokens=_tokens(reply.input_tokens, received.text),
        output_tokens=_tokens(reply.output_tokens, written),
        **fields,
    )


def _fields(reply: Reply, received: Received) -> dict[str, Any]:
    tool = _tool(reply, received)
    text = _text(_answer(reply, received))
    match reply.fault:
        case "refusal":
            return {"text": text or REFUSAL, "finish": "refusal"}
        case "filtered":
            return {"finish": "filter"}
        case "empty":
            return {}
        case "wrong_schema":
            return _placed(json.dumps(_STRANGE), tool)
        case "invalid_json":
            written = received.api in _WRITTEN | (_WRITTEN_IN_STREAMS if received.stream else set())
            return _placed(_half(text or _BROKEN), tool if written else None)
        case "truncated":
            return {**_placed(_half(text or _BROKEN), tool), "finish": "length"}
        case _:
            return _placed(text, tool)


def _answer(reply: Reply, received: Received) -> Any:
    if not reply.fill:
        return reply.answer
    schema = received.schema if reply.tool is None else received.tools.get(reply.tool)
    if schema is None:
        raise ScriptError("`fill` needs a schema, and the client asked for none")
    return fill(reply.answer, schema)


def _tool(reply: Reply, received: Received) -> str | None:
    if reply.tool is not None:
        return reply.tool
    structured = reply.fault in {"wrong_schema", "invalid_json", "truncated"}
    if isinstance(reply.answer, str) or (reply.answer is None and not structured):
        return None
    return received.tool if received.mode == "tool" else None


def _placed(text: str, tool: str | None) -> dict[str, Any]:
    return {"tool": tool, "arguments": text, "finish": "tool"} if tool else {"text": text}


def _text(answer: Any) -> str:
    if answer is None:
        return ""
    if isinstance(answer, str):
        return answer
    try:
        return json.dumps(answer, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ScriptError(f"an answer cannot be written as JSON: {error}") from error


def _half(text: str) -> str:
    return text[: max(1, len(text) // 2)]


def _tokens(stated: int | None, text: str) -> int:
    return max(1, len(text) // _LETTERS_PER_TOKEN) if stated is None else stated
