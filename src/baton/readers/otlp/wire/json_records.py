"""JSON of any of the known forms to spans and log records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from baton.readers.otlp.span import Event, Span

from . import jaeger, otlp_json, sdk_json
from .json_shapes import (
    JAEGER_RAW,
    JAEGER_TYPED,
    RAW,
    SDK,
    TYPED,
    JaegerTrace,
    ResourceLogs,
    ResourceSpans,
    Top,
)
from .mend import BROKEN, Mender, camel_case
from .place import Place
from .report import Limits, Report

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
