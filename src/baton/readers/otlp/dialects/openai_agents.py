"""OpenAI's Agents SDK: errors that its spans record below the agent, and refused calls."""

from __future__ import annotations

from baton.readers.otlp.span import ERROR, error_text
from baton.readers.otlp.span_content import Node, PlainSpan

from .base import Dialect, Framework


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
    scopes=("opentelemetry.instrumentation.openai_agents",),
    refusals=("Tool execution was not approved.",),
    framework=Framework(broke_off=broke_off),
)
