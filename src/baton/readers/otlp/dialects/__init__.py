"""The conventions that instrumentations write spans in, chosen span by span.

Each is a file of this folder that ends with ``DIALECT``; files that end with ``FRAMEWORK`` read
what a framework adds to a convention. ``base`` says what both hold.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from baton.readers.otlp.readings import Node, PlainSpan, Reading
from baton.readers.otlp.span import Event, Span

from .base import Dialect, Framework

__all__ = ["DIALECTS", "Dialect", "Framework", "goes_on", "read_span", "resolve"]

_MODULES = [import_module(module.name) for module in iter_modules(__path__, f"{__name__}.")]
DIALECTS: tuple[Dialect, ...] = tuple(
    sorted(
        (m.DIALECT for m in _MODULES if isinstance(getattr(m, "DIALECT", None), Dialect)),
        key=lambda dialect: dialect.rank,
    )
)
"""All conventions, in the order in which they are asked."""
FRAMEWORKS: dict[str | None, Framework] = {
    m.FRAMEWORK.name: m.FRAMEWORK
    for m in _MODULES
    if isinstance(getattr(m, "FRAMEWORK", None), Framework)
}


def goes_on(before: list[Span], spans: list[Span]) -> bool:
    """Tell spans that belong to the turn before, though nothing links them with it."""
    return any(d.goes_on is not None and d.goes_on(before, spans) for d in DIALECTS)


def read_span(span: Span, names: set[str | None]) -> Reading:
    """Read a span by the first convention that knows it; a span of none is a plain one.

    The names of the dialect and the framework are added to ``names``.
    """
    for dialect in DIALECTS:
        if dialect.claims(span):
            says = dialect.read(span)
            framework = FRAMEWORKS.get(says.framework)
            if framework is not None and framework.refine is not None:
                says = framework.refine(says, span)
            names.add(dialect.name)
            names.add(says.framework)
            return says
    return PlainSpan()


def resolve(nodes: list[Node], names: set[str | None], logs: list[Event]) -> list[Node]:
    """Settle what one span alone does not tell; ``nodes`` are a tree, parents first.

    Frameworks come before conventions: these are told by several of them. ``names`` are those of
    the dialects and frameworks that have a span here; ``logs`` are records that belong to none.

    Returns nodes that stand in no tree: messages that spans of others carry.
    """
    for framework in FRAMEWORKS.values():
        if framework.resolve is not None and framework.name in names:
            framework.resolve(nodes)
    alone: list[Node] = []
    for dialect in DIALECTS:
        if dialect.resolve is not None and dialect.name in names:
            alone += dialect.resolve(nodes, logs)
    return alone
