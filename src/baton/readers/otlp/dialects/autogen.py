"""AutoGen: what its agents say passes as messages through the spans of its runtime.

The runtime writes each message into the span of every agent that processes it, and the answer of
an agent holds its earlier messages once more; each counts once, by its id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from baton.readers.otlp.messages import Answer, Call, Message
from baton.readers.otlp.node import Node
from baton.readers.otlp.span import Span
from baton.readers.otlp.tokens import usage
from baton.readers.otlp.values import content, parsed, shown, text, whole

_USER = "user"
_GENERATED = "Transferred to {0}, adopting the role of {0} immediately."


def claims(span: Span) -> bool:
    """Tell a span of the runtime."""
    return span.scope.startswith("autogen") and "messaging.operation" in span.attributes


def read(span: Span) -> Node:
    """Read a span: the ones that process a message hold it."""
    return Node(span=span, kind="none", framework="autogen")


def resolve(nodes: list[Node]) -> list[Node]:
    """Return what the messages in these spans tell, as nodes of their own in time order."""
    seen: dict[str, Node] = {}
    for node in nodes:
        if not claims(node.span) or node.span.attributes["messaging.operation"] != "process":
            continue
        value = parsed(node.span.attributes.get("message"))
        for message in _messages(value) if isinstance(value, dict) else ():
            id_ = text(message.get("id"))
            if id_ is not None and id_ not in seen:
                seen[id_] = _node(message, id_, node.span)
    return sorted(seen.values(), key=lambda node: node.started)


def _messages(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    response = value.get("response")
    found: list[Any] = [value.get("message")]
    if isinstance(value.get("messages"), list):
        found += value["messages"]
    if isinstance(response, dict):
        inner = response.get("inner_messages")
        found += inner if isinstance(inner, list) else []
        found.append(response.get("chat_message"))
    yield from (one for one in found if isinstance(one, dict) and "source" in one)


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
    if source == _USER:
        node.kind, node.name, node.agent = "workflow", None, None
        node.heard = [{"role": "user", "content": body}]
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
