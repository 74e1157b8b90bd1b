"""OpenTelemetry's instrumentation of LangChain, which follows the GenAI convention.

It writes spans for agents, models, tools and workflows, and none for the steps of a graph.
"""

from __future__ import annotations

from baton.readers.otlp.readings import ModelSpan, Node, Reading, ToolSpan, WorkflowSpan, as_agent
from baton.readers.otlp.span import Event, Span

from . import genai, langchain
from .base import Dialect

_SCOPE = "opentelemetry.instrumentation.genai.langchain"


def claims(span: Span) -> bool:
    """Return whether the instrumentation wrote a span."""
    return span.scope == _SCOPE


def read(span: Span) -> Reading:
    """Read one span."""
    return langchain.refine_stated(genai.read(span), span)


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Mark workflows that ask a model and run the called tools themselves as agents.

    A graph is a workflow for the instrumentation unless ``create_agent`` made it last: the agents
    of deepagents, for example, are wrapped once more.
    """
    for node in nodes:
        if type(node.says) is WorkflowSpan and node.span.scope == _SCOPE:
            does = {type(child.says) for child in node.children}
            if ModelSpan in does and ToolSpan in does:
                node.says = as_agent(node.says, node.says.name)
    return []


DIALECT = Dialect(
    name="genai-langchain",
    rank=88,
    claims=claims,
    read=read,
    resolve=resolve,
    tokens=genai.TOKENS,
    costs=genai.COSTS,
)
