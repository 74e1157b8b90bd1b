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
from baton.readers.otlp.readings import (
    AgentSpan,
    HandoffSpan,
    MessageSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    WorkflowSpan,
    as_agent,
    node_of,
)
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.values import content, first, parsed, shown, text, usage, whole

from .base import Dialect
from .genai import fail
from .handover import hand_over

_FRAMEWORK = "autogen"
_USER = "user"
_TOOLS = "base_tool"
# The runtime has other actors, like the manager of a group chat. Only this one holds an agent.
_AGENT_CLASS = "ChatAgentContainer"
# Each agent gets every message of the team; the empty one asks it to speak.
_ASKED = "{}"
# An actor that AutoGen adds to end a graph: it makes no request and says a fixed text.
_STOPS = "DiGraphStopAgent"
# Events about the work of an agent: a question to the user, what its memory found, who speaks next.
_NOT_SAID = ("UserInputRequestedEvent", "MemoryQueryEvent", "SelectSpeakerEvent")
# In names of spans the agent is `billing_<id of the team>`, followed by the same id as key.
_KEY = re.compile(r"\.\((.+)\)-A$")
# The description AutoGen gives the tools it makes for hand-offs. Their names can be chosen freely.
_HANDOFF_TOOL = re.compile(r"Handoff to (.+)\.")
# AutoGen's default message of a hand-off. Taken for a prompt, it would be judged as one, and found
# to carry nothing of the request.
_GENERATED = "Transferred to {0}, adopting the role of {0} immediately."


def claims(span: Span) -> bool:
    """Tell a span of the runtime, or of a tool in versions that say no more of it."""
    if span.scope == _TOOLS:
        return "tool_name" in span.attributes
    return span.scope.startswith("autogen") and "messaging.operation" in span.attributes


def read(span: Span) -> Reading:
    """Read a span: the ones that process a message hold it."""
    if span.scope != _TOOLS:
        return PlainSpan(framework=_FRAMEWORK)
    says = ToolSpan(
        name=text(span.attributes["tool_name"]),
        arguments=shown(span.attributes.get("tool_args")),
        framework=_FRAMEWORK,
    )
    fail(says, span)
    hand_over(says, None, span.attributes)
    return says


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Return what the messages in these spans tell, as nodes of their own in time order."""
    seen: dict[str, Node] = {}
    named = any(type(node.says) is AgentSpan for node in nodes)
    for node in nodes:
        if type(node.says) is ToolSpan:
            _hands_off(node.says, node.span.attributes)
        if not claims(node.span) or node.span.attributes.get("messaging.operation") != "process":
            continue
        if not named:
            _works(node)
        value = parsed(node.span.attributes.get("message"))
        for message in _messages(value) if isinstance(value, dict) else ():
            alone = message is value.get("message")
            id_ = text(message.get("id")) or (node.span.span_id + "/message" if alone else None)
            # One message stands in the span of every agent that receives it, and again in the
            # answers of each.
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
        node.says = as_agent(node.says, name)
        fail(node.says, node.span)


def _hands_off(says: ToolSpan, attributes: Mapping[str, Any]) -> None:
    """Tell a tool that hands over by what AutoGen says it does, whatever its name.

    It takes nothing: what is handed over with it is what it returns.
    """
    if says.mode is None and says.framework == _FRAMEWORK:
        said = text(first(attributes, "gen_ai.tool.description", "tool_description"))
        found = _HANDOFF_TOOL.fullmatch(said) if said is not None else None
        if found is not None:
            says.mode, says.target = "transfer", found.group(1)
            says.arguments = says.arguments or None


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
    says = _reading(message)
    says.framework = _FRAMEWORK
    return node_of(span, says)


def _reading(message: Mapping[str, Any]) -> Reading:
    source, kind, body = text(message["source"]), text(message.get("type")), message.get("content")
    if source == _USER:
        heard = [{"role": "user", "content": body}] if "content" in message else None
        return WorkflowSpan(heard=heard)
    if "content" in message and kind == "HandoffMessage":
        said, target = text(body), text(message.get("target"))
        # What AutoGen writes where the agent says nothing is no prompt.
        stated = said is not None and said != _GENERATED.format(target)
        prompt = content(said) if stated else None
        return HandoffSpan(agent=source, target=target, result=content(said), prompt=prompt)
    if "content" in message and kind == "ToolCallExecutionEvent":
        answers = Message(role="tool", answers=list(_answers(body)))
        return MessageSpan(agent=source, heard=lambda: [answers])
    if "content" in message and kind in _NOT_SAID:
        return PlainSpan()
    said_as = Message(role="assistant")
    if "content" not in message:
        said_as.hidden = True
    elif kind == "ToolCallRequestEvent":
        said_as.calls = list(_calls(body))
    elif kind == "ThoughtEvent":
        said_as.thought = text(body)
    else:
        said_as.content = content(body)
    counts = message.get("models_usage")
    if isinstance(counts, dict):
        # A message with token counts stands for the request that it is the answer of.
        spent = usage(
            input=whole(counts.get("prompt_tokens")), output=whole(counts.get("completion_tokens"))
        )
        return ModelSpan(agent=source, spoken=lambda: [said_as], usage=spent)
    return MessageSpan(agent=source, spoken=lambda: [said_as])


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


DIALECT = Dialect(name=_FRAMEWORK, rank=80, claims=claims, read=read, resolve=resolve)
