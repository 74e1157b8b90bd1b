"""Spans and log records as OTLP: JSON, or protobuf where its library is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
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

from baton.pull.spans import attributes
from baton.readers.otlp.own import KIND, SCOPE, Attributes
from baton.readers.otlp.span import Event, Span

from .spans import nanos

Signal = Literal["traces", "logs"]
Json = dict[str, Any]
_INTERNAL, _CLIENT = 1, 3


class LogRecord(msgspec.Struct, kw_only=True):
    """An event that stands beside spans: ids are lower-case hex, ``at`` seconds, if known."""

    name: str
    at: float | None
    observed: float
    severity: int
    attributes: Attributes
    trace_id: str | None = None
    span_id: str | None = None


def encode_json(items: Sequence[Span | LogRecord]) -> bytes:
    """Write one export as JSON; ``items`` are all spans or all log records."""
    spans = [_span(item) for item in items if isinstance(item, Span)]
    logs = [_log(item) for item in items if isinstance(item, LogRecord)]
    found: Json = {}
    if spans:
        found["resourceSpans"] = [_resource("scopeSpans", "spans", spans)]
    if logs:
        found["resourceLogs"] = [_resource("scopeLogs", "logRecords", logs)]
    return msgspec.json.encode(found)


def resource() -> Attributes:
    """Return what stands for Baton in every export."""
    return {"service.name": SCOPE}


def span_kind(span: Span) -> int:
    """Return OTLP's kind: asking an agent is that of a client, all else is internal."""
    return _CLIENT if span.attributes[KIND] == "dispatch" else _INTERNAL


def _resource(scopes: str, key: str, items: list[Json]) -> Json:
    return {
        "resource": {"attributes": attributes(resource())},
        scopes: [{"scope": {"name": SCOPE}, key: items}],
    }


def _span(span: Span) -> Json:
    found: Json = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id,
        "name": span.name,
        "kind": span_kind(span),
        **_times(span),
        "attributes": attributes(span.attributes),
        "events": [_event(event) for event in span.events],
        "links": [{"traceId": link.trace_id, "spanId": link.span_id} for link in span.links],
    }
    if span.status:
        found["status"] = {"code": span.status, "message": span.message or ""}
    return {key: value for key, value in found.items() if value not in (None, [])}


def _times(span: Span) -> Json:
    return {
        "startTimeUnixNano": str(nanos(span.started or 0.0)),
        "endTimeUnixNano": str(nanos(span.ended or 0.0)),
    }


def _event(event: Event) -> Json:
    return {
        "timeUnixNano": str(nanos(event.at or 0.0)),
        "name": event.name,
        "attributes": attributes(event.attributes),
    }


def _log(record: LogRecord) -> Json:
    found = {
        "timeUnixNano": str(nanos(record.at)) if record.at is not None else None,
        "observedTimeUnixNano": str(nanos(record.observed)),
        "severityNumber": record.severity,
        "eventName": record.name,
        "attributes": attributes(record.attributes),
        "traceId": record.trace_id,
        "spanId": record.span_id,
    }
    return {key: value for key, value in found.items() if value is not None}


def encode_proto(items: Sequence[Span | LogRecord]) -> bytes:
    """Write one export; ``items`` are all spans or all log records."""
    if items and isinstance(items[0], LogRecord):
        logs = ExportLogsServiceRequest()
        group = logs.resource_logs.add()
        group.resource.attributes.extend(_attributes(resource()))
        scope = group.scope_logs.add()
        scope.scope.name = SCOPE
        scope.log_records.extend(_proto_log(item) for item in items if isinstance(item, LogRecord))
        return logs.SerializeToString()
    traces = ExportTraceServiceRequest()
    spans = traces.resource_spans.add()
    spans.resource.attributes.extend(_attributes(resource()))
    below = spans.scope_spans.add()
    below.scope.name = SCOPE
    below.spans.extend(_proto_span(item) for item in items if isinstance(item, Span))
    return traces.SerializeToString()


def rejected_of(signal: Signal, answer: bytes) -> tuple[int, str]:
    """Return how many spans or records an answer says were refused, and why.

    Raises:
        ValueError: the answer is no such message.
    """
    try:
        if signal == "traces":
            traces = ExportTraceServiceResponse.FromString(answer).partial_success
            return traces.rejected_spans, traces.error_message
        logs = ExportLogsServiceResponse.FromString(answer).partial_success
    except Exception as error:  # noqa: BLE001 - protobuf's own, which stands in another library
        raise ValueError(str(error)) from None
    return logs.rejected_log_records, logs.error_message


def _proto_span(span: Span) -> ProtoSpan:
    found = ProtoSpan(
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
        found.events.add(
            time_unix_nano=nanos(event.at or 0.0),
            name=event.name,
            attributes=_attributes(event.attributes),
        )
    for link in span.links:
        found.links.add(trace_id=bytes.fromhex(link.trace_id), span_id=bytes.fromhex(link.span_id))
    if span.status:
        found.status.code = span.status  # type: ignore[assignment]
        found.status.message = span.message or ""
    return found


def _proto_log(record: LogRecord) -> ProtoLog:
    return ProtoLog(
        time_unix_nano=nanos(record.at) if record.at is not None else 0,
        observed_time_unix_nano=nanos(record.observed),
        severity_number=record.severity,  # type: ignore[arg-type]
        event_name=record.name,
        attributes=_attributes(record.attributes),
        trace_id=bytes.fromhex(record.trace_id or ""),
        span_id=bytes.fromhex(record.span_id or ""),
    )


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
