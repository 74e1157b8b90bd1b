"""AutoGen: the messages of its agents are stored in the spans of its runtime.

The runtime writes each message into the span of every agent that processes it, and an agent's
answer repeats its earlier messages. Each message counts once, by its id. Before 0.7, messages have
no texts and types. Before 0.6, they have no ids, and only the runtime shows which agent is at work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from baton.readers.otlp.attribute_values import (
    HIDDEN_VALUE,
    content,
    first,
    parsed,
    printed_value,
    shown,
    text,
    usage,
    whole,
)
from baton.readers.otlp.handover_calls import hand_over
from baton.readers.otlp.messages import Answer, Call, Message
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
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
    fail,
    node_of,
)

from .dialect import Dialect, Framework

_FRAMEWORK = "autogen"
_AGENTCHAT = "autogen_agentchat"  # the instrumentation of OpenInference
_CONTENT = re.compile(r""" content=(?P<content>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_USER = "user"
_TOOLS = "base_tool"
# The runtime also has other actors, such as the manager of a group chat. Only this one is an agent.
_AGENT_CLASS = "ChatAgentContainer"
# `autogen process billing_6d2f.(6d2f)-A`
_PROCESS = re.compile(r"autogen process (.+)_(([^_]+)\.\(\3\))-A")
# Each agent gets every message of the team. An empty message asks the agent to speak.
_ASKED = "{}"
# An actor that AutoGen adds to end a graph. It makes no request and sends a fixed text.
_STOPS = "DiGraphStopAgent"
# Events about the work of an agent: a question to the user, what its memory found, who speaks next,
# and pieces of an answer, which follows as a whole.
_NOT_SAID = (
    "UserInputRequestedEvent",
    "MemoryQueryEvent",
    "SelectSpeakerEvent",
    "ModelClientStreamingChunkEvent",
)
# The description AutoGen gives the tools it makes for hand-offs. Their names can be chosen freely.
_HANDOFF_TOOL = re.compile(r"Handoff to (.+)\.")
# AutoGen's default message of a hand-off. If it counted as a prompt, a judge would find that the
# prompt contains nothing of the request.
_GENERATED = "Transferred to {0}, adopting the role of {0} immediately."


def claims(span: Span) -> bool:
    """Return whether a span is from the runtime, or from a tool in versions with few attributes."""
    if span.scope == _TOOLS:
        return "tool_name" in span.attributes
    return span.scope.startswith("autogen") and "messaging.operation" in span.attributes


def read(span: Span) -> Reading:
    """Read a span; spans that process a message contain it."""
    if span.scope != _TOOLS:
        return PlainSpan(framework=_FRAMEWORK)
    says = ToolSpan(
        name=text(span.attributes["tool_name"]),
        arguments=shown(span.attributes.get("tool_args")),
        tells_result=False,  # it is in the messages, if these are recorded
        framework=_FRAMEWORK,
    )
    fail(says, span)
    hand_over(says, None, span.attributes)
    return says


def refine(says: Reading, span: Span) -> Reading:
    """Read what OpenInference gives as an agent's input: messages that Python printed."""
    if type(says) is AgentSpan and span.scope.endswith(_AGENTCHAT):
        given = parsed(span.attributes.get("input.value"))
        messages = given.get("messages") if isinstance(given, dict) else None
        says.heard = (
            [_printed(each) for each in messages] if isinstance(messages, list) else says.heard
        )
    return says


def _printed(message: Any) -> dict[str, Any]:
    """Return a message in OpenTelemetry's form; printed: ``id='1' source='user' content='Hi'``."""
    match = _CONTENT.search(message) if isinstance(message, str) else None
    said = printed_value(match["content"], otherwise=None) if match is not None else None
    return {"role": "user", "content": said if isinstance(said, str) else HIDDEN_VALUE}


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Return the messages in these spans as separate nodes in time order."""
    seen: dict[str, Node] = {}
    asking = set(_asking(nodes))
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
            # A message is in the span of every agent that receives it, and again in the answer of
            # each of these agents.
            if id_ is not None and id_ not in seen:
                seen[id_] = _node(message, id_, node.span)
    # If another instrumentation recorded an agent's requests, its messages repeat their answers.
    kept = (
        node
        for node in seen.values()
        if type(node.says) is not ModelSpan or node.says.agent not in asking
    )
    return sorted(kept, key=lambda node: node.started)


def _asking(nodes: list[Node]) -> Iterator[str]:
    """Yield the agents whose requests have spans; ``nodes`` are parents first."""
    agents: dict[int, str | None] = {}
    for node in nodes:
        says = node.says
        own = agents.get(id(node.parent)) if type(says) is not AgentSpan else says.name
        agents[id(node)] = own
        if type(says) is ModelSpan and says.spoken is not None and own is not None:
            yield own


def _works(node: Node) -> None:
    """Turn the span in which an agent is asked to speak into an agent span."""
    attributes = node.span.attributes
    if "recipient_agent_class" not in attributes and node.parent is not None:
        # Until 0.5.3, only names of spans show who is asked: the agent processes what was published
        # to its own topic. Its team publishes everything else to a topic of all agents.
        own = _PROCESS.fullmatch(node.span.name)
        if own is not None and node.parent.span.name == f"autogen publish {own[1]}_{own[2]}-T":
            node.says = as_agent(node.says, own[1])
            fail(node.says, node.span)
        return
    if attributes.get("recipient_agent_class") != _AGENT_CLASS:
        return
    type_, span = text(attributes.get("recipient_agent_type")), node.span.name
    # In names of spans the agent is `billing_<id of the team>`, followed by the same id as key:
    # `process billing_6d2f.(6d2f)-A`.
    key = span.partition(".(")[2].removesuffix(")-A") if span.endswith(")-A") else ""
    name = (type_ or "").removesuffix(f"_{key}" if key else "")
    if name not in ("", _STOPS) and attributes.get("message") == _ASKED:
        node.says = as_agent(node.says, name)
        fail(node.says, node.span)


def _hands_off(says: ToolSpan, attributes: Mapping[str, Any]) -> None:
    """Recognise a hand-off tool by AutoGen's description, because its name can be anything.

    The tool has no arguments: the content of the hand-off is its return value.
    """
    if says.mode is None and says.framework == _FRAMEWORK:
        said = text(first(attributes, "gen_ai.tool.description", "tool_description"))
        match = _HANDOFF_TOOL.fullmatch(said) if said is not None else None
        if match is not None:
            says.mode, says.target = "transfer", match.group(1)
            says.arguments = says.arguments or None


def _messages(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    response = first(value, "response", "agent_response")
    messages: list[Any] = [value.get("message")]
    if isinstance(value.get("messages"), list):
        messages += value["messages"]
    if isinstance(response, dict):
        inner = response.get("inner_messages")
        messages += inner if isinstance(inner, list) else []
        messages.append(response.get("chat_message"))
    yield from (
        one for one in messages if isinstance(one, dict) and one.get("source") not in (None, _STOPS)
    )


def _node(message: Mapping[str, Any], id_: str, around: Span) -> Node:
    """Read one message according to its ``type``."""
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
        # AutoGen's default text, for an agent that says nothing, is not a prompt.
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
        # A message with token counts represents the request that it answers.
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


DIALECT = Dialect(
    name=_FRAMEWORK,
    rank=80,
    claims=claims,
    read=read,
    refine=refine,
    resolve=resolve,
    scopes=("autogen-core",),
    # It writes an `invoke_agent` span for each message that an agent answers.
    framework=Framework(has_rounds=True),
)
