"""Traces as MLflow stores them: ``Trace.to_json()``, ``mlflow traces get``, ``traces.json``.

The spans are those that it exports by OTLP, with attributes that are JSON as text, in MLflow's own
envelope. Versions 2 and 3 have different names for ids, times and states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from baton.readers.otlp.span import (
    Event,
    Link,
    Span,
    nanos,
    span_id_of,
    status_of,
    tame,
    trace_id_of,
)

# Every span has this attribute. In OTLP and in Jaeger's JSON, it is the value of a `key`, and no
# colon follows.
_OWN = re.compile(rb'"mlflow\.traceRequestId"\s*:')
_SESSION = "mlflow.trace.session"
_SCOPE = "mlflow"


class Context(msgspec.Struct):
    """The ids of a span of version 2."""

    trace_id: str | None = None
    span_id: str | None = None


class Status(msgspec.Struct):
    """How a span ended."""

    code: str | None = None
    message: str | None = None


class WireEvent(msgspec.Struct):
    """An event; ``timestamp`` belongs to version 2."""

    name: str = ""
    time_unix_nano: float | str | None = None
    timestamp: float | str | None = None
    attributes: dict[str, Any] | None = None


class WireLink(msgspec.Struct):
    """A link to a span."""

    trace_id: str | None = None
    span_id: str | None = None


class MlflowSpan(msgspec.Struct):
    """A span of version 3; the fields after ``links`` belong to version 2."""

    name: str = ""
    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    start_time_unix_nano: float | str | None = None
    end_time_unix_nano: float | str | None = None
    status: Status | None = None
    attributes: dict[str, Any] | None = None
    events: list[WireEvent] | None = None
    links: list[WireLink] | None = None
    context: Context | None = None
    parent_id: str | None = None
    start_time: float | str | None = None
    end_time: float | str | None = None
    status_code: str | None = None
    status_message: str | None = None


class Info(msgspec.Struct):
    """MLflow's data about a trace; version 2 had ``request_metadata``."""

    trace_metadata: dict[str, Any] | None = None
    request_metadata: dict[str, Any] | None = None


class Data(msgspec.Struct):
    """The content of a trace."""

    spans: list[msgspec.Raw] | None = None


class MlflowTrace(msgspec.Struct):
    """A trace, its spans (``traces.json``), or the answer to a search (``traces``)."""

    info: Info | None = None
    data: Data | None = None
    spans: list[msgspec.Raw] | None = None
    traces: list[MlflowTrace] | None = None


TRACES = msgspec.json.Decoder(MlflowTrace | list[MlflowTrace])


def holds_own(data: Any) -> bool:
    """Return whether JSON has a span as MLflow stores it."""
    return _OWN.search(data) is not None


def spans_of(traces: Iterable[MlflowTrace]) -> Iterator[tuple[msgspec.Raw, dict[str, Any]]]:
    """Yield each span, with the session that its trace names."""
    left = list(traces)[::-1]
    while left:
        trace = left.pop()
        left += (trace.traces or [])[::-1]
        known = (trace.info.trace_metadata or trace.info.request_metadata) if trace.info else None
        session = (known or {}).get(_SESSION)
        resource = {_SESSION: session} if isinstance(session, str) else {}
        inner = trace.data.spans if trace.data is not None else None
        for raw in inner or trace.spans or ():
            yield raw, resource


def span_of(wire: MlflowSpan, resource: dict[str, Any]) -> Span:
    """Make a span."""
    status = wire.status or Status(wire.status_code, wire.status_message)
    own = wire.context or Context(wire.trace_id, wire.span_id)
    return Span(
        trace_id=_trace_id(own.trace_id),
        span_id=span_id_of(own.span_id),
        parent_id=span_id_of(wire.parent_span_id or wire.parent_id) or None,
        name=wire.name,
        started=nanos(wire.start_time_unix_nano or wire.start_time),
        ended=nanos(wire.end_time_unix_nano or wire.end_time),
        attributes=tame(wire.attributes or {}),
        events=[
            Event(
                name=event.name,
                at=nanos(event.time_unix_nano or event.timestamp),
                attributes=tame(event.attributes or {}),
            )
            for event in wire.events or ()
        ],
        links=[
            Link(trace_id=id_, span_id=span_id_of(link.span_id))
            for link in wire.links or ()
            if (id_ := _trace_id(link.trace_id))
        ],
        status=status_of(status.code),
        message=status.message or None,
        scope=_SCOPE,
        resource=resource,
    )


def _trace_id(text: str | None) -> str:
    """Read an id, which is base64 in most versions.

    MLflow 3.5 wrote its own name of the trace: ``tr-`` before hexadecimal digits, or for traces in
    a table ``trace:/schema/`` before them.
    """
    if text is None:
        return ""
    own = text.rpartition("/")[2] if text.startswith("trace:/") else text
    return trace_id_of(own.rpartition("tr-")[2])
