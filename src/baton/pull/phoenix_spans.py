"""A span as Phoenix answers it, and as OTLP JSON.

Phoenix stores no resources, scopes, links and span kinds (it answers INTERNAL for all). It turns
four attributes that are JSON texts into many short ones; they are put together again. What it adds
to spans of the OpenTelemetry conventions is taken away again (``phoenix_derived``).
"""

from __future__ import annotations

import base64
import re
from typing import Any

import msgspec

from .phoenix_derived import derived
from .spans import Json, any_value, as_text, in_order, resource_spans, scope_spans

_FLAT = re.compile(
    r"(?:metadata|tool\.parameters|llm\.prompt_template\.variables|.*\.document\.metadata)(?=\.)"
)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")


class Value(msgspec.Struct):
    """An attribute's value: at most one field is set."""

    string_value: str | None = None
    bool_value: bool | None = None
    int_value: int | str | None = None
    double_value: float | str | None = None
    bytes_value: str | None = None
    array_value: Values | None = None


class Values(msgspec.Struct):
    """The values of a list."""

    values: list[Value] = []


class Attribute(msgspec.Struct):
    """An attribute."""

    key: str
    value: Value | None = None


class Event(msgspec.Struct):
    """A span event."""

    name: str | None = None
    time_unix_nano: int | None = None
    attributes: list[Attribute] | None = None


class Status(msgspec.Struct):
    """How a span ended: 0 (unset), 1 (ok) or 2 (error)."""

    code: int | None = None
    message: str | None = None


class Span(msgspec.Struct):
    """A span."""

    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    name: str | None = None
    start_time_unix_nano: int | None = None
    end_time_unix_nano: int | None = None
    attributes: list[Attribute] | None = None
    events: list[Event] | None = None
    status: Status | None = None


class SpanPage(msgspec.Struct):
    """An answer with spans."""

    data: list[Span]
    next_cursor: str | None = None


def trace_of(spans: list[Span], project: str) -> Json:
    """Write the spans of a trace as OTLP JSON."""
    resource = {"openinference.project.name": project}
    written = in_order([_span(span) for span in spans])
    return {"resourceSpans": [resource_spans([scope_spans("", written)], resource)]}


def _span(span: Span) -> Json:
    status = span.status or Status()
    ended = {"code": status.code or None, "message": status.message or None}
    written = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_span_id or None,
        "name": span.name,
        "startTimeUnixNano": _nanoseconds(span.start_time_unix_nano),
        "endTimeUnixNano": _nanoseconds(span.end_time_unix_nano),
        "attributes": _attributes(span.attributes),
        "events": [_event(event) for event in span.events or ()],
        "status": {key: value for key, value in ended.items() if value},
    }
    return {key: value for key, value in written.items() if value not in (None, [], {})}


def _event(event: Event) -> Json:
    return {
        "name": event.name or "",
        "timeUnixNano": _nanoseconds(event.time_unix_nano) or "0",
        "attributes": _attributes(event.attributes),
    }


def _nanoseconds(value: int | None) -> str | None:
    return None if value is None else str(value)


def _attributes(pairs: list[Attribute] | None) -> list[Json]:
    """Write attributes, with those that were one JSON text put together again."""
    written: list[Json] = []
    texts: dict[str, Json] = {}
    added = derived({pair.key for pair in pairs or ()})
    for pair in pairs or ():
        if pair.key in added:
            continue
        flat = _FLAT.match(pair.key)
        if flat is None:
            written.append({"key": pair.key, "value": _value(pair.value or Value())})
        else:
            parts = texts.setdefault(flat.group(), {})
            parts[pair.key[flat.end() + 1 :]] = _plain(pair.value or Value())
    for key, parts in texts.items():
        written.append({"key": key, "value": any_value(as_text(_nested(parts)))})
    return written


def _value(value: Value) -> Json:
    if value.array_value is not None:
        return {"arrayValue": {"values": [_value(each) for each in value.array_value.values]}}
    if value.bytes_value is not None and _HEX.fullmatch(value.bytes_value):
        return {"bytesValue": base64.b64encode(bytes.fromhex(value.bytes_value)).decode()}
    plain = _plain(value)
    if value.double_value is not None:
        return {"doubleValue": plain}
    return {} if plain is None else any_value(plain)


def _plain(value: Value) -> Any:
    if value.array_value is not None:
        return [_plain(each) for each in value.array_value.values]
    if value.int_value is not None:
        return int(value.int_value)
    held = (value.string_value, value.bool_value, value.double_value, value.bytes_value)
    return next((each for each in held if each is not None), None)


def _nested(parts: Json) -> Any:
    """Turn dotted names into objects, and into lists where all names are numbers."""
    tree: Json = {}
    for name, value in parts.items():
        at = tree
        *way, last = name.split(".")
        for step in way:
            below = at.setdefault(step, {})
            at = below if isinstance(below, dict) else {}
        at[last] = value
    return _lists(tree)


def _lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    values = [_lists(value) for value in tree.values()]
    if tree and list(tree) == [str(number) for number in range(len(tree))]:
        return values
    return dict(zip(tree, values, strict=True))
