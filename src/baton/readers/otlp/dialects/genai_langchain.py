"""OpenTelemetry's instrumentation of LangChain, which follows the GenAI convention.

It writes spans for agents, models, tools and workflows, and none for the steps of a graph.
"""

from __future__ import annotations

from itertools import pairwise

from baton.readers.otlp.messages import last_of
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    ModelSpan,
    Node,
    Reading,
    ToolSpan,
    WorkflowSpan,
    agent_between,
    as_agent,
    insert_agents,
    instructions_text,
)

from . import genai, langchain
from .dialect import Dialect

_SCOPE = "opentelemetry.instrumentation.genai.langchain"
_RESULT = "gen_ai.tool.call.result"


def claims(span: Span) -> bool:
    """Return whether the instrumentation wrote a span."""
    return span.scope == _SCOPE


def read(span: Span) -> Reading:
    """Read one span."""
    return langchain.refine_stated(genai.read(span), span)


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Find the agents that have no span: only those of ``create_agent`` have one.

    A workflow that asks a model and runs the called tools itself is an agent, like the agents of
    deepagents, which are wrapped once more. A tool that does so runs an agent. If a call in it
    hands over to another node, it is a graph of several agents.
    """
    for node in nodes:
        if type(node.says) not in (WorkflowSpan, ToolSpan) or node.span.scope != _SCOPE:
            continue
        does = {type(child.says) for child in node.children}
        if ModelSpan not in does or ToolSpan not in does or _split(node):
            continue
        if type(node.says) is WorkflowSpan:
            node.says = as_agent(node.says, node.says.name)
    return []


def _split(around: Node) -> bool:
    """Put what the agents of a graph did below a node for each; false if none hands over.

    `fixer` asks the first request after a call that goes to it (`Command(goto="fixer")`). An agent
    ends with an answer that calls nothing. Who asks after that, or first of all, is known only if
    the instructions are those of an agent whose name is known. Nothing tells which of several
    agents at work at the same time makes a request, so these are not split.
    """
    done = [child for child in around.children if type(child.says) in (ModelSpan, ToolSpan)]
    asked = [child for child in done if type(child.says) is ModelSpan]
    if not any(_hands_over(child) for child in done):
        return False
    if any(then.started < first.ended for first, then in pairwise(asked)):
        return False
    parts: list[tuple[str | None, list[Node]]] = []
    target: str | None = None
    ended = True
    for child in around.children:
        says = child.says
        if type(says) is AgentSpan:
            target, ended = None, True
        elif type(says) not in (ModelSpan, ToolSpan):
            continue
        elif type(says) is ModelSpan:
            if target is not None or ended:
                parts.append((target, []))
            target, ended = None, not says.calls and not _calls(says)
        if type(says) is not AgentSpan and parts:
            parts[-1][1].append(child)
            target = _hands_over(child) or target
    named: dict[str, set[str]] = {}
    for name, part in parts:
        instructions = _instructions(part)
        if name is not None and instructions is not None:
            named.setdefault(instructions, set()).add(name)
    agents = []
    for name, part in parts:
        alike = named.get(_instructions(part) or "", set())
        own = name or (next(iter(alike)) if len(alike) == 1 else None)
        agents.append(agent_between(around, AgentSpan(name=own, framework="langgraph"), part))
    insert_agents(around, agents)
    return True


def _hands_over(node: Node) -> str | None:
    """Return the node that a call goes to; without the result, the tool's name has to tell."""
    says = node.says
    if type(says) is not ToolSpan or says.mode != "transfer" or says.failed:
        return None
    result = node.span.attributes.get(_RESULT)
    return says.target if result is None else langchain.goes_to(result)


def _calls(says: ModelSpan) -> bool:
    return any(message.calls for message in says.spoken_messages())


def _instructions(part: list[Node]) -> str | None:
    """Return the instructions of the agent that did this; ``None`` if there are none."""
    says = next(node.says for node in part if type(node.says) is ModelSpan)
    system = last_of(says.heard_messages(), "system")
    return instructions_text(says) or (system.plain() if system is not None else None)


DIALECT = Dialect(
    name="genai-langchain",
    rank=88,
    claims=claims,
    read=read,
    resolve=resolve,
    tokens=genai.TOKENS,
    costs=genai.COSTS,
)
