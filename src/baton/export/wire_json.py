"""Spans and log records as OTLP JSON; `proto` writes them as protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from baton.formats.otlp_json import Json, flat_attributes
from baton.readers.otlp.record_as_spans import KIND, SCOPE, Attributes
from baton.readers.otlp.span import Span

from .spans import nanos

Signal = Literal["traces", "logs"]
_INTERNAL, _CLIENT = 1, 3


class LogRecord(msgspec.Struct, kw_only=True):
    """An event beside spans: ids are lower-case hex, ``at`` is in seconds, if known."""

    name: str
    at: float | None
    observed: float
    severity: int
    attributes: Attributes
    trace_id: str | None = None
    span_id: str | None = None


def encode_json(items: Sequence[Span | LogRecord]) -> bytes:
    """Write one export as JSON; ``items`` are all spans or all log records."""
    spans: list[Json] = []
    for item in items:
        if isinstance(item, Span):
            fields: Json = {
                "traceId": item.trace_id,
                "spanId": item.span_id,
                "parentSpanId": item.parent_id,
                "name": item.name,
                "kind": span_kind(item),
                "startTimeUnixNano": str(nanos(item.started or 0.0)),
                "endTimeUnixNano": str(nanos(item.ended or 0.0)),
                "attributes": flat_attributes(item.attributes),
                "events": [
                    {
                        "timeUnixNano": str(nanos(event.at or 0.0)),
                        "name": event.name,
                        "attributes": flat_attributes(event.attributes),
                    }
                    for event in item.events
                ],
                "links": [
                    {"traceId": link.trace_id, "spanId": link.span_id} for link in item.links
                ],
            }
            if item.status:
                fields["status"] = {"code": item.status, "message": item.message or ""}
            spans.append({key: value for key, value in fields.items() if value not in (None, [])})
    logs: list[Json] = []
    for item in items:
        if isinstance(item, LogRecord):
            fields = {
                "timeUnixNano": str(nanos(item.at)) if item.at is not None else None,
                "observedTimeUnixNano": str(nanos(item.observed)),
                "severityNumber": item.severity,
                "eventName": item.name,
                "attributes": flat_attributes(item.attributes),
                "traceId": item.trace_id,
                "spanId": item.span_id,
            }
            logs.append({key: value for key, value in fields.items() if value is not None})
    message: Json = {}
    if spans:
        message["resourceSpans"] = [_resource("scopeSpans", "spans", spans)]
    if logs:
        message["resourceLogs"] = [_resource("scopeLogs", "logRecords", logs)]
    return msgspec.json.encode(message)


def resource() -> Attributes:
    """Return the resource of Baton in every export."""
    return {"service.name": SCOPE}


def span_kind(span: Span) -> int:
    """Return OTLP's span kind: client for a call of an agent, else internal."""
    return _CLIENT if span.attributes[KIND] == "dispatch" else _INTERNAL


def _resource(scopes: str, key: str, items: list[Json]) -> Json:
    return {
        "resource": {"attributes": flat_attributes(resource())},
        scopes: [{"scope": {"name": SCOPE}, key: items}],
    }


def rejected_of(signal: Signal, answer: bytes) -> tuple[int, str]:
    """Return the number of spans or records that were rejected according to a JSON answer, and why.

    Raises:
        ValueError: the answer is not a JSON object.
    """
    try:
        decoded = msgspec.json.decode(answer, type=dict[str, object]) if answer.strip() else {}
    except RecursionError as error:
        raise ValueError("the answer is nested too deep") from error
    partial = decoded.get("partialSuccess")
    if not isinstance(partial, dict):
        return 0, ""
    key = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
    return int(partial.get(key) or 0), str(partial.get("errorMessage") or "")
