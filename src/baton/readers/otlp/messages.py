"""Read chat messages in the shapes that instrumentations write into one form, with their blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from baton.formats.nesting import decode_json, is_too_deep
from baton.model import Content, Part

from .attribute_values import (
    HIDDEN,
    attachment,
    block_kind,
    block_text,
    content,
    finite,
    first,
    parsed,
    printed_value,
    shown,
    text,
)

# The ``repr`` of OpenAI's client object, which older versions of OpenInference record.
_PRINTED = "ResponseFunctionToolCall("
_REPR = re.compile(r"\b(name|call_id|arguments)='([^']*)'")
# The beginning of an object in JSON of JSON, and the type of one chunk of a streamed answer.
_QUOTED = '"{'
_CHUNK = '"chat.completion.chunk"'
# `{'content': None, 'refusal': None, 'role': 'assistant', ...}`: an answer of OpenAI's SDK as
# Python prints it, which an instrumentation recorded as the text of an answer.
_PRINTED_ANSWER = "{'"
_OF_MESSAGE = frozenset({"role", "content", "refusal"})
# Types of reasoning blocks in OpenTelemetry, Anthropic, DeepSeek and others, and the type of those
# that Anthropic redacts. A thought is never part of the answer.
_THOUGHTS = frozenset({"reasoning", "thinking", "reasoning_content", "redacted_thinking"})
_THOUGHT = (
    "text", "thinking", "content", "reasoning", "reasoning_content", "summary", "reasoningText",
)  # fmt: skip
# Types of blocks that are tool calls, as OpenTelemetry, Anthropic, OpenAI, Bedrock and Gemini write
# them.
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
# In the same order. The last types belong to tools that the provider runs itself (search queries,
# code).
_ARGUMENTS = (
    "arguments", "args", "input", "parameters", "tool_kwargs", "action", "queries", "code",
)  # fmt: skip
_CALL_IDS = (*_IDS[1:], "id")
_ODD_CALL = frozenset((*_INSIDE, *_NAMES[1:], *_IDS[1:], *_ARGUMENTS[1:], "tool_use"))
"""Keys that a call in OpenTelemetry's form does not have."""
_RESULTS = ("response", "result", "content", "output", "server_tool_call_response")
# Messages that are not JSON: an exporter has truncated them, so nobody wrote this text.
_CUT = re.compile(r'\s*\[?\[?\s*\{\s*"(?:role|parts|messages)"\s*:\s*["\[{]')
# Questions to a person, and decisions; both repeat the call. The first two are Microsoft's.
ASKS_A_PERSON = "function_approval_request"
_APPROVALS = frozenset(
    {ASKS_A_PERSON, "function_approval_response", "tool-approval-request", "tool-approval-response"}
)
_HOSTED, _HOSTED_ANSWER = "_call", "_call_output"


class Call(msgspec.Struct, kw_only=True, gc=False):
    """A tool call as a model wrote it."""

    id: str | None = None
    name: str
    arguments: Any = None


class Answer(msgspec.Struct, kw_only=True, gc=False):
    """The answer to a tool call, as the model received it.

    ``at`` is set if the answer came later than the call. ``hosted``: the model provider ran the
    tool itself. ``refused``: a person did not allow the call.
    """

    id: str | None = None
    name: str | None = None
    result: Content | None = None
    failed: bool = False
    at: float | None = None
    hosted: bool = False
    refused: bool = False


def is_block(value: Any) -> bool:
    """Return whether a value is a part of a message and not a message."""
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
    """Return whether a block type is a call. Providers choose any type for their own tools."""
    return kind is not None and (kind in _CALLS or kind.endswith(_HOSTED))


def is_answer(kind: str | None) -> bool:
    """Return whether a block type is the answer to a call."""
    return kind is not None and (kind in _ANSWERS or kind.endswith((_HOSTED_ANSWER, "tool_result")))


def is_thought(block: Mapping[str, Any], kind: str | None) -> bool:
    """Return whether a block holds reasoning."""
    return kind in _THOUGHTS or "reasoningContent" in block or block.get("thought") is True


