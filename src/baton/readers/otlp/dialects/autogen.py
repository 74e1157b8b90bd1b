"""AutoGen: what its agents say passes as messages through the spans of its runtime.

The runtime writes each message into the span of every agent that processes it, and the answer of
an agent holds its earlier messages once more; each counts once, by its id. Before 0.7 messages
stand there without their texts and types, and before 0.6 without ids, and nothing but the runtime
tells which agent is at work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from baton.readers.otlp.messages import Answer, Call, Message
from baton.readers.otlp.node import Node
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.tokens import usage
from baton.readers.otlp.values import content, first, parsed, shown, text, whole

from .base import Dialect
from .genai import fail
from .handover import hand_over

_USER = "user"
_TOOLS = "base_tool"
_AGENT_CLASS = "ChatAgentContainer"
_ASKED = "{}"
_STOPS = "DiGraphStopAgent"
_KEY = re.compile(r"\.\((.+)\)-A$")
_HANDOFF_TOOL = re.compile(r"Handoff to (.+)\.")
_GENERATED = "Transferred to {0}, adopting the role of {0} immediately."


def claims(span: Span) -> bool:
    """Tell a span of the runtime, or of a tool in versions that say no more of it."""
    if span.scope == _TOOLS:
        return "tool_name" in span.attributes
    return span.scope.startswith("autogen") and "messaging.operation" in span.attributes


def read(span: Span) -> Node:
    """Read a span: the ones that process a message hold it."""
    node = Node(span=span, kind="none", framework="autogen")
    if span.scope == _TOOLS:
        node.kind, node.name = "tool", text(span.attributes["tool_name"])
        node.arguments = shown(span.attributes.get("tool_args"))
        fail(node)
        hand_over(node, None, span.attributes)
    return node


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Return what the messages in these spans tell, as nodes of their own in time order."""
    seen: dict[str, Node] = {}
    named = any(node.kind == "agent" for node in nodes)
    for node in nodes:
        if node.kind == "tool":
            _hands_off(node)
        if not claims(node.span) or node.span.attributes.get("messaging.operation") != "process":
            continue
        if not named:
            _works(node)
        value = parsed(node.span.attributes.get("message"))
        for message in _messages(value) if isinstance(value, dict) else ():
            alone = message is value.get("message")
            id_ = text(message.get("id")) or (node.span.span_id + "/message" if alone else None)
            if id_ is not None and id_ not in seen:
                seen[id_] = _node(message, id_, node.span)
    return sorted(seen.values(), key=lambda node: node.started)


def _works(node: Node) -> None:
    """Make an agent of the span in which one is asked to speak."""
    attributes = node.span.attributes
    if attributes.get("recipient_agent_class") != _AGENT_CLASS:
        return
    type_, key = text(attributes.get("recipient_agent_type")), _KEY.search(node.span.name)
    name = (type_ or "").removesuffix(f"_{key.group(1)}" if key else "")
    if name not in ("", _STOPS) and attributes.get("message") == _ASKED:
        node.kind, node.name = "agent", name
        fail(node)


def _hands_off(node: Node) -> None:
    """Tell a tool that hands over by what AutoGen says it does, whatever its name.

    It takes nothing: what is handed over with it is what it returns.
    """
    if node.mode is None and node.framework == "autogen":
        attributes = node.span.attributes
        said = text(first(attributes, "gen_ai.tool.description", "tool_description"))
        found = _HANDOFF_TOOL.fullmatch(said) if said is not None else None
        if found is not None:
            node.mode, node.target = "transfer", found.group(1)
            node.arguments = node.arguments or None


def _messages(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    response = first(value, "response", "agent_response")
    found: list[Any] = [value.get("message")]
    if isinstance(value.get("messages"), list):
        found += value["messages"]
    if isinstance(response, dict):
        inner = response.get("inner_messages")
        found += inner if isinstance(inner, list) else []
        found.append(response.get("chat_message"))
    yield from (
        one for one in found if isinstance(one, dict) and one.get("source") not in (None, _STOPS)
    )


def _node(message: Mapping[str, Any], id_: str, around: Span) -> Node:
    """Read one message; what it is its ``type`` tells."""
    at = _time(message.get("created_at")) or around.started
    span = Span(
        trace_id=around.trace_id,
        span_id=id_,
        name="message",
        started=at,
        ended=at,
        scope=around.scope,
    )
    source, kind, body = text(message["source"]), text(message.get("type")), message.get("content")
    node = Node(span=span, kind="words", agent=source, framework="autogen")
    if "content" not in message and source != _USER:
        node.spoken = lambda: [Message(role="assistant", hidden=True)]
    elif source == _USER:
        node.kind, node.name, node.agent = "workflow", None, None
        node.heard = [{"role": "user", "content": body}] if "content" in message else None
    elif kind == "HandoffMessage":
        _handoff(node, message)
    elif kind == "ToolCallExecutionEvent":
        node.kind = "answers"
        node.heard = lambda: [Message(role="tool", answers=list(_answers(body)))]
    elif kind == "ToolCallRequestEvent":
        node.spoken = lambda: [Message(role="assistant", calls=list(_calls(body)))]
    elif kind == "ThoughtEvent":
        node.spoken = lambda: [Message(role="assistant", thought=text(body))]
    elif kind in ("UserInputRequestedEvent", "MemoryQueryEvent", "SelectSpeakerEvent"):
        node.kind = "none"
    else:
        node.spoken = lambda: [Message(role="assistant", content=content(body))]
    _count(node, message.get("models_usage"))
    return node


def _count(node: Node, told: Any) -> None:
    """Take a message with token counts for the request that it is the answer of."""
    if isinstance(told, dict) and node.kind == "words":
        node.kind = "model"
        node.usage = usage(
            input=whole(told.get("prompt_tokens")), output=whole(told.get("completion_tokens"))
        )


def _handoff(node: Node, message: Mapping[str, Any]) -> None:
    node.kind, node.mode, node.target = "handoff", "transfer", text(message.get("target"))
    said = text(message.get("content"))
    node.result = content(said)
    if said is not None and said != _GENERATED.format(node.target):
        node.prompt = content(said)


def _calls(body: Any) -> Iterator[Call]:
    for call in body if isinstance(body, list) else ():
        if isinstance(call, dict) and text(call.get("name")):
            yield Call(
                id=text(call.get("id")), name=call["name"], arguments=shown(call.get("arguments"))
            )


def _answers(body: Any) -> Iterator[Answer]:
    for answer in body if isinstance(body, list) else ():
        if isinstance(answer, dict):
            yield Answer(
                id=text(answer.get("call_id")),
                name=text(answer.get("name")),
                result=content(answer.get("content")),
                failed=answer.get("is_error") is True,
            )


def _time(value: Any) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        return None


DIALECT = Dialect(name="autogen", rank=80, claims=claims, read=read, resolve=resolve)
