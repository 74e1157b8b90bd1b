"""OpenAI's Agents SDK: errors that its spans record below the agent, and refused calls."""

from __future__ import annotations

from baton.readers.otlp.span import ERROR, Span, error_text
from baton.readers.otlp.span_content import AgentSpan, Node, PlainSpan, Reading

from .dialect import Dialect, Framework

# The names of agents, in OpenInference's spans and in OpenTelemetry's.
_NAMES = frozenset({"agent.name", "gen_ai.agent.name", "graph.node.id", "graph.node.name"})


def refine(says: Reading, span: Span) -> Reading:
    """Drop the counts of a span around all agents: traceAI repeats those of the last answer."""
    if type(says) is AgentSpan and says.name == span.name and _NAMES.isdisjoint(span.attributes):
        says.totals = None
    return says


def broke_off(node: Node) -> str | None:
    """Return the error of the agent's last turn.

    The SDK records an error at the agent's turn in which it was raised ("Tool not found"). Newer
    versions have a separate span for each turn, while the agent's own span and its parents are OK.
    """
    last = max(node.children, key=lambda child: child.started, default=None)
    if last is None or type(last.says) is not PlainSpan or last.span.status != ERROR:
        return None
    return error_text(last.span) or "the last turn of the agent failed"


DIALECT = Dialect(
    name="openai-agents",
    refine=refine,
    scopes=("opentelemetry.instrumentation.openai_agents",),
    refusals=("Tool execution was not approved.",),
    framework=Framework(broke_off=broke_off, ends_with_tool=True),
)
