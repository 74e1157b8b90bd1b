"""Spans of the OpenTelemetry SDK: as it prints them, and as they are in memory.

It prints them by ``ReadableSpan.to_json`` and the console exporter. Phoenix's API returns spans in
nearly the same form, with the status in other places. Objects in memory are
recognised by their attributes, so that OpenTelemetry is not imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from baton.readers.otlp.span import (
    Event,
    Link,
    Span,
    nanos,
    repaired,
    span_id_of,
    status_of,
    tame,
    text_or_digest,
    trace_id_of,
)

_KIND = "openinference.span.kind"


class Context(msgspec.Struct):
    """The ids of a span."""

    trace_id: str | None = None
    span_id: str | None = None


class SdkEvent(msgspec.Struct):
    """An event."""

    name: str = ""
    timestamp: datetime | None = None
    attributes: dict[str, Any] | None = None


class SdkLink(msgspec.Struct):
    """A link."""

    context: Context | None = None


class SdkStatus(msgspec.Struct):
    """How a span ended."""

    status_code: str | None = None
    description: str | None = None


class SdkResource(msgspec.Struct):
    """Where a span comes from."""

    attributes: dict[str, Any] | None = None


class SdkSpan(msgspec.Struct):
    """A span. Its scope is not printed. The fields after ``resource`` are Phoenix's."""

    context: Context
    name: str = ""
    parent_id: str | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    status: SdkStatus | None = None
    attributes: dict[str, Any] | None = None
    events: list[SdkEvent] | None = None
    links: list[SdkLink] | None = None
    resource: SdkResource | None = None
    status_code: str | None = None
    status_message: str | None = None
    span_kind: str | None = None


def span_of(wire: SdkSpan) -> Span:
    """Make a span."""
    span = Span(
        trace_id=trace_id_of(wire.context.trace_id),
        span_id=span_id_of(wire.context.span_id),
        parent_id=span_id_of(wire.parent_id) or None,
        name=wire.name,
        started=_seconds(wire.start_time),
        ended=_seconds(wire.end_time),
        attributes=tame(wire.attributes or {}),
        events=[
            Event(
                name=event.name,
                at=_seconds(event.timestamp),
                attributes=tame(event.attributes or {}),
            )
            for event in wire.events or ()
        ],
        resource=tame((wire.resource.attributes if wire.resource else None) or {}),
    )
    for link in wire.links or ():
        if link.context is not None and (trace_id := trace_id_of(link.context.trace_id)):
            span.links.append(Link(trace_id=trace_id, span_id=span_id_of(link.context.span_id)))
    if wire.status is not None:
        span.status = status_of(wire.status.status_code)
        span.message = wire.status.description or None
    elif wire.status_code is not None:
        span.status = status_of(wire.status_code)
        span.message = wire.status_message or None
        if wire.span_kind and wire.span_kind != "UNKNOWN":
            span.attributes.setdefault(_KIND, wire.span_kind)
    return span


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def from_sdk(span: Any) -> Span:
    """Read a ``ReadableSpan``; a running one has no ``ended``."""
    context, parent, status = span.get_span_context(), span.parent, span.status
    scope, resource = span.instrumentation_scope, span.resource
    return Span(
        trace_id=trace_hex(context.trace_id),
        span_id=span_hex(context.span_id),
        parent_id=None if parent is None else span_hex(parent.span_id),
        name=repaired(span.name),
        started=nanos(span.start_time),
        ended=nanos(span.end_time),
        attributes=_memory_attributes(span.attributes),
        events=[
            Event(
                name=repaired(event.name),
                at=nanos(event.timestamp),
                attributes=_memory_attributes(event.attributes),
            )
            for event in span.events or ()
        ],
        links=[
            Link(trace_id=trace_hex(link.context.trace_id), span_id=span_hex(link.context.span_id))
            for link in span.links or ()
        ],
        status=int(status.status_code.value),
        message=_memory_value(status.description),
        scope=(scope.name if scope is not None else None) or "",
        resource={} if resource is None else _memory_attributes(resource.attributes),
    )


def log_from_sdk(data: Any) -> Event:
    """Read the argument of a log record processor: a record, or its wrapper."""
    record = getattr(data, "log_record", data)
    attributes = _memory_attributes(record.attributes)
    name = getattr(record, "event_name", None) or attributes.get("event.name")
    resource = getattr(data, "resource", None)
    return Event(
        name=repaired(name) if isinstance(name, str) else "",
        at=nanos(record.timestamp or getattr(record, "observed_timestamp", None)),
        attributes=attributes,
        body=_memory_value(record.body),
        trace_id=trace_hex(record.trace_id) if record.trace_id else None,
        span_id=span_hex(record.span_id) if record.span_id else None,
        resource={} if resource is None else _memory_attributes(resource.attributes),
    )


def trace_hex(id_: int) -> str:
    """Return the id of a trace as all wire formats write it."""
    return f"{id_:032x}"


def span_hex(id_: int) -> str:
    """Return the id of a span as all wire formats write it."""
    return f"{id_:016x}"


def _memory_attributes(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {repaired(str(key)): _memory_value(value) for key, value in (attributes or {}).items()}


def _memory_value(value: Any) -> Any:
    # Subclasses, such as the `AgentText` of smolagents, become plain: msgspec does not write them.
    if isinstance(value, str):
        return repaired(str.__str__(value))
    if isinstance(value, float):
        return float(value)
    if value is None or isinstance(value, bool | int):
        return tame(value if value is None or isinstance(value, bool) else int(value))
    if isinstance(value, Mapping):
        return _memory_attributes(value)
    if isinstance(value, list | tuple):
        return [_memory_value(each) for each in value]
    return (
        text_or_digest(bytes(value))
        if isinstance(value, bytes | bytearray)
        else repaired(str(value))
    )
