"""The conventions that instrumentations write spans in, chosen span by span."""

from __future__ import annotations

from typing import Protocol

from baton.readers.otlp.node import Node
from baton.readers.otlp.span import Event, Span

from . import (
    autogen,
    claude_code,
    crewai,
    genai,
    langfuse,
    langgraph,
    llama_index,
    openinference,
    traceai,
    traceloop,
)


class Dialect(Protocol):
    """A convention: which spans follow it, and what one of them says."""

    def claims(self, span: Span) -> bool:
        """Tell whether a span follows this convention."""

    def read(self, span: Span) -> Node:
        """Read a span that does."""


_DIALECTS: tuple[Dialect, ...] = (
    claude_code, traceai, openinference, traceloop, langfuse, autogen, genai,
)  # fmt: skip


def goes_on(before: list[Span], spans: list[Span]) -> bool:
    """Tell spans that belong to the turn before, though nothing links them with it."""
    return claude_code.goes_on(spans) or traceai.goes_on(before, spans)


def read_node(span: Span) -> Node | None:
    """Read a span by the first convention that knows it; ``None`` when none does."""
    for dialect in _DIALECTS:
        if dialect.claims(span):
            return dialect.read(span)
    return None


def resolve(nodes: list[Node], logs: list[Event]) -> list[Node]:
    """Settle what one span alone does not tell; ``nodes`` are a tree, parents first.

    ``logs`` are records that belong to no span.

    Returns nodes that stand in no tree: messages that spans of others carry.
    """
    crewai.resolve(nodes)
    langgraph.resolve(nodes)
    llama_index.resolve(nodes)
    genai.resolve(nodes)
    claude_code.resolve(nodes, logs)
    traceai.resolve(nodes)
    return autogen.resolve(nodes)
