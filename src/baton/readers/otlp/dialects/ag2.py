"""AG2: chats in which one agent writes a call and another one executes it.

Its own instrumentation follows OpenTelemetry's convention, and the one of OpenInference its own.
Both have a span for each chat, and one for each reply of an agent in it. A reply can also be that
of a person's stand-in or of ``_Group_Tool_Executor``, which only executes the calls of others.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from math import inf
from typing import Any

from baton.readers.otlp.attribute_values import content, parsed, text
from baton.readers.otlp.messages import Message
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    as_plain,
)

from .dialect import Dialect

_NAME = "ag2"
# Spans around replies. They repeat the first message of a chat, and all of its answers.
_CHATS = frozenset({"conversation", "initiate_chats", "speaker_selection"})
_OPENINFERENCE = "openinference.instrumentation.ag2"
_INITIATE = re.compile(r"\.(?:a_)?initiate_chats?$")
# OpenInference's reason of a model to stop, today's and OpenAI's older one.
_CALLING = ("tool_calls", "function_call")
# `ag2.exceptions.ToolNotFoundError: Tool `task_nobody` not found`.
_UNFOUND = "ag2.exceptions.ToolNotFoundError: "
# Tools that AG2 makes for the hand-offs of an agent end with their number:
# `transfer_to_dentist_1`. An agent called `dentist_1` has the tool `transfer_to_dentist_1_1`.
_NUMBER = re.compile(r"(?<=.)_\d+$")


def _unfound(message: Message) -> Message:
    """Let the calls of tools fail that the agent does not have: they have no span."""
    for answer in message.answers:
        said = answer.result.text if answer.result is not None else None
        answer.failed = answer.failed or (said or "").startswith(_UNFOUND)
    return message


def refine(says: Reading, span: Span) -> Reading:
    """Read chats as frames around replies, and calls as AG2 gives them to OpenInference."""
    attributes = span.attributes
    if type(says) is PlainSpan and attributes.get("gen_ai.operation.name") in _CHATS:
        says.lost, says.heard = None, attributes.get("gen_ai.input.messages")
    elif type(says) is ToolSpan and "ag2.span.type" in attributes:
        # A call that failed only has this attribute: no status, and no result. What the agent was
        # told is in its next request.
        if "error.type" in attributes and not says.failed:
            says.failed, says.result = True, None
    elif type(says) is ModelSpan and "ag2.span.type" in attributes:
        asked = ModelSpan(heard=says.heard)
        says.heard = lambda: [_unfound(message) for message in asked.heard_messages()]
    elif span.scope != _OPENINFERENCE:
        return says
    elif type(says) is AgentSpan and _INITIATE.search(span.name):
        chat = as_plain(says)
        given = parsed(attributes.get("input.value"))
        if isinstance(given, Mapping) and "message" in given:
            first = given["message"]
            said = first.get("content") if isinstance(first, Mapping) else first
            chat.heard = [{"role": "user", "content": said}] if isinstance(said, str) else None
        return chat
    elif type(says) is ToolSpan:
        _executed(says, attributes)
    return says


def _is_chat(span: Span) -> bool:
    if span.scope == _OPENINFERENCE:
        return _INITIATE.search(span.name) is not None
    return span.attributes.get("ag2.span.type") == "conversation"


def _executed(says: ToolSpan, attributes: Mapping[str, Any]) -> None:
    """Read a call from ``{"name": ..., "arguments": ...}`` and ``[succeeded, message]``."""
    given = parsed(attributes.get("tool_call.function.arguments"))
    if isinstance(given, Mapping):
        says.arguments = given
    made = parsed(attributes.get("output.value"))
    if not isinstance(made, list) or len(made) != 2 or not isinstance(made[1], Mapping):
        return
    answer = content(made[1].get("content"))
    if made[0] is False:
        # The status of the span only says "tool execution failed".
        says.failed, says.result = True, None
        says.error = answer.text if answer is not None and answer.text else says.error
    else:
        says.result = answer


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Give calls to the agents that wrote them, and drop replies without any work."""
    replies = _Replies(nodes)
    for node in nodes:
        if type(node.says) is not AgentSpan or node.says.framework != _NAME:
            continue
        tools = [child for child in node.children if type(child.says) is ToolSpan]
        if len(tools) < len(node.children):
            continue
        if not tools:
            silent = node.says.output is None and not node.says.spoken and not node.says.failed
            if silent and replies.in_chat(node):
                node.says = as_plain(node.says)
            continue
        callers = [replies.caller(node, tool) for tool in tools]
        if None in callers:
            continue
        for tool, caller in zip(tools, callers, strict=True):
            if caller is not None:
                _say_error(tool, node.says, alone=len(tools) == 1)
                _move(tool, caller)
        node.children, node.says = [], as_plain(node.says)
    return []


