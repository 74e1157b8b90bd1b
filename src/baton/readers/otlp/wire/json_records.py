"""JSON of any of the known forms to spans and log records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.wire import jaeger, otlp_json, sdk_json

from .jaeger import JaegerSpan, Process
from .otlp_json import Named, Wire, WireLog, WireSpan
from .repair import BROKEN, Mender, camel_case
from .report import Limits, Report
from .sdk_json import SdkSpan
from .streams import Place

S = TypeVar("S")
L = TypeVar("L")
Raw = msgspec.Raw
_NOTHING = Raw()


class ScopeSpans(Wire, Generic[S]):
    """Spans of one scope; the scope was called instrumentation library once."""

    scope: Named | None = None
    instrumentation_library: Named | None = None
    spans: list[S] | None = None


class ResourceSpans(Wire, Generic[S]):
    """Spans of one resource."""

    resource: Named | None = None
    scope_spans: list[ScopeSpans[S]] | None = None
    instrumentation_library_spans: list[ScopeSpans[S]] | None = None


class ScopeLogs(Wire, Generic[L]):
    """Log records of one scope."""

    log_records: list[L] | None = None


class ResourceLogs(Wire, Generic[L]):
    """Log records of one resource."""

    resource: Named | None = None
    scope_logs: list[ScopeLogs[L]] | None = None
    instrumentation_library_logs: list[ScopeLogs[L]] | None = None


class Top(Wire, Generic[S, L]):
    """One export, or what wraps it: Tempo's ``trace``, Jaeger's ``result``, a request's ``body``.

    ``data`` is an older answer of Jaeger, ``spans`` one trace of it, ``context`` that of a span as
    the SDK prints it. Metrics are known, and not read.
    """

    resource_spans: list[ResourceSpans[S]] | None = None
    batches: list[ResourceSpans[S]] | None = None
    resource_logs: list[ResourceLogs[L]] | None = None
    resource_metrics: Raw = _NOTHING
    trace: Raw = _NOTHING
    result: Raw = _NOTHING
    body: Raw = _NOTHING
    data: Raw = _NOTHING
    spans: Raw = _NOTHING
    context: Raw = _NOTHING

    def wrapped(self) -> list[Raw]:
        """Return the wrapped values; those that only have such a name are none."""
        return [raw for raw in (self.trace, self.result, self.body) if _starts(raw, b"{", b"[")]

    def answer(self) -> Raw | None:
        """Return what a query service answers with."""
        return self.data if _starts(self.data, b"{", b"[") else None

    def jaeger(self) -> bool:
        """Tell whether this is one trace of Jaeger."""
        return _starts(self.spans, b"[")

    def sdk_span(self) -> bool:
        """Tell whether this is a span as the SDK prints it."""
        return _starts(self.context, b"{")

    def known(self) -> bool:
        """Tell whether this is any of the other forms."""
        here = (self.resource_spans, self.batches, self.resource_logs)
        return (
            any(value is not None for value in here)
            or bool(self.wrapped() or self.answer())
            or _starts(self.resource_metrics, b"[")
        )


class JaegerTrace(msgspec.Struct, Generic[S]):
    """One trace of Jaeger."""

    spans: list[S] | None = None
    processes: dict[str, Process] | None = None


def _starts(raw: Raw, *starts: bytes) -> bool:
    return bytes(memoryview(raw)[:1]) in starts


TYPED = msgspec.json.Decoder(Top[WireSpan, WireLog] | list[Top[WireSpan, WireLog]])
RAW = msgspec.json.Decoder(Top[Raw, Raw] | list[Top[Raw, Raw]])
JAEGER_TYPED = msgspec.json.Decoder(JaegerTrace[JaegerSpan] | list[JaegerTrace[JaegerSpan]])
JAEGER_RAW = msgspec.json.Decoder(JaegerTrace[Raw] | list[JaegerTrace[Raw]])
SDK = msgspec.json.Decoder(SdkSpan | list[SdkSpan])


Data = bytes | memoryview | msgspec.Raw
Record = Span | Event
_SMALL = 1 << 20
_SNAKE = (b'"resource_spans"', b'"resource_logs"')


def json_records(
    data: bytes | memoryview, place: Place, report: Report, limits: Limits
) -> Iterator[Record]:
    """Yield the spans and log records of a JSON value.

    What is broken is told to ``report``, and what is whole around it is kept. Large values are
    taken apart one record at a time.
    """
    mender = Mender(data, place, report, limits)
    found: Iterator[Record | None]
    try:
        if len(data) <= _SMALL:
            found = iter(list(_Typed(mender).records(data)))
            report.read += len(data)
        else:
            found = _Raw(mender).records(data)
            yield from filter(None, [next(found, None)])
    except BROKEN as error:
        found = mender.salvage(error)
    for record in found:
        if record is not None:
            yield record


class _Typed:
    """Takes a value apart that is decoded in one go."""

    decoder: Any = TYPED
    jaeger_decoder: Any = JAEGER_TYPED

    def __init__(self, mender: Mender) -> None:
        self.mender = mender

    def span(self, wire: Any, scope: str, resource: dict[str, Any]) -> Span | None:
        return otlp_json.span_of(wire, scope, resource)

    def log(self, wire: Any, resource: dict[str, Any]) -> Event | None:
        return otlp_json.log_of(wire, resource)

    def jaeger_span(self, wire: Any, processes: dict[str, dict[str, Any]]) -> Span | None:
        return jaeger.span_of(wire, processes)

    def records(self, data: Data) -> Iterator[Record | None]:
        decoded = self.decoder.decode(data)
        tops = decoded if isinstance(decoded, list) else [decoded]
        if any(top.jaeger() for top in tops):
            yield from self._jaeger(data)
        elif any(top.sdk_span() for top in tops):
            spans = SDK.decode(data)
            for span in spans if isinstance(spans, list) else [spans]:
                yield sdk_json.span_of(span)
        elif not any(top.known() for top in tops):
            yield from self._unknown(data, len(tops))
        else:
            for top in tops:
                yield from self._top(top)

    def _top(self, top: Top[Any, Any]) -> Iterator[Record | None]:
        for groups in (top.resource_spans, top.batches):
            for spans in groups or ():
                yield from self._spans(spans)
        for logs in top.resource_logs or ():
            yield from self._logs(logs)
        for inner in top.wrapped():
            yield from self.records(inner)
        if answer := top.answer():
            is_list = bytes(memoryview(answer)[:1]) == b"["
            yield from (self._jaeger if is_list else self.records)(answer)

    def _spans(self, group: ResourceSpans[Any]) -> Iterator[Span | None]:
        resource = otlp_json.attributes_of(group.resource.attributes) if group.resource else {}
        for scoped in (*(group.scope_spans or ()), *(group.instrumentation_library_spans or ())):
            named = scoped.scope or scoped.instrumentation_library
            scope = named.name or "" if named else ""
            for span in scoped.spans or ():
                yield self.span(span, scope, resource)

    def _logs(self, group: ResourceLogs[Any]) -> Iterator[Event | None]:
        resource = otlp_json.attributes_of(group.resource.attributes) if group.resource else {}
        for scoped in (*(group.scope_logs or ()), *(group.instrumentation_library_logs or ())):
            for log in scoped.log_records or ():
                yield self.log(log, resource)

    def _jaeger(self, data: Data) -> Iterator[Span | None]:
        decoded: Any = self.jaeger_decoder.decode(data)
        trace: JaegerTrace[Any]
        for trace in decoded if isinstance(decoded, list) else [decoded]:
            processes = {
                id_: jaeger.resource_of(process) for id_, process in (trace.processes or {}).items()
            }
            for span in trace.spans or ():
                yield self.jaeger_span(span, processes)

    def _unknown(self, data: Data, count: int) -> Iterator[Record | None]:
        text = bytes(data)
        if any(key in text for key in _SNAKE):
            yield from self.records(camel_case(text))
        elif text.strip() not in (b"{}", b"[]", b"[{}]"):
            self.mender.lose("JSON that holds no spans or log records", count)


class _Raw(_Typed):
    """Takes a large value apart record by record."""

    decoder: Any = RAW
    jaeger_decoder: Any = JAEGER_RAW

    def span(self, wire: Any, scope: str, resource: dict[str, Any]) -> Span | None:
        return self.mender.span(wire, scope, resource)

    def log(self, wire: Any, resource: dict[str, Any]) -> Event | None:
        return self.mender.log(wire, resource)

    def jaeger_span(self, wire: Any, processes: dict[str, dict[str, Any]]) -> Span | None:
        return self.mender.jaeger_span(wire, processes)