def thought_of(value: Any, levels: int = 6) -> str:
    """Return the text of a reasoning block, which can be nested some levels deep."""
    if isinstance(value, str) or not levels:
        return value if isinstance(value, str) else ""
    if isinstance(value, dict):
        return thought_of(first(value, *_THOUGHT, "reasoningContent"), levels - 1)
    if isinstance(value, list):
        return "\n".join(filter(None, (thought_of(one, levels - 1) for one in value)))
    return ""


def calls_and_answers(block: Mapping[str, Any], kind: str | None) -> list[Call | Answer] | None:
    """Read a block that is a call, an answer or both; return ``None`` for any other block."""
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
    """Read a call of the OpenAI SDK that an instrumentation recorded as its Python ``repr``."""
    if said is None or not said.startswith(_PRINTED):
        return None
    printed = dict(_REPR.findall(said))
    if "name" not in printed:
        return None
    return Call(
        id=printed.get("call_id"), name=printed["name"], arguments=shown(printed.get("arguments"))
    )


def _printed_answer(said: str) -> list[Message] | None:
    """Read an answer of the OpenAI SDK that is recorded as its Python ``repr``."""
    if not said.startswith(_PRINTED_ANSWER):
        return None
    value = printed_value(said, otherwise=None)
    if not isinstance(value, dict):
        return None
    if not _is_response(value) and not (
        value.keys() >= _OF_MESSAGE and value["role"] == _ASSISTANT
    ):
        return None
    return read_messages(value, _ASSISTANT)


def _given(arguments: Any) -> Any:
    """Return the arguments of a call as data.

    OpenInference for Agno 2 wrote those of chat completions as JSON of JSON.
    """
    data = shown(arguments)
    if isinstance(data, str) and data.startswith(_QUOTED):
        try:
            inner = decode_json(data)
        except msgspec.DecodeError:
            return data
        return shown(inner) if isinstance(parsed(inner), dict) else data
    return data


def calls(call: Mapping[str, Any]) -> Iterator[Call]:
    """Read a call in any shape; yield nothing if it has no name."""
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
        yield Call(id=text(first(call, *_CALL_IDS)), name=name, arguments=_given(arguments))


def _hosted(call: Mapping[str, Any], kind: str | None) -> Iterator[Answer]:
    """Read the answer that is part of a call, for a tool that the provider ran itself."""
    if kind in _CALLS or call.get("status") not in ("completed", "failed", None):
        return
    result, error = first(call, "output", "outputs", "results", "result"), call.get("error")
    if result is None and error is None and call.get("status") is None:
        return
    failed = error is not None or call.get("status") == "failed"
    yield Answer(
        id=text(first(call, *_CALL_IDS)),
        result=content(result or error),
        failed=failed,
        hosted=True,
    )


def _answer(answer: Mapping[str, Any]) -> Answer:
    origin = answer.get("origin")
    asked = origin if isinstance(origin, dict) else answer
    failed = True in (answer.get("is_error"), answer.get("isError"), answer.get("error"))
    return _answered(
        text(first(asked, *_IDS)),
        first(answer, *_RESULTS),
        name=text(first(asked, *_NAMES)),
        failed=failed or answer.get("status") == "error",
    )


def _answered(
    id_: str | None, result: Any, name: str | None = None, *, failed: bool = False
) -> Answer:
    result = parsed(result)
    if isinstance(result, dict) and set(result) == {"type", "value"}:
        failed = failed or str(result["type"]).startswith("error")
        result = result["value"]
    return Answer(id=id_, name=name, result=content(result), failed=failed)


__all__ = ["Answer", "Call", "Message", "read_message", "read_messages"]

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "aimessagechunk": "assistant",
    "function": "tool",
    "developer": "system",
}
_PLAIN_ROLES = frozenset({"user", "assistant", "system", "tool"})
_ASSISTANT = "assistant"
_SAYS = frozenset({*_PLAIN_ROLES, *_ROLES})
_BODIES = ("parts", "content", "contents", "blocks")
_USUAL_KEYS = frozenset({"role", "parts", "name", "finish_reason"})
_WRAPPED = ("kwargs", "data", "message")


