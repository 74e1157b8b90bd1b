"""The conventions that instrumentations write spans in, chosen span by span.

Each is a file of this folder that ends with ``DIALECT``; ``base`` says what that holds. The other
files read what frameworks add to a convention.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from baton.readers.otlp.dialects import crewai, langchain, llama_index
from baton.readers.otlp.node import Node
from baton.readers.otlp.span import Event, Span

from .base import Dialect

__all__ = ["DIALECTS", "Dialect", "goes_on", "read_node", "resolve"]


def _found() -> Iterator[Dialect]:
    for module in iter_modules(__path__, f"{__name__}."):
        dialect = getattr(import_module(module.name), "DIALECT", None)
        if isinstance(dialect, Dialect):
            yield dialect


DIALECTS: tuple[Dialect, ...] = tuple(sorted(_found(), key=lambda dialect: dialect.rank))
"""All conventions, in the order in which they are asked."""


def goes_on(before: list[Span], spans: list[Span]) -> bool:
    """Tell spans that belong to the turn before, though nothing links them with it."""
    return any(d.goes_on is not None and d.goes_on(before, spans) for d in DIALECTS)


def read_node(span: Span) -> Node | None:
    """Read a span by the first convention that knows it; ``None`` when none does."""
    for dialect in DIALECTS:
        if dialect.claims(span):
            return dialect.read(span)
    return None


def resolve(nodes: list[Node], logs: list[Event]) -> list[Node]:
    """Settle what one span alone does not tell; ``nodes`` are a tree, parents first.

    Frameworks come before conventions: these are told by several of them. ``logs`` are records
    that belong to no span.

    Returns nodes that stand in no tree: messages that spans of others carry.
    """
    crewai.resolve(nodes)
    langchain.resolve(nodes)
    llama_index.resolve(nodes)
    alone: list[Node] = []
    for dialect in DIALECTS:
        if dialect.resolve is not None:
            alone += dialect.resolve(nodes, logs)
    return alone
