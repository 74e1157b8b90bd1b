"""Converts decoded protobuf messages of OTLP to spans and log records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from baton.readers.otlp.span import Event, Link, Span, digest, nanos, status_of


def _span(data: memoryview, scope: str, resource: dict[str, Any]) -> Span:
    return _made(ProtoSpan.FromString(data), scope, resource)  # type: ignore[arg-type]


def _scope_spans(data: memoryview, resource: dict[str, Any]) -> list[Span]:
    """Read all spans of a scope at once; one without the id of a trace is not a span."""
    wire = ScopeSpans.FromString(data)  # type: ignore[arg-type]
    scope = wire.scope.name
    return [_made(span, scope, resource) for span in wire.spans if len(span.trace_id) == 16]


def _made(wire: ProtoSpan, scope: str, resource: dict[str, Any]) -> Span:
    span = Span(
        trace_id=_id(wire.trace_id),
        span_id=_id(wire.span_id),
        parent_id=_id(wire.parent_span_id) or None,
        name=wire.name,
        started=nanos(wire.start_time_unix_nano),
        ended=nanos(wire.end_time_unix_nano),
        attributes=_attributes(wire.attributes),
        scope=scope,
        resource=resource,
    )
    if wire.events:
        span.events = [
            Event(
                name=event.name,
                at=nanos(event.time_unix_nano),
                attributes=_attributes(event.attributes),
            )
            for event in wire.events
        ]
    for link in wire.links:
        if trace_id := _id(link.trace_id):
            span.links.append(Link(trace_id=trace_id, span_id=_id(link.span_id)))
    if wire.HasField("status"):
        status = wire.status
        span.status = status_of(status.code)
        span.message = status.message or None
    return span


def _log(data: memoryview, _scope: str, resource: dict[str, Any]) -> Event:
    wire = LogRecord.FromString(data)  # type: ignore[arg-type]
    attributes = _attributes(wire.attributes)
    name = wire.event_name or attributes.get("event.name")
    return Event(
        name=name if isinstance(name, str) else "",
        at=nanos(wire.time_unix_nano) or nanos(wire.observed_time_unix_nano),
        attributes=attributes,
        body=_plain(wire.body),
        trace_id=_id(wire.trace_id) or None,
        span_id=_id(wire.span_id) or None,
        resource=resource,
    )


def _resource(data: memoryview, _: Any) -> dict[str, Any]:
    return _attributes(Resource.FromString(data).attributes)  # type: ignore[arg-type]


def _scope(data: memoryview) -> str:
    return InstrumentationScope.FromString(data).name  # type: ignore[arg-type]


def _id(data: bytes) -> str:
    return data.hex() if data.strip(b"\0") else ""


def _attributes(items: Iterable[KeyValue]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in items:
        value = item.value
        found[item.key] = value.string_value or _plain(value)
    return found


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    if kind == "bytes_value":
        return digest(value.bytes_value)
    return getattr(value, kind)


def _told(convert: Callable[..., Any]) -> Callable[..., Any]:
    def converted(*arguments: Any) -> Any:
        try:
            return convert(*arguments)
        except DecodeError:
            raise ValueError("it is broken, or its text is not UTF-8") from None

    return converted


CONVERTERS: Final = {
    "span": _told(_span),
    "spans": _told(_scope_spans),
    "log": _told(_log),
    "resource": _told(_resource),
    "scope": _told(_scope),
}
