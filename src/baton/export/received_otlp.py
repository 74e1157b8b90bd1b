"""Received spans and log records as OTLP JSON; reading it gives the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from baton.formats.otlp_json import Json, any_value, attributes
from baton.readers.otlp.span import Event, Span

from .spans import nanos


def encode_received(spans: Sequence[Span], logs: Sequence[Event]) -> bytes:
    """Write spans and log records as one export, with their resources and scopes.

    What an earlier reader left out is lost (bytes, of which only length and hash were kept; the
    kind of a span).
    """
    message: Json = {}
    if spans:
        message["resourceSpans"] = [
            {
                "resource": {"attributes": attributes(resource)},
                "scopeSpans": [
                    {
                        "scope": {"name": scope} if scope else {},
                        "spans": [_span(one) for one in some],
                    }
                ],
            }
            for resource, scope, some in _together((one.resource, one.scope, one) for one in spans)
        ]
    if logs:
        message["resourceLogs"] = [
            {
                "resource": {"attributes": attributes(resource)},
                "scopeLogs": [{"logRecords": [_log(one) for one in some]}],
            }
            for resource, _, some in _together((one.resource, "", one) for one in logs)
        ]
    return msgspec.json.encode(message)


def _together(items: Iterable[tuple[dict[str, Any], str, Any]]) -> list[tuple[Any, str, list[Any]]]:
    """Group items with the same resource (the same object) and scope, in their order."""
    groups: dict[tuple[int, str], tuple[Any, str, list[Any]]] = {}
    for resource, scope, item in items:
        groups.setdefault((id(resource), scope), (resource, scope, []))[2].append(item)
    return list(groups.values())


def _span(span: Span) -> Json:
    fields: Json = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id,
        "name": span.name,
        "startTimeUnixNano": _time(span.started),
        "endTimeUnixNano": _time(span.ended),
        "attributes": attributes(span.attributes),
        "events": [
            _known(
                {
                    "timeUnixNano": _time(event.at),
                    "name": event.name,
                    "attributes": attributes(event.attributes),
                }
            )
            for event in span.events
        ],
        "links": [{"traceId": link.trace_id, "spanId": link.span_id} for link in span.links],
    }
    if span.status or span.message:
        fields["status"] = _known({"code": span.status, "message": span.message})
    return _known(fields)


def _log(log: Event) -> Json:
    return _known(
        {
            "timeUnixNano": _time(log.at),
            "eventName": log.name,
            "body": None if log.body is None else any_value(log.body),
            "attributes": attributes(log.attributes),
            "traceId": log.trace_id,
            "spanId": log.span_id,
        }
    )


def _known(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value not in (None, "", [])}


def _time(at: float | None) -> str | None:
    return None if at is None else str(nanos(at))
