"""Spans and log records as OTLP protobuf; its library is optional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as ProtoLog
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from baton.readers.otlp.record_as_spans import SCOPE, Attributes
from baton.readers.otlp.span import Span

from .spans import nanos
from .wire_json import LogRecord, Signal, resource, span_kind


def encode_proto(items: Sequence[Span | LogRecord]) -> bytes:
    """Write one export; ``items`` are all spans or all log records."""
    if items and isinstance(items[0], LogRecord):
        logs = ExportLogsServiceRequest()
        group = logs.resource_logs.add()
        group.resource.attributes.extend(_attributes(resource()))
        scope = group.scope_logs.add()
        scope.scope.name = SCOPE
        scope.log_records.extend(
            ProtoLog(
                time_unix_nano=nanos(item.at) if item.at is not None else 0,
                observed_time_unix_nano=nanos(item.observed),
                severity_number=item.severity,  # type: ignore[arg-type]
                event_name=item.name,
                attributes=_attributes(item.attributes),
                trace_id=bytes.fromhex(item.trace_id or ""),
                span_id=bytes.fromhex(item.span_id or ""),
            )
            for item in items
            if isinstance(item, LogRecord)
        )
        return logs.SerializeToString()
    traces = ExportTraceServiceRequest()
    spans = traces.resource_spans.add()
    spans.resource.attributes.extend(_attributes(resource()))
    below = spans.scope_spans.add()
    below.scope.name = SCOPE
    below.spans.extend(_proto_span(item) for item in items if isinstance(item, Span))
    return traces.SerializeToString()


def rejected_of(signal: Signal, answer: bytes) -> tuple[int, str]:
    """Return the number of spans or records that were rejected, and why.

    Raises:
        ValueError: the answer is not such a message.
    """
    try:
        if signal == "traces":
            traces = ExportTraceServiceResponse.FromString(answer).partial_success
            return traces.rejected_spans, traces.error_message
        logs = ExportLogsServiceResponse.FromString(answer).partial_success
    except Exception as error:  # noqa: BLE001 - protobuf's own, which is in another library
        raise ValueError(str(error)) from None
    return logs.rejected_log_records, logs.error_message


def _proto_span(span: Span) -> ProtoSpan:
    written = ProtoSpan(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id or ""),
        name=span.name,
        kind=span_kind(span),  # type: ignore[arg-type]
        start_time_unix_nano=nanos(span.started or 0.0),
        end_time_unix_nano=nanos(span.ended or 0.0),
        attributes=_attributes(span.attributes),
    )
    for event in span.events:
        written.events.add(
            time_unix_nano=nanos(event.at or 0.0),
            name=event.name,
            attributes=_attributes(event.attributes),
        )
    for link in span.links:
        written.links.add(
            trace_id=bytes.fromhex(link.trace_id), span_id=bytes.fromhex(link.span_id)
        )
    if span.status:
        written.status.code = span.status  # type: ignore[assignment]
        written.status.message = span.message or ""
    return written


def _attributes(attributes: Attributes) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes.items()]


def _value(value: Any) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[_value(each) for each in value]))
    return AnyValue(string_value=value)