class Message(msgspec.Struct, kw_only=True, gc=False):
    """One message. ``role`` is user, assistant, system or tool, or another value from the source.

    ``hidden`` is true if the text was left out when the message was recorded.

    ``mixed``: its calls are from several answers, and it is unknown which of them belong together.
    """

    role: str
    name: str | None = None
    content: Content | None = None
    thought: str | None = None
    calls: list[Call] = msgspec.field(default_factory=list)
    answers: list[Answer] = msgspec.field(default_factory=list)
    hidden: bool = False
    mixed: bool = False


class _TextPart(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    content: str


class _CallPart(
    msgspec.Struct, tag_field="type", tag="tool_call", forbid_unknown_fields=True, gc=False
):
    name: str
    id: str | None = None
    arguments: Any = None


class _ResponsePart(
    msgspec.Struct, tag_field="type", tag="tool_call_response", forbid_unknown_fields=True, gc=False
):
    id: str | None = None
    response: Any = None


class _UsualMessage(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A message with the keys and parts of nearly all messages in OpenTelemetry's attributes."""

    role: str
    parts: list[_TextPart | _CallPart | _ResponsePart]
    name: str | None = None
    finish_reason: str | None = None


_USUAL_MESSAGES = msgspec.json.Decoder(list[_UsualMessage])


def _usual_messages(value: Any) -> list[_UsualMessage] | None:
    """Decode messages straight into types, which is four times as fast as going through plain data.

    Return ``None`` for messages in another form, invalid JSON, and JSON that is nested too deeply.
    """
    if not isinstance(value, str) or not value.startswith("[{") or '"parts"' not in value:
        return None
    try:
        data = value.encode()
        return None if is_too_deep(data) else _USUAL_MESSAGES.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return None


def _usual_message(usual: _UsualMessage) -> Message | None:
    """Convert a message with usual parts; return ``None`` if a part needs the general reader."""
    role = usual.role if usual.role in _PLAIN_ROLES else _role(usual.role)
    message = Message(role=role, name=usual.name or None)
    texts: list[str] = []
    for part in usual.parts:
        if type(part) is _TextPart:
            said = part.content
            if said in HIDDEN or said.startswith((_PRINTED, _PRINTED_ANSWER)):
                return None
            if said:
                texts.append(said)
        elif type(part) is _CallPart:
            if not part.name:
                return None
            arguments = part.arguments
            if isinstance(arguments, str):
                arguments = shown(arguments)
            message.calls.append(Call(id=part.id or None, name=part.name, arguments=arguments))
        elif type(part) is _ResponsePart:
            message.answers.append(_answered(part.id or None, part.response))
    if role == "tool" and not message.answers:
        return None
    if texts:
        message.content = Content(text="\n".join(texts))
    return message


def read_messages(value: Any, role: str = "user") -> list[Message]:
    """Read one message or a list of them; a plain string is a message with the role ``role``."""
    usual = _usual_messages(value)
    if usual is not None:
        messages: list[Message] = []
        for each in usual:
            message = _usual_message(each)
            if message is None:
                break
            messages.append(message)
        else:
            return messages
    written, value = value, parsed(value)
    if isinstance(written, str) and isinstance(value, list) and value:
        if isinstance(value[0], str) and _CHUNK in value[0]:
            value = [parsed(item) for item in value]
        if not any(isinstance(item, dict | list) for item in value):
            return [Message(role=role, content=content(value))]  # a list as an answer
    if isinstance(value, dict) and "role" not in value:
        value, role = _unwrapped(value, role)
    if isinstance(value, str):
        if _CUT.match(value):
            return [Message(role=role, hidden=True)]
        message = read_message(value, role)
        return [] if message is None else [message]
    items = value if isinstance(value, list) else [value]
    streamed = _streamed(items) if len(items) > 1 else None
    if streamed is not None:
        message = read_message(streamed, "assistant")
        return [] if message is None else [message]
    if items and isinstance(items[0], list):
        items = _pairs(items) or items[0]
    if items and _is_response(items[0]):
        # OpenAI Agents writes a list of answers of the Responses API for a streamed request.
        role, items = "assistant", [one for item in items for one in _response_items(item)]
    if items and all(is_block(item) for item in items):
        return [_message(role, None, items)]
    return [message for item in items if (message := read_message(item, role)) is not None]


def _streamed(items: list[Any]) -> dict[str, Any] | None:
    """Join the chunks of a streamed chat completion; return ``None`` if it is something else.

    OpenInference for Agno 1 recorded each chunk as it came from the client, as a list of JSON.
    """
    if not all(isinstance(item, dict) and isinstance(item.get("choices"), list) for item in items):
        return None
    choices = [choice for item in items for choice in item["choices"] if isinstance(choice, dict)]
    deltas = [delta for choice in choices if isinstance(delta := choice.get("delta"), dict)]
    if not deltas:
        return None
    said = "".join(delta["content"] for delta in deltas if text(delta.get("content")))
    written: dict[Any, dict[str, Any]] = {}
    for delta in deltas:
        for part in delta.get("tool_calls") or ():
            function = part.get("function") if isinstance(part, dict) else None
            if not isinstance(function, dict):
                continue
            call = written.setdefault(str(part.get("index")), {"id": None, "name": "", "parts": []})
            call["id"] = call["id"] or part.get("id")
            call["name"] = call["name"] or function.get("name")
            call["parts"].append(text(function.get("arguments")) or "")
    tool_calls = [
        {"id": call["id"], "function": {"name": call["name"], "arguments": "".join(call["parts"])}}
        for call in written.values()
    ]
    return {"role": "assistant", "content": said or None, "tool_calls": tool_calls}


def last_of(messages: list[Message], role: str) -> Content | None:
    """Return the content of the last message with a role."""
    contents = (m.content for m in reversed(messages) if m.role == role and m.content)
    return next(contents, None)


def _unwrapped(value: Mapping[str, Any], role: str) -> tuple[Any, str]:
    """Extract the messages from a request, a response or the state of a graph."""
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
    if _is_response(value):
        return output, "assistant"
    if isinstance(output, dict) and isinstance(output.get("message"), dict):
        return output["message"], "assistant"
    return value, role


def _is_response(value: Any) -> bool:
    """Return whether a value is an answer of OpenAI's Responses API."""
    if not isinstance(value, dict) or value.get("object") != "response":
        return False
    return isinstance(value.get("output"), list)


def _response_items(value: Any) -> list[Any]:
    return value["output"] if _is_response(value) else [value]


def _pairs(items: list[Any]) -> list[Any] | None:
    """Read messages that are pairs of a role and a text; return ``None`` for anything else."""
    pairs = [item for item in items if isinstance(item, list) and len(item) == 2]
    if len(pairs) < len(items) or not all(isinstance(pair[0], str) for pair in pairs):
        return None
    if any(pair[0].lower() not in _SAYS for pair in pairs):
        return None
    return [{"role": role, "content": said} for role, said in pairs]


def read_message(value: Any, role: str = "user") -> Message | None:
    """Read one message of any shape; return ``None`` for anything that is not a message."""
    if isinstance(value, str):
        return _message(role, None, value) if value else None
    if not isinstance(value, dict):
        return None
    if value.keys() <= _USUAL_KEYS:  # as OpenTelemetry writes most messages
        said_by, parts = value.get("role"), value.get("parts")
        if (
            isinstance(said_by, str)
            and isinstance(parts, list)
            and (usual := _role(said_by)) != "tool"
        ):
            return _message(usual, text(value.get("name")), parts)
    inner = first(value, *_WRAPPED)
    if isinstance(inner, dict) and ("content" in inner or "role" in inner):
        value = {"type": _class(value), **inner}
    kind = text(value.get("type"))
    if "role" not in value and (is_call(kind) or is_answer(kind) or is_thought(value, kind)):
        return _message("tool" if is_answer(kind) else "assistant", None, [value])
    said = _role(text(value.get("role")) or kind or role)
    written = first(value, *_BODIES)
    body = parsed(written)
    if isinstance(body, dict) and isinstance(body.get("parts"), list) and "type" not in body:
        # A response of Gemini, or an event of ADK: `{"content": {"parts": [{"text": ...`. A model
        # can also answer with JSON that has such a key: `{"parts": ["Gdansk", "Hel"]}`.
        if all(isinstance(part, dict) for part in body["parts"]):
            body = body["parts"]
    elif isinstance(written, str) and isinstance(body, list) and body:
        if not any(isinstance(block, dict) and is_block(block) for block in body):
            body = written  # the answer is a list: `["Gdansk", "Hel"]`
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
    empty = message.content is None and message.thought is None
    if said == _ASSISTANT and empty and not message.calls and value.keys().isdisjoint(_BODIES):
        # pydantic-ai before 0.4.3, and events of OpenTelemetry, without content:
        # `{"role": "assistant"}`. An answer without a text has an empty `content`.
        message.hidden = True
    if value and body is None and "role" not in value and kind is None and not message.calls:
        message.content = content(value)
    return message


def _role(role: Any) -> str:
    if type(role) is str and role in _PLAIN_ROLES:
        return role
    plain = str(role).lower()
    return _ROLES.get(plain, plain)


def _class(value: Mapping[str, Any]) -> str | None:
    """Return the type of a serialised message, from the message itself or from its class name."""
    kind, path = text(value.get("type")), value.get("id")
    if kind == "constructor" and isinstance(path, list) and path:
        return str(path[-1]).lower().removesuffix("chunk").removesuffix("message")
    return kind


def _beside(value: Mapping[str, Any], message: Message) -> None:
    """Read what a message has besides its text: calls, reasoning, a refusal."""
    more = value.get("additional_kwargs")
    for holder in (value, more if isinstance(more, dict) else {}):
        if not message.calls:
            written = parsed(holder.get("tool_calls"))
            for call in written if isinstance(written, list) else ():
                if isinstance(call, dict):
                    message.calls += calls(call)
        if not message.calls and isinstance(holder.get("function_call"), dict):
            message.calls += calls(holder["function_call"])
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
    for block in _unpacked(body):
        if isinstance(block, dict) and _is_usual(block):
            kind = block["type"]
            if kind in _CALLS:
                if _ODD_CALL.isdisjoint(block) and text(block.get("name")) is not None:
                    arguments = shown(block.get("arguments"))
                    id_ = text(block.get("id"))
                    message.calls.append(Call(id=id_, name=block["name"], arguments=arguments))
                else:
                    message.calls += calls(block)
                continue
            said = block.get("text") or block.get("content")
            if isinstance(said, str) and said not in HIDDEN and not said.startswith(_PRINTED):
                answer = _printed_answer(said) if role == _ASSISTANT else None
                if answer is None:
                    texts.append(said)
                for one in answer or ():
                    message.calls += one.calls
                    texts.append(one.content.text or "" if one.content is not None else "")
                continue
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict) and block_kind(block) in _APPROVALS:
            continue
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


def _unpacked(body: list[Any]) -> list[Any]:
    """Unpack blocks of text that hold blocks themselves.

    Strands 1.11 and 1.12: `{"type": "text", "content": [{"text": "Hi"}]}`.
    """
    if not any(map(_is_packed, body)):
        return body
    return [one for block in body for one in (block["content"] if _is_packed(block) else [block])]


def _is_packed(block: Any) -> bool:
    return (
        isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(block.get("content"), list)
    )


def _is_usual(block: Mapping[str, Any]) -> bool:
    """Return whether a block is a text or call in OpenTelemetry's form.

    Most blocks are, and they can take the fast path.
    """
    kind = block.get("type")
    if kind not in ("text", "tool_call"):
        return False
    return "thought" not in block and "reasoningContent" not in block


def _is_left_out(body: Any) -> bool:
    """Return whether a body is a placeholder for omitted content: a word, or only its type."""
    if isinstance(body, dict):
        return set(body) in ({"type"}, {"kind"})
    return isinstance(body, str) and body in HIDDEN


def _take(block: Mapping[str, Any], message: Message, thoughts: list[str]) -> bool:
    """Add a block to the message if it is a call, an answer or a thought."""
    kind = block_kind(block)
    if is_thought(block, kind):
        thought = thought_of(block)
        thoughts += [thought] if thought and thought not in HIDDEN else []
        return True
    parts = calls_and_answers(block, kind)
    for one in parts or ():
        if isinstance(one, Call):
            message.calls.append(one)
        else:
            message.answers.append(one)
    return parts is not None
