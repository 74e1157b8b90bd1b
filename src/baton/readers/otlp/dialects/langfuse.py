"""Langfuse: observations of its SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.model import Usage
from baton.readers.otlp.readings import AgentSpan, ModelSpan, PlainSpan, Reading, ToolSpan
from baton.readers.otlp.span import Span
from baton.readers.otlp.values import amount, content, first, parsed, shown, text, usage, whole

from .base import Dialect, with_attribute
from .genai import fail
from .handover import hand_over

_PREFIX = "langfuse.observation."
KIND = _PREFIX + "type"


def read(span: Span) -> Reading:
    """Read one observation."""
    attributes = span.attributes
    kind = str(attributes[KIND]).lower()
    given, made = attributes.get(_PREFIX + "input"), attributes.get(_PREFIX + "output")
    says: Reading
    if kind == "agent":
        heard = _arguments(given, only=True)
        says = AgentSpan(name=span.name, heard=heard, spoken=made, output=content(made))
    elif kind == "generation":
        model = text(first(attributes, _PREFIX + "model.name", "gen_ai.request.model"))
        says = ModelSpan(model=model, heard=given, spoken=made, usage=_usage(attributes))
    elif kind == "tool":
        arguments = _arguments(given, only=False)
        says = ToolSpan(name=span.name, arguments=arguments, result=content(made))
        hand_over(says, None, attributes)
    else:
        says = PlainSpan(name=span.name, heard=_arguments(given, only=True))
    says.framework = "langfuse"
    fail(says, span)
    # The program can set a level even if no exception was raised and the status is OK.
    if attributes.get(_PREFIX + "level") == "ERROR":
        says.failed = True
        says.error = says.error or text(attributes.get(_PREFIX + "status_message"))
    return says


def _arguments(raw: Any, *, only: bool) -> Any:
    """Unwrap what the decorator records about a function: its positional and named arguments.

    ``only``: a single argument is returned by itself.
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
    details, cost = (
        parsed(attributes.get(_PREFIX + name)) for name in ("usage_details", "cost_details")
    )
    figures = details if isinstance(details, dict) else {}
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
    name="langfuse",
    rank=60,
    claims=with_attribute(KIND),
    read=read,
    sessions=("langfuse.session.id",),
)
