"""Langfuse: observations of its SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.model import Usage
from baton.readers.otlp.node import Node
from baton.readers.otlp.span import Span
from baton.readers.otlp.tokens import usage
from baton.readers.otlp.values import amount, content, first, parsed, shown, text, whole

from .base import Dialect
from .genai import fail
from .handover import hand_over

_PREFIX = "langfuse.observation."
KIND = _PREFIX + "type"


def claims(span: Span) -> bool:
    """Tell an observation."""
    return KIND in span.attributes


def read(span: Span) -> Node:
    """Read one observation."""
    attributes = span.attributes
    kind = str(attributes[KIND]).lower()
    given, made = attributes.get(_PREFIX + "input"), attributes.get(_PREFIX + "output")
    node = Node(span=span, kind="none", name=span.name, framework="langfuse")
    if kind == "agent":
        node.kind = "agent"
        node.heard, node.spoken = _arguments(given, only=True), made
        node.output = content(made)
    elif kind == "generation":
        node.kind, node.name = "model", None
        node.model = text(first(attributes, _PREFIX + "model.name", "gen_ai.request.model"))
        node.heard, node.spoken = given, made
        node.usage = _usage(attributes)
    elif kind == "tool":
        node.kind = "tool"
        node.arguments = _arguments(given, only=False)
        node.result = content(made)
    else:
        node.heard = _arguments(given, only=True)
    fail(node)
    if attributes.get(_PREFIX + "level") == "ERROR":
        node.failed = True
        node.error = node.error or text(attributes.get(_PREFIX + "status_message"))
    if node.kind == "tool":
        hand_over(node, None, attributes)
    return node


def _arguments(raw: Any, *, only: bool) -> Any:
    """Unwrap what the decorator records of a function: its positional and named arguments.

    ``only``: a single one stands for itself.
    """
    value = shown(raw)
    if not isinstance(value, dict) or set(value) != {"args", "kwargs"}:
        return value
    places, names = value["args"] or [], value["kwargs"] or {}
    if not isinstance(places, list) or not isinstance(names, dict):
        return value
    if only and len(places) + len(names) == 1:
        return places[0] if places else next(iter(names.values()))
    if not places:
        return names
    return {**{str(at): one for at, one in enumerate(places)}, **names} if names else places


def _usage(attributes: Mapping[str, Any]) -> Usage | None:
    told, cost = (
        parsed(attributes.get(_PREFIX + name)) for name in ("usage_details", "cost_details")
    )
    figures = told if isinstance(told, dict) else {}
    costs = cost if isinstance(cost, dict) else {}
    if not figures and not costs:
        return None
    return usage(
        input=whole(first(figures, "input", "prompt_tokens", "input_tokens")),
        output=whole(first(figures, "output", "completion_tokens", "output_tokens")),
        total=whole(first(figures, "total", "total_tokens")),
        read=whole(first(figures, "cache_read_input_tokens", "input_cached_tokens")),
        write=whole(figures.get("cache_creation_input_tokens")),
        cost=amount(costs.get("total")),
    )


DIALECT = Dialect(
    name="langfuse", rank=60, claims=claims, read=read, sessions=("langfuse.session.id",)
)
