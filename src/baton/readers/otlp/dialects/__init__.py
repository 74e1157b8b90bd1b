"""The conventions that instrumentations write spans in, chosen span by span."""

from __future__ import annotations

from baton.readers.otlp.node import Node
from baton.readers.otlp.span import Span

from . import autogen, claude_code, genai, langfuse, langgraph, openinference, traceai, traceloop

_DIALECTS = (claude_code, traceai, openinference, traceloop, langfuse, autogen, genai)


def read_node(span: Span) -> Node | None:
    """Read a span by the first convention that knows it; ``None`` when none does."""
    for dialect in _DIALECTS:
        if dialect.claims(span):
            return dialect.read(span)
    return None


def resolve(nodes: list[Node]) -> list[Node]:
    """Settle what one span alone does not tell; ``nodes`` are a tree, parents first.

    Returns nodes that stand in no tree: messages that spans of others carry.
    """
    langgraph.resolve(nodes)
    genai.resolve(nodes)
    return autogen.resolve(nodes)
