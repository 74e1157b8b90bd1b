"""Jaeger's JSON, as its UI and query service return it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from baton.readers.otlp.span import (
    ERROR,
    Event,
    Link,
    Span,
    bytes_value,
    double_value,
    int_value,
    micros,
    span_id_of,
    status_of,
    tame,
    trace_id_of,
)

_TOLD_ELSEWHERE = {
    "otel.scope.name", "otel.scope.version", "otel.library.name", "otel.library.version",
    "otel.status_code", "otel.status_description", "span.kind", "internal.span.format",
}  # fmt: skip


class Tag(msgspec.Struct, gc=False):
    """An attribute."""

    key: str = ""
    type: str = ""
    value: Any = None


class Reference(
    msgspec.Struct, rename={"ref_type": "refType", "trace_id": "traceID", "span_id": "spanID"}
):
    """A span that this one refers to."""

    ref_type: str = ""
    trace_id: str | None = None
    span_id: str | None = None


class JaegerLog(msgspec.Struct):
    """An event."""

    timestamp: int | None = None
    fields: list[Tag] | None = None


class Process(msgspec.Struct, rename={"service_name": "serviceName"}):
    """The resource."""

    service_name: str = ""
    tags: list[Tag] | None = None


class JaegerSpan(
    msgspec.Struct,
    rename={
        "trace_id": "traceID", "span_id": "spanID", "parent_id": "parentSpanID",
        "operation_name": "operationName", "start_time": "startTime", "process_id": "processID",
    },
):  # fmt: skip
    """A span; times are microseconds."""

    trace_id: str | None = None
    span_id: str | None = None
    parent_id: str | None = None
    operation_name: str = ""
    references: list[Reference] | None = None
    start_time: int | None = None
    duration: int | None = None
    tags: list[Tag] | None = None
    logs: list[JaegerLog] | None = None
    process_id: str = ""
    process: Process | None = None


def span_of(wire: JaegerSpan, processes: dict[str, dict[str, Any]]) -> Span:
    """Make a span; ``processes`` are the resources by id."""
    tags = _attributes(wire.tags or ())
    parent, links = _before(wire)
    failed = tags.pop("error", None) if tags.get("error") in (True, "true") else None
    status = status_of(tags.get("otel.status_code")) or (ERROR if failed else 0)
    scope = tags.get("otel.scope.name", tags.get("otel.library.name", ""))
    message = tags.get("otel.status_description")
    span = Span(
        trace_id=trace_id_of(wire.trace_id),
        span_id=span_id_of(wire.span_id),
        parent_id=parent,
        name=wire.operation_name,
        started=micros(wire.start_time),
        attributes={key: value for key, value in tags.items() if key not in _TOLD_ELSEWHERE},
        links=links,
        status=status,
        message=str(message) if message else None,
        scope=str(scope),
        resource=resource_of(wire.process) if wire.process else processes.get(wire.process_id, {}),
    )
    if wire.start_time is not None and wire.duration is not None:
        span.ended = micros(wire.start_time + wire.duration)
    if wire.logs:
        span.events = [_event(log) for log in wire.logs]
    return span


def resource_of(process: Process) -> dict[str, Any]:
    """Make the resource of a process."""
    return {"service.name": process.service_name, **_attributes(process.tags or ())}


def _before(wire: JaegerSpan) -> tuple[str | None, list[Link]]:
    """Separate the parent, the first CHILD_OF reference in the same trace, from the others."""
    parent = span_id_of(wire.parent_id) or None
    links = []
    trace_id = trace_id_of(wire.trace_id)
    for reference in wire.references or ():
        link = Link(
            trace_id=trace_id_of(reference.trace_id) or trace_id,
            span_id=span_id_of(reference.span_id),
        )
        is_parent = reference.ref_type == "CHILD_OF" and link.trace_id == trace_id
        if is_parent and parent in (None, link.span_id):
            parent = link.span_id or None
        else:
            links.append(link)
    return parent, links


def _event(log: JaegerLog) -> Event:
    fields = _attributes(log.fields or ())
    name = fields.pop("event", "")
    return Event(name=str(name), at=micros(log.timestamp), attributes=fields)


def _attributes(tags: Iterable[Tag]) -> dict[str, Any]:
    return {tag.key: _value(tag) for tag in tags}


def _value(tag: Tag) -> Any:
    value = tag.value
    if tag.type == "int64" and isinstance(value, str | int):
        return int_value(value)
    if tag.type == "float64" and isinstance(value, str):
        return double_value(value)
    if tag.type == "bool" and isinstance(value, str):
        return value.lower() == "true"
    if tag.type == "binary" and isinstance(value, str):
        return bytes_value(value)
    return tame(value)
