"""Semantic Kernel's spans: OpenTelemetry's names, and what only its runtime knows.

What a model said and called is in log records (``gen_ai.choice``), never in the spans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from baton.model import Content
from baton.readers.otlp.attribute_values import content, parsed, text
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import AgentSpan, ModelSpan, Node, Reading, ToolSpan

from . import genai
from .dialect import Dialect, Framework

_SCOPE = "semantic_kernel."
_FRAMEWORK = "semantic-kernel"
OFFERED = "sk.available_functions"
"""The functions that a request may call, in the enclosing span: names separated by commas."""
CALL_ID = "gen_ai.tool.call.id"
# The parameters of a function that is an agent. The kernel fills in the second, and passes its
# value on to all functions below. If it is empty, no model wrote it.
_MESSAGES, _OVERRIDE = "messages", "instructions_override"
_NOT_GIVEN = (None, "None")
_CALLING = "tool_calls"


# Older versions tell an agent of an orchestration, in the role of the user, whose turn it is:
# "Transferred to refunds, adopt the persona immediately.", and "Transferred to rail" before what
# another agent said.
_TURN_COMES = re.compile(r"Transferred to \S+(?:, adopt the persona immediately\.)?\s*$")


def retold(said: str) -> list[str] | None:
    """Return an empty list for a message of an orchestration, which repeats no other."""
    return [] if _TURN_COMES.match(said) else None


def claims(span: Span) -> bool:
    """Return whether a span is from Semantic Kernel."""
    return span.scope.startswith(_SCOPE)


def read(span: Span) -> Reading:
    """Read one span by OpenTelemetry's names."""
    says = genai.read(span)
    says.framework = _FRAMEWORK
    if type(says) is AgentSpan:
        if says.heard == "[]":
            says.heard = None  # an agent that is asked with a plain text has no messages recorded
        says.input = _from_another(says)
    elif type(says) is ModelSpan:
        reason = str(span.attributes.get("gen_ai.response.finish_reason", ""))
        says.calls = says.calls or reason.lower().endswith(_CALLING)
    elif type(says) is ToolSpan and isinstance(says.arguments, dict):
        says.arguments = written(says.arguments)
    return says


def _from_another(says: AgentSpan) -> Content | None:
    """Return what an agent was asked if that is the answer of another agent.

    Agents of an orchestration get it as a message of an assistant, with its name:
    ``[{"role": "assistant", "content": "luna", "name": "linguist"}]``.
    """
    given = parsed(says.heard)
    last = given[-1] if isinstance(given, list) and given else None
    if not isinstance(last, Mapping) or last.get("role") != "assistant":
        return None
    author = text(last.get("name"))
    return content(last.get("content")) if author not in (None, says.name) else None


def _said_by_another(agent: AgentSpan, request: ModelSpan) -> Content | None:
    """Return the last message of a request if another agent said it."""
    heard = request.heard_messages()
    last = heard[-1] if heard else None
    if last is None or last.role != "assistant" or last.name in (None, agent.name):
        return None
    return last.content


def written(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that the model may have written."""
    return {
        name: value
        for name, value in arguments.items()
        if name != _OVERRIDE or value not in _NOT_GIVEN
    }


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Copy data from the enclosing span: the functions offered, and the input of an agent.

    In 1.35, the span of an agent has no messages. Then its first request tells its input.
    """
    asked: set[int] = set()
    for node in nodes:
        says, around = node.says, node.parent
        if around is None or not (claims(node.span) or OFFERED in around.span.attributes):
            continue
        if type(says) is ModelSpan and says.offered is None:
            names = around.span.attributes.get(OFFERED)
            if isinstance(names, str):
                says.offered = names.split(",") if names else []  # it writes "" if there are none
            _define(around.parent, says.offered or [])
            agent = around.parent.says if around.parent is not None else None
            if type(agent) is AgentSpan and id(agent) not in asked:
                asked.add(id(agent))
                if agent.heard is None and agent.input is None:
                    agent.input = _said_by_another(agent, says)
        elif type(says) is AgentSpan and says.heard is None and type(around.says) is ToolSpan:
            given = around.says.arguments
            says.input = content(given.get(_MESSAGES)) if isinstance(given, dict) else None
    return []


def _define(agent: Node | None, offered: list[str]) -> None:
    """Add what an orchestration lends an agent to its tools: `Handoff-complete_task`, for example.

    The span of the agent only lists its own plug-ins.
    """
    card = agent.says.card if agent is not None and type(agent.says) is AgentSpan else None
    if card is not None and isinstance(card.tools, list):
        card.tools = list(dict.fromkeys([*card.tools, *offered]))


DIALECT = Dialect(
    name="semantic-kernel",
    rank=85,
    claims=claims,
    read=read,
    resolve=resolve,
    tokens=genai.TOKENS,
    costs=genai.COSTS,
    framework=Framework(retold=retold, answers_together=True),
)
