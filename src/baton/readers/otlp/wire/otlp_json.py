"""OTLP as JSON: the wire structs, typed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from baton.readers.otlp.span import (
    Event,
    Link,
    Span,
    bytes_value,
    double_value,
    int_value,
    nanos,
    span_id_of,
    status_of,
    trace_id_of,
)


class Wire(msgspec.Struct, rename="camel", gc=False):
    """Base of the wire's structs: unknown keys are ignored."""


class AnyValue(Wire):
    """A value; at most one field is set."""

    string_value: str | None = None
    int_value: int | str | None = None
    bool_value: bool | None = None
    double_value: float | str | None = None
    array_value: Values | None = None
    kvlist_value: KeyValues | None = None
    bytes_value: str | None = None


class KeyValue(Wire):
    """An attribute."""

    key: str = ""
    value: AnyValue | None = None


class Values(Wire):
    """A list."""

    values: list[AnyValue] | None = None


class KeyValues(Wire):
    """A mapping."""

    values: list[KeyValue] | None = None


Attributes = list[KeyValue] | None
Nanos = int | str | float | None


class WireEvent(Wire):
    """An event of a span."""

    name: str | None = None
    time_unix_nano: Nanos = None
    attributes: Attributes = None


class WireLink(Wire):
    """A link of a span."""

    trace_id: str | None = None
    span_id: str | None = None


class Status(Wire):
    """How a span ended."""

    code: int | str | None = None
    message: str | None = None


class WireSpan(Wire):
    """A span."""

    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    name: str | None = None
    start_time_unix_nano: Nanos = None
    end_time_unix_nano: Nanos = None
    attributes: Attributes = None
    events: list[WireEvent] | None = None
    links: list[WireLink] | None = None
    status: Status | None = None


class WireLog(Wire):
    """A log record."""

    trace_id: str | None = None
    span_id: str | None = None
    time_unix_nano: Nanos = None
    observed_time_unix_nano: Nanos = None
    event_name: str | None = None
    body: AnyValue | None = None
    attributes: Attributes = None


class Named(Wire):
    """The scope, or the resource, of spans."""

    name: str | None = None
    attributes: Attributes = None


def plain(value: AnyValue | None) -> Any:
    """Convert a value to plain data; an empty one is ``None``."""
    if value is None:
        return None
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        return int_value(value.int_value)
    if value.bool_value is not None:
        return value.bool_value
    if value.double_value is not None:
        return double_value(value.double_value)
    if value.array_value is not None:
        return [plain(item) for item in value.array_value.values or ()]
    if value.kvlist_value is not None:
        return attributes_of(value.kvlist_value.values)
    return None if value.bytes_value is None else bytes_value(value.bytes_value)


def attributes_of(items: Attributes) -> dict[str, Any]:
    """Convert attributes to a mapping."""
    attributes: dict[str, Any] = {}
    for item in items or ():
        value = item.value
        text = value.string_value if value is not None else None
        attributes[item.key] = text if text is not None else plain(value)
    return attributes


def span_of(wire: WireSpan, scope: str, resource: dict[str, Any]) -> Span:
    """Make a span; missing ids are empty."""
    span = Span(
        trace_id=trace_id_of(wire.trace_id),
        span_id=span_id_of(wire.span_id),
        parent_id=span_id_of(wire.parent_span_id) or None,
        name=wire.name or "",
        started=nanos(wire.start_time_unix_nano),
        ended=nanos(wire.end_time_unix_nano),
        attributes=attributes_of(wire.attributes),
        scope=scope,
        resource=resource,
    )
    if wire.events:
        span.events = [_event(event) for event in wire.events]
    if wire.links:
        span.links = list(_links(wire.links))
    status = wire.status
    if status is not None:
        if status.code is not None:
            span.status = status_of(status.code)
        span.message = status.message or None
    return span


def log_of(wire: WireLog, resource: dict[str, Any]) -> Event:
    """Convert a log record to an event with its event name."""
    attributes = attributes_of(wire.attributes)
    name = wire.event_name or attributes.get("event.name")
    return Event(
        name=name if isinstance(name, str) else "",
        at=nanos(wire.time_unix_nano) or nanos(wire.observed_time_unix_nano),
        attributes=attributes,
        body=plain(wire.body),
        trace_id=trace_id_of(wire.trace_id) or None,
        span_id=span_id_of(wire.span_id) or None,
        resource=resource,
    )


def _event(wire: WireEvent) -> Event:
    at = nanos(wire.time_unix_nano)
    return Event(name=wire.name or "", at=at, attributes=attributes_of(wire.attributes))


def _links(wires: list[WireLink]) -> Iterator[Link]:
    for wire in wires:
        trace_id, span_id = trace_id_of(wire.trace_id), span_id_of(wire.span_id)
        if trace_id:
            yield Link(trace_id=trace_id, span_id=span_id)
