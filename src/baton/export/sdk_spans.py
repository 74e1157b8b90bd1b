"""A record as finished spans of OpenTelemetry's SDK, for a program's processors and exporters."""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
)

from baton.model import Trace
from baton.readers.otlp import record_as_spans as own

from .spans import nanos, spans_of


def sdk_spans(trace: Trace, made_by: Resource) -> Iterator[ReadableSpan]:
    """Yield the spans that :func:`spans_of` makes of a record; ``made_by`` names the program."""
    for span in spans_of(trace):
        is_dispatch = span.attributes[own.KIND] == "dispatch"
        yield ReadableSpan(
            name=span.name,
            context=_context(span.trace_id, span.span_id),
            parent=None if span.parent_id is None else _context(span.trace_id, span.parent_id),
            resource=made_by,
            attributes=span.attributes,
            events=[
                Event(event.name, event.attributes, nanos(event.at or 0.0)) for event in span.events
            ],
            links=[Link(_context(link.trace_id, link.span_id)) for link in span.links],
            kind=SpanKind.CLIENT if is_dispatch else SpanKind.INTERNAL,
            status=Status(StatusCode(span.status), span.message if span.status == 2 else None),
            start_time=nanos(span.started or 0.0),
            end_time=nanos(span.ended or 0.0),
            instrumentation_scope=InstrumentationScope(own.SCOPE),
        )


def _context(trace_id: str, span_id: str) -> SpanContext:
    sampled = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=sampled)
