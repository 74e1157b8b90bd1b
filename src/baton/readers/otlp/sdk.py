"""Spans and log records of the OpenTelemetry SDK, as they lie in memory, to ours.

They are told by what they have, so that nothing of OpenTelemetry is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .span import Event, Link, Span
from .wire.scalars import digest, nanos, repaired, tame


def from_sdk(span: Any) -> Span:
    """Read a ``ReadableSpan``; one that has not ended has no ``ended``."""
    context, parent, status = span.get_span_context(), span.parent, span.status
    scope, resource = span.instrumentation_scope, span.resource
    return Span(
        trace_id=trace_hex(context.trace_id),
        span_id=span_hex(context.span_id),
        parent_id=None if parent is None else span_hex(parent.span_id),
        name=repaired(span.name),
        started=nanos(span.start_time),
        ended=nanos(span.end_time),
        attributes=_attributes(span.attributes),
        events=[
            Event(
                name=repaired(event.name),
                at=nanos(event.timestamp),
                attributes=_attributes(event.attributes),
            )
            for event in span.events or ()
        ],
        links=[
            Link(trace_id=trace_hex(link.context.trace_id), span_id=span_hex(link.context.span_id))
            for link in span.links or ()
        ],
        status=int(status.status_code.value),
        message=_plain(status.description),
        scope=(scope.name if scope is not None else None) or "",
        resource={} if resource is None else _attributes(resource.attributes),
    )


def log_from_sdk(data: Any) -> Event:
    """Read what a log record processor is given: a record, or what is wrapped around it."""
    record = getattr(data, "log_record", data)
    attributes = _attributes(record.attributes)
    name = getattr(record, "event_name", None) or attributes.get("event.name")
    resource = getattr(data, "resource", None)
    return Event(
        name=repaired(name) if isinstance(name, str) else "",
        at=nanos(record.timestamp or getattr(record, "observed_timestamp", None)),
        attributes=attributes,
        body=_plain(record.body),
        trace_id=trace_hex(record.trace_id) if record.trace_id else None,
        span_id=span_hex(record.span_id) if record.span_id else None,
        resource={} if resource is None else _attributes(resource.attributes),
    )


def trace_hex(id_: int) -> str:
    """Write the id of a trace as every wire format does."""
    return f"{id_:032x}"


def span_hex(id_: int) -> str:
    """Write the id of a span as every wire format does."""
    return f"{id_:016x}"


def _attributes(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {repaired(str(key)): _plain(value) for key, value in (attributes or {}).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return repaired(value)
    if value is None or isinstance(value, bool | int | float):
        return tame(value)
    if isinstance(value, Mapping):
        return _attributes(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return digest(bytes(value)) if isinstance(value, bytes | bytearray) else repaired(str(value))