class _Replies:
    """Finds the reply that wrote a call: by its id, else the one before if it ends with calls."""

    def __init__(self, nodes: list[Node]) -> None:
        self._by_call: dict[str, Node] = {}
        self._beside: dict[int, list[tuple[float, int, Node]]] = {}
        self._in_chat: set[int] = set()
        self._calling: dict[int, bool] = {}  # each reply is searched once, however many follow it
        owners: dict[int, Node | None] = {}  # the agent at or above each node; parents come first
        for number, node in enumerate(nodes):
            says, owner = node.says, owners.get(id(node.parent))
            if id(node.parent) in self._in_chat or _is_chat(node.span):
                self._in_chat.add(id(node))
            if type(says) is AgentSpan:
                owner = node if says.framework == _NAME else None
                if owner is not None:
                    self._beside.setdefault(id(node.parent), []).append((node.ended, number, node))
            owners[id(node)] = owner
            if owner is not None and isinstance(says, AgentSpan | ModelSpan):
                for message in says.spoken_messages():
                    for call in message.calls:
                        if call.id is not None:
                            self._by_call.setdefault(call.id, owner)
        for beside in self._beside.values():
            beside.sort(key=lambda entry: entry[:2])

    def in_chat(self, node: Node) -> bool:
        """Return whether a reply is one in a chat, and so has an answer unless it was silent.

        Agents of AG2 1.0 work outside of chats, and their spans never have an answer.
        """
        return id(node) in self._in_chat

    def caller(self, executor: Node, tool: Node) -> Node | None:
        """Return the reply whose call another reply executed."""
        id_ = tool.says.call if isinstance(tool.says, ToolSpan) else None
        reply = self._by_call.get(id_) if id_ is not None else None
        if reply is None:
            beside = self._beside.get(id(executor.parent), [])
            place = bisect_right(beside, (executor.started, inf))
            last = beside[place - 1][2] if place else None
            if last is not None and id(last) not in self._calling:
                self._calling[id(last)] = _ends_with_calls(last)
            reply = last if last is not None and self._calling[id(last)] else None
        return reply if reply is not executor else None


def _ends_with_calls(reply: Node) -> bool:
    """Return whether the model of a reply stopped to call tools, also where content is hidden."""
    models = [child for child in reply.children if type(child.says) is ModelSpan]
    says = models[-1].says if models else None
    if type(says) is ModelSpan and models[-1].span.attributes.get("llm.finish_reason") in _CALLING:
        says.calls = True
    return type(says) is ModelSpan and says.calls


def _say_error(tool: Node, executor: AgentSpan, *, alone: bool) -> None:
    """Set the error of a failed call to what the executor replied with, if it has no other."""
    says = tool.says
    if type(says) is not ToolSpan or not says.failed or says.error is not None:
        return
    # The reply joins the results of all calls: "Error: vault is jammed\n\n90".
    said = executor.spoken_messages()[-1:] if alone else []
    message = said[0].content if said else None
    message = said[0].answers[0].result if said and said[0].answers else message
    says.error = (
        message.plain() if message is not None else text(tool.span.attributes.get("error.type"))
    )


def _move(tool: Node, caller: Node) -> None:
    """Put a call below the reply that wrote it, which lasts until the call has ended."""
    says, agent = tool.says, caller.says
    if type(says) is not ToolSpan or type(agent) is not AgentSpan:
        return
    says.agent = agent.name
    if says.mode == "transfer" and says.target is not None and not says.sure:
        says.target = _target(says)
    tool.parent = caller
    caller.children.append(tool)
    caller.ended = max(caller.ended, tool.ended)


def _target(says: ToolSpan) -> str | None:
    """Return the agent that a tool for a hand-off names, in its result or its own name."""
    made = parsed(says.result.text) if says.result is not None else None
    made = says.result.data if says.result is not None and says.result.data is not None else made
    named = text(made.get("agent_name")) if isinstance(made, Mapping) else None
    return named or _NUMBER.sub("", says.target or "")


DIALECT = Dialect(
    name=_NAME,
    refine=refine,
    resolve=resolve,
    scopes=("opentelemetry.instrumentation.ag2",),
)
