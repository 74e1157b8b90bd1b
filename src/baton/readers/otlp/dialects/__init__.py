"""The conventions that instrumentations use for spans, chosen for each span.

Each convention is a file in this folder that ends with ``DIALECT``. So is each framework's addition
to a convention. ``base`` describes what a dialect contains.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

import msgspec

from baton.readers.otlp.attribute_values import MOST_NAMES, amount, counts_in, usage_by
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    complete,
)

from .dialect import Dialect, Framework

__all__ = ["DIALECTS", "Dialect", "framework_of", "goes_on", "read_span", "resolve"]

_MODULES = [import_module(module.name) for module in iter_modules(__path__, f"{__name__}.")]
DIALECTS: tuple[Dialect, ...] = tuple(
    sorted(
        (m.DIALECT for m in _MODULES if isinstance(getattr(m, "DIALECT", None), Dialect)),
        key=lambda dialect: dialect.rank,
    )
)
"""All dialects, in the order in which they are tried."""


class _Plan(msgspec.Struct, frozen=True):
    """How to read spans of one shape: the convention, and the attributes that count tokens.

    ``framework`` is the one that the scope names. ``beside`` are readers of other conventions whose
    attributes these spans also have.
    """

    name: str
    read: Callable[[Span], Reading]
    framework: str | None = None
    counts: list[tuple[str, str]] | None = None
    cost: str | None = None
    beside: tuple[Callable[[Span], Reading], ...] = ()


_PLANS: dict[tuple[str, ...], _Plan | None] = {}
"""The plan of each shape: scope, name, names of attributes. Spans of a program have few shapes."""
_MOST_SHAPES = 4096
"""The number of cached shapes, so that no file can fill the memory."""
_NEW = _Plan("", lambda _: PlainSpan())
_REFINE = {dialect.name: dialect.refine for dialect in DIALECTS if dialect.refine is not None}
_SCOPES = {scope: dialect.name for dialect in DIALECTS for scope in dialect.scopes}
_FRAMEWORKS = {d.name: d.framework for d in DIALECTS if d.framework is not None}
_ANY = Framework()


def framework_of(name: str | None) -> Framework:
    """Return what is special about the framework that a reading or a source names."""
    return _FRAMEWORKS.get(name or "", _ANY)


def goes_on(before: list[Span], spans: list[Span]) -> bool:
    """Return whether spans belong to the previous turn, although nothing links them with it."""
    return any(d.goes_on is not None and d.goes_on(before, spans) for d in DIALECTS)


def read_span(span: Span, names: set[str]) -> Reading:
    """Read a span by the first convention that claims it; without one, it is a plain span.

    The names of the dialect and the framework are added to ``names``.
    """
    attributes = span.attributes
    shape = (span.scope, span.name, *attributes)
    plan = _PLANS.get(shape, _NEW)
    if plan is _NEW:
        plan = _plan(span)
        if len(_PLANS) >= _MOST_SHAPES:
            _PLANS.clear()
        if len(shape) <= MOST_NAMES:
            _PLANS[shape] = plan
    if plan is None:
        return PlainSpan(is_own=True)
    says = plan.read(span)
    if type(says) is ModelSpan:
        if says.usage is None:
            says.usage = usage_by(attributes, plan.counts)
            cost = amount(attributes[plan.cost]) if plan.cost is not None else None
            if says.usage is not None and cost is not None:
                says.usage.cost_usd, says.usage.cost_from = cost, "source"
    elif type(says) is AgentSpan and says.totals is None:
        says.totals = usage_by(attributes, plan.counts)
    for read_beside in plan.beside:
        complete(says, read_beside(span))
    names.add(plan.name)
    if says.framework is None:
        says.framework = plan.framework
    if says.framework is not None:
        names.add(says.framework)
        refine = _REFINE.get(says.framework)
        if refine is not None:
            says = refine(says, span)
    if type(says) is ToolSpan and says.result is not None and _is_object(says.result.text):
        says.result, says.tells_result = None, False
    return says


# How Python prints an object that has no text of its own: its class and its address, alone or in a
# list: `[<agent_framework._types.Content object at 0x7f79215e7150>]`. What it holds is not told.
_OBJECT = re.compile(r"<[\w.<>]+ object at 0x[0-9a-fA-F]+>")


def _is_object(text: str | None) -> bool:
    """Return whether a text is only the printed form of Python objects, without their content."""
    if text is None or " object at 0x" not in text:
        return False
    return not _OBJECT.sub("", text).strip("[](), ")


def _plan(span: Span) -> _Plan | None:
    framework = _SCOPES.get(span.scope)
    for dialect in DIALECTS:
        if dialect.claims is None or dialect.read is None:
            continue
        if dialect.claims(span) or (framework is not None and dialect is DIALECTS[-1]):
            counts = counts_in(span.attributes, dialect.tokens)
            cost = next((name for name in dialect.costs if name in span.attributes), None)
            beside = tuple(
                other.read
                for other in DIALECTS
                if other is not dialect and other.beside and other.read and other.beside(span)
            )
            return _Plan(dialect.name, dialect.read, framework, counts, cost, beside)
    return None


def resolve(nodes: list[Node], names: set[str], logs: list[Event]) -> list[Node]:
    """Resolve what a single span does not show; ``nodes`` are a tree, parents first.

    ``names`` are the dialects and frameworks that have a span here; ``logs`` are records that
    belong to no span.

    Returns nodes outside the tree: messages that are stored in other spans.
    """
    alone: list[Node] = []
    for dialect in DIALECTS:
        if dialect.resolve is not None and dialect.name in names:
            alone += dialect.resolve(nodes, logs)
    return alone
