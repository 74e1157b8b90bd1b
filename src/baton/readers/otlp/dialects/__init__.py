"""The conventions that instrumentations write spans in, chosen span by span.

Each is a file of this folder that ends with ``DIALECT``, and so is what a framework adds to a
convention. ``base`` says what a dialect holds.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from baton.readers.otlp.readings import (
    AgentSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    complete,
)
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.values import MOST_NAMES, usage_of

from .base import Dialect

__all__ = ["DIALECTS", "Dialect", "goes_on", "read_span", "resolve"]

_MODULES = [import_module(module.name) for module in iter_modules(__path__, f"{__name__}.")]
DIALECTS: tuple[Dialect, ...] = tuple(
    sorted(
        (m.DIALECT for m in _MODULES if isinstance(getattr(m, "DIALECT", None), Dialect)),
        key=lambda dialect: dialect.rank,
    )
)
"""All dialects, in the order in which they are asked."""
_CONVENTIONS = [
    (dialect, dialect.claims, dialect.read)
    for dialect in DIALECTS
    if dialect.claims is not None and dialect.read is not None
]
_CLAIMED: dict[tuple[str, ...], int] = {}
"""The place of the convention that claims spans of a shape: scope, name, names of attributes."""
_MOST_SHAPES = 4096
"""Shapes that are remembered: the files of others are not to fill memory."""
_NONE = -1
_BESIDE = [
    (number, dialect.beside, dialect.read)
    for number, dialect in enumerate(d for d in DIALECTS if d.claims and d.read)
    if dialect.beside is not None and dialect.read is not None
]
_REFINE = {dialect.name: dialect.refine for dialect in DIALECTS if dialect.refine is not None}


def goes_on(before: list[Span], spans: list[Span]) -> bool:
    """Tell spans that belong to the turn before, though nothing links them with it."""
    return any(d.goes_on is not None and d.goes_on(before, spans) for d in DIALECTS)


def read_span(span: Span, names: set[str]) -> Reading:
    """Read a span by the first convention that knows it; a span of none is a plain one.

    The names of the dialect and the framework are added to ``names``.
    """
    shape = (span.scope, span.name, *span.attributes)
    number = _CLAIMED.get(shape)
    if number is None:
        claiming = (n for n, (_, claims, _) in enumerate(_CONVENTIONS) if claims(span))
        number = next(claiming, _NONE)
        if len(_CLAIMED) >= _MOST_SHAPES:
            _CLAIMED.clear()
        if len(shape) <= MOST_NAMES:
            _CLAIMED[shape] = number
    if number == _NONE:
        return PlainSpan()
    dialect, _, read = _CONVENTIONS[number]
    says = read(span)
    if type(says) is ModelSpan:
        if says.usage is None:
            says.usage = usage_of(span.attributes, *dialect.tokens)
    elif type(says) is AgentSpan and says.totals is None:
        says.totals = usage_of(span.attributes, *dialect.tokens)
    for other, beside, read_beside in _BESIDE:
        if other != number and beside(span):
            complete(says, read_beside(span))
    names.add(dialect.name)
    if says.framework is not None:
        names.add(says.framework)
        refine = _REFINE.get(says.framework)
        if refine is not None:
            says = refine(says, span)
    return says


def resolve(nodes: list[Node], names: set[str], logs: list[Event]) -> list[Node]:
    """Settle what one span alone does not tell; ``nodes`` are a tree, parents first.

    ``names`` are those of the dialects and frameworks that have a span here; ``logs`` are records
    that belong to none.

    Returns nodes that stand in no tree: messages that spans of others carry.
    """
    alone: list[Node] = []
    for dialect in DIALECTS:
        if dialect.resolve is not None and dialect.name in names:
            alone += dialect.resolve(nodes, logs)
    return alone
