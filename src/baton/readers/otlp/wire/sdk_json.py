"""Spans as the Python SDK prints them (``ReadableSpan.to_json``, the console exporter)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from baton.readers.otlp.span import Event, Link, Span

from .scalars import span_id_of, status_of, tame, trace_id_of


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
    """A span. Its scope is not printed."""

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
    return span


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
