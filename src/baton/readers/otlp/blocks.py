"""The blocks that chat messages are made of: calls, answers to calls, and thoughts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from baton.model import Content

from .values import block_kind, block_text, content, first, parsed, shown, text

_REPR = re.compile(r"\b(name|call_id|arguments)='([^']*)'")
_THOUGHTS = frozenset({"reasoning", "thinking", "reasoning_content", "redacted_thinking"})
_THOUGHT = (
    "text", "thinking", "content", "reasoning", "reasoning_content", "summary", "reasoningText",
)  # fmt: skip
_CALLS = frozenset(
    {"tool_call", "tool_use", "function_call", "server_tool_call", "server_tool_use", "toolUse",
     "functionCall", "mcp_tool_use"}
)  # fmt: skip
_ANSWERS = frozenset(
    {"tool_call_response", "tool_result", "tool_call_result", "function_call_output",
     "function_response", "server_tool_call_response", "toolResult", "functionResponse",
     "tool_response"}
)  # fmt: skip
_INSIDE = ("function", "tool_call")
_NAMES = ("name", "tool_name", "toolName")
_IDS = ("id", "call_id", "tool_call_id", "toolUseId", "tool_use_id", "toolCallId")
_ARGUMENTS = (
    "arguments", "args", "input", "parameters", "tool_kwargs", "action", "queries", "code",
)  # fmt: skip
_RESULTS = ("response", "result", "content", "output", "server_tool_call_response")
_HOSTED, _HOSTED_ANSWER = "_call", "_call_output"


class Call(msgspec.Struct, kw_only=True):
    """A tool call as a model wrote it."""

    id: str | None = None
    name: str
    arguments: Any = None


class Answer(msgspec.Struct, kw_only=True):
    """The answer to a tool call, as a model was given it; ``at`` when it came after the call.

    ``hosted``: the provider of the model ran the tool itself.
    """

    id: str | None = None
    name: str | None = None
    result: Content | None = None
    failed: bool = False
    at: float | None = None
    hosted: bool = False


def is_block(value: Any) -> bool:
    """Tell a part of a message from a message."""
    if not isinstance(value, dict) or "role" in value:
        return False
    kind = block_kind(value)
    if kind is None:
        keys = value.keys()
        inner = isinstance(value.get("function"), dict)
        return inner or block_text(value) is not None or bool(keys & _CALLS or keys & _ANSWERS)
    inner = kind == "function" and isinstance(value.get("function"), dict)
    return inner or block_text(value) is not None or is_call(kind) or is_answer(kind)


def is_call(kind: str | None) -> bool:
    """Tell the type of a block that is a call; providers name those of their own tools freely."""
    return kind is not None and (kind in _CALLS or kind.endswith(_HOSTED))


def is_answer(kind: str | None) -> bool:
    """Tell the type of a block that answers a call."""
    return kind is not None and (kind in _ANSWERS or kind.endswith((_HOSTED_ANSWER, "tool_result")))


def is_thought(block: Mapping[str, Any], kind: str | None) -> bool:
    """Tell a block of reasoning."""
    return kind in _THOUGHTS or "reasoningContent" in block or block.get("thought") is True


def thought_of(value: Any, levels: int = 6) -> str:
    """Return the text of a block of reasoning, which may lie some levels deep in it."""
    if isinstance(value, str) or not levels:
        return value if isinstance(value, str) else ""
    if isinstance(value, dict):
        return thought_of(first(value, *_THOUGHT, "reasoningContent"), levels - 1)
    if isinstance(value, list):
        return "\n".join(filter(None, (thought_of(one, levels - 1) for one in value)))
    return ""


def calls_and_answers(block: Mapping[str, Any], kind: str | None) -> list[Call | Answer] | None:
    """Read a block that is a call, an answer or both; ``None`` for any other."""
    if kind in (None, "function") and isinstance(block.get("function"), dict):
        return list(calls(block))
    if is_answer(kind):
        answer = _answer(block)
        answer.hosted = kind not in _ANSWERS or kind == "server_tool_call_response"
        return [answer]
    if is_call(kind):
        return [*calls(block), *_hosted(block, kind)]
    for key in block if kind is None else ():
        inner = block[key]
        if isinstance(inner, dict) and key in _CALLS:
            return list(calls(inner))
        if isinstance(inner, dict) and key in _ANSWERS:
            return [_answer(inner)]
    return None


def repr_call(said: str | None) -> Call | None:
    """Read a call of the OpenAI SDK that an instrumentation wrote down as Python prints it."""
    if said is None or not said.startswith("ResponseFunctionToolCall("):
        return None
    told = dict(_REPR.findall(said))
    if "name" not in told:
        return None
    return Call(id=told.get("call_id"), name=told["name"], arguments=shown(told.get("arguments")))


def calls(call: Mapping[str, Any]) -> Iterator[Call]:
    """Read a call in any shape; none where it has no name."""
    function = first(call, *_INSIDE)
    inner = function if isinstance(function, dict) else call
    if isinstance(inner.get("function"), dict):
        inner = inner["function"]
    name, arguments = text(first(inner, *_NAMES)), first(inner, *_ARGUMENTS)
    kind = text(call.get("type"))
    if kind in _CALLS and arguments is None and isinstance(call.get(kind), dict):
        arguments = {key: value for key, value in call[kind].items() if key != "type"}
    if name is None and kind is not None and kind not in _CALLS and kind.endswith(_HOSTED):
        name = kind.removesuffix(_HOSTED)
    if name is not None:
        yield Call(id=text(first(call, *_IDS[1:], "id")), name=name, arguments=shown(arguments))


def _hosted(call: Mapping[str, Any], kind: str | None) -> Iterator[Answer]:
    """Read the answer that stands in the call of a tool which the provider ran itself."""
    if kind in _CALLS or call.get("status") not in ("completed", "failed", None):
        return
    result, error = first(call, "output", "outputs", "results", "result"), call.get("error")
    if result is None and error is None and call.get("status") is None:
        return
    failed = error is not None or call.get("status") == "failed"
    yield Answer(
        id=text(first(call, *_IDS[1:], "id")),
        result=content(result or error),
        failed=failed,
        hosted=True,
    )


def _answer(answer: Mapping[str, Any]) -> Answer:
    origin = answer.get("origin")
    asked = origin if isinstance(origin, dict) else answer
    result = parsed(first(answer, *_RESULTS))
    failed = True in (answer.get("is_error"), answer.get("isError"), answer.get("error"))
    if isinstance(result, dict) and set(result) == {"type", "value"}:
        failed = failed or str(result["type"]).startswith("error")
        result = result["value"]
    return Answer(
        id=text(first(asked, *_IDS)),
        name=text(first(asked, *_NAMES)),
        result=content(result),
        failed=failed or answer.get("status") == "error",
    )
