"""Converts decoded protobuf messages of OTLP to spans and log records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from baton.readers.otlp.span import Event, Link, Span, nanos, status_of, text_or_digest


def _pool() -> DescriptorPool:
    """Return OTLP's messages, but with attributes that stay encoded until they are asked for.

    Most attributes of a span are the same as those of other spans: the name of the thread, of the
    agent, of the model. Looking up their bytes takes a third of the time of decoding them.
    """
    pool = DescriptorPool()
    modules: tuple[ModuleType, ...] = (common_pb2, resource_pb2, trace_pb2, logs_pb2)
    for module in modules:
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        for message in file.message_type:
            _keep_encoded(message)
        pool.Add(file)
    return pool


def _keep_encoded(message: DescriptorProto) -> None:
    for field in message.field:
        if field.name == "attributes":
            field.type = field.TYPE_BYTES
            field.ClearField("type_name")
    for inner in message.nested_type:
        _keep_encoded(inner)


_POOL = _pool()


def _message(name: str) -> Any:
    return GetMessageClass(_POOL.FindMessageTypeByName(f"opentelemetry.proto.{name}"))


_Span, _ScopeSpans = _message("trace.v1.Span"), _message("trace.v1.ScopeSpans")
_Log = _message("logs.v1.LogRecord")
_Resource = _message("resource.v1.Resource")
_Scope = _message("common.v1.InstrumentationScope")


def _span(data: memoryview, scope: str, resource: dict[str, Any]) -> Span:
    return _made(_Span.FromString(data), scope, resource)


def _scope_spans(data: memoryview, resource: dict[str, Any]) -> list[Span]:
    """Read all spans of a scope at once; one without the id of a trace is not a span."""
    wire = _ScopeSpans.FromString(data)
    scope = wire.scope.name
    return [_made(span, scope, resource) for span in wire.spans if len(span.trace_id) == 16]


def _made(wire: Any, scope: str, resource: dict[str, Any]) -> Span:
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
    if wire.links:
        span.links = [
            Link(trace_id=trace_id, span_id=_id(link.span_id))
            for link in wire.links
            if (trace_id := _id(link.trace_id))
        ]
    if wire.HasField("status"):
        status = wire.status
        span.status = status_of(status.code)
        span.message = status.message or None
    return span


def _log(data: memoryview, _scope: str, resource: dict[str, Any]) -> Event:
    wire = _Log.FromString(data)
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
    return _attributes(_Resource.FromString(data).attributes)


def _scope(data: memoryview) -> str:
    name: str = _Scope.FromString(data).name
    return name


def _id(data: bytes) -> str:
    return data.hex() if data.strip(b"\0") else ""


_DECODED: dict[bytes, tuple[str, Any]] = {}
"""Name and value of attributes that are encoded as these bytes."""
_MOST_DECODED, _LONGEST_DECODED = 4096, 128
"""The number of cached attributes and their bytes, so that no file can fill the memory. Prompts and
answers are longer than that, and rarely repeated."""


def _attributes(items: Sequence[bytes]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for data in items[:]:  # protobuf's own iterator takes half as long again as a copy
        short = len(data) <= _LONGEST_DECODED
        known = _DECODED.get(data) if short else None
        if known is not None:
            attributes[known[0]] = known[1]
            continue
        item = KeyValue.FromString(data)
        key, value = item.key, item.value.string_value or _plain(item.value)
        attributes[key] = value
        if short and not isinstance(value, dict | list):  # these must not be shared
            if len(_DECODED) >= _MOST_DECODED:
                _DECODED.clear()
            _DECODED[data] = key, value
    return attributes


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: _plain(item.value) for item in value.kvlist_value.values}
    if kind == "bytes_value":
        return text_or_digest(value.bytes_value)
    return getattr(value, kind)


def _with_clear_error(convert: Callable[..., Any]) -> Callable[..., Any]:
    def converted(*arguments: Any) -> Any:
        try:
            return convert(*arguments)
        except DecodeError:
            raise ValueError("it is broken, or its text is not UTF-8") from None

    return converted


CONVERTERS: Final = {
    "span": _with_clear_error(_span),
    "spans": _with_clear_error(_scope_spans),
    "log": _with_clear_error(_log),
    "resource": _with_clear_error(_resource),
    "scope": _with_clear_error(_scope),
}
