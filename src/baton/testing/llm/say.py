"""From what a script replies to the words of a model, placed as the client asked for them."""

from __future__ import annotations

import json
from typing import Any

from .fill import fill
from .talk import Api, Received, Reply, Said, ScriptError

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
