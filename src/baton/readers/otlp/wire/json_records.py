"""Converts JSON in any known format to spans and log records, even if it is broken.

A value is decoded at once, a large one record by record. If that fails, ``Scan`` finds the complete
records, and ``Salvage`` reads as much of each as possible.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.wire import jaeger, mlflow, otlp_json, sdk

from .jaeger import JaegerSpan, Process
from .otlp_json import Named, Wire, WireLog, WireSpan
from .sdk import SdkSpan
from .streams import Limits, Place, Report, offset_of

BLANK = b" \t\r\n\x1e"
BOM = b"\xef\xbb\xbf"
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_SOLID = re.compile(rb"[^ \t\r\n\x1e\xef\xbb\xbf]")


def is_value(text: bytes) -> bool:
    """Return whether a text is one complete JSON value."""
    try:
        msgspec.json.decode(text.removeprefix(BOM).strip(BLANK), type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def values(data: memoryview) -> Iterator[tuple[int, int]]:
    """Yield start and end of the values. The last one may be broken, with all that follows."""
    at = 0
    while start := _SOLID.search(data, at):
        at = start.start()
        end = at + (value_end(data[at:]) or len(data))
        yield at, end
        at = end


def value_end(data: memoryview) -> int | None:
    """Return the end of the value that ``data`` starts with; ``None`` if it is broken.

    The error of the parser names the place if something follows.
    """
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        trailing = _TRAILING.search(str(error))
        return int(trailing[1]) - 1 if trailing and int(trailing[1]) > 1 else None
    return len(data)


_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"(\s*:)?|[{}\[\]"]', re.DOTALL)
_RECORDS = {b'"spans"', b'"logRecords"'}
_NAMED = {b'"resource"', b'"scope"', b'"instrumentationLibrary"', b'"processes"'}
_SCOPES = {b'"scopeSpans"', b'"instrumentationLibrarySpans"', b'"scopeLogs"'}
_GROUPS = {b'"resourceSpans"', b'"resourceLogs"', b'"batches"', b'"data"', b""}
_START = re.compile(rb'(?<!^)\{"resource(?:Spans|Logs)"\s*:')
# Levels of brackets that are followed in broken JSON: a file of nothing but `[` would take memory
# for each.
_DEEPEST = 100_000
_OPEN, _CLOSE = b"{[", b"}]"


class Found(NamedTuple):
    """A span or log record, with the texts of its scope and resource; empty if it has none."""

    key: bytes
    record: memoryview
    offset: int
    scope: bytes
    resource: bytes
    processes: bytes


class Scan:
    """Scans the text once, until it is nested too deeply.

    ``cut`` counts the records without an end.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self.cut = 0

    def found(self) -> Iterator[Found]:
        """Yield the complete records."""
        starts = [0, *(match.start() for match in _START.finditer(self._data))]
        for start, end in zip(starts, [*starts[1:], len(self._data)], strict=True):
            yield from self._part(start, end)

    def _part(self, start: int, end: int) -> Iterator[Found]:
        walk = _Walk(self._data)
        at = start
        while match := _TOKEN.search(self._data, at, end):
            token, at = match[0], match.end()
            if token == b'"' or walk.depth > _DEEPEST:
                break
            if token in _OPEN:
                is_record = walk.open(token, match.start())
                length = value_end(self._data[match.start() : end]) if is_record else None
                if length is not None:
                    at = match.start() + length
                    yield from walk.close(at)
            elif token in _CLOSE:
                yield from walk.close(at)
            elif match[1] and not walk.in_record:
                walk.key = token[: -len(match[1])]
        yield from walk.finish()
        self.cut += walk.in_record


class _Walk:
    """The state of the scan: open brackets, and records that wait for the end of their resource."""

    def __init__(self, data: memoryview) -> None:
        self.key = b""
        self.in_record = False
        self.depth = 0
        self._data = data
        self._stack: list[tuple[bytes, bytes, int]] = []
        self._record = 0
        self._named: dict[bytes, bytes] = {}
        self._in_scope: list[tuple[bytes, int, int]] = []
        self._in_resource: list[tuple[bytes, int, int, bytes]] = []

    def open(self, token: bytes, at: int) -> bool:
        """Record an opening bracket, and return whether a record starts with it.

        The key of a list shows what its items are.
        """
        self.depth += 1
        if self.in_record:
            return False
        in_list = bool(self._stack) and self._stack[-1][0] == b"["
        key = self._stack[-1][1] if in_list else self.key if self._stack else b""
        if token == b"{" and in_list and key in _RECORDS:
            self.in_record, self._record = True, self.depth
        self._stack.append((token, key, at))
        return self.in_record

    def close(self, end: int) -> Iterator[Found]:
        """Record a closing bracket, and yield what it completes."""
        self.depth -= 1
        if self.in_record and self.depth >= self._record:
            return
        if not self._stack:
            return
        token, key, start = self._stack.pop()
        if self.in_record:
            self.in_record = False
            self._in_scope.append((key, start, end))
        elif token == b"{" and key in _NAMED:
            self._named[key] = bytes(self._data[start:end])
        elif token == b"{" and key in _SCOPES:
            self._end_scope()
        elif token == b"{" and key in _GROUPS:
            yield from self.finish()

    def finish(self) -> Iterator[Found]:
        """Yield the waiting records."""
        self._end_scope()
        resource = self._named.pop(b'"resource"', b"")
        processes = self._named.pop(b'"processes"', b"")
        for key, start, end, scope in self._in_resource:
            yield Found(key, self._data[start:end], start, scope, resource, processes)
        self._in_resource = []

    def _end_scope(self) -> None:
        old = self._named.pop(b'"instrumentationLibrary"', b"")
        scope = self._named.pop(b'"scope"', b"") or old
        self._in_resource += [(*place, scope) for place in self._in_scope]
        self._in_scope = []


BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)
W = TypeVar("W")
R = TypeVar("R")
_SPAN = msgspec.json.Decoder(otlp_json.WireSpan)
_LOG = msgspec.json.Decoder(otlp_json.WireLog)
_JAEGER = msgspec.json.Decoder(jaeger.JaegerSpan)
_MLFLOW = msgspec.json.Decoder(mlflow.MlflowSpan)
_HALF_PAIR = re.compile(
    r"(?<!\\)((?:\\\\)*)(?:(\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..)"
)


class Salvage:
    """Converts texts that may be broken to records, and reports what is lost."""

    def __init__(
        self, data: bytes | memoryview, place: Place, report: Report, limits: Limits
    ) -> None:
        self._data = data
        self._place = place
        self._report = report
        self._limits = limits
        self._faults = 0

    def lose(self, what: str, count: int = 1, part: Any = None) -> None:
        """Count a loss; ``part`` is the lost text."""
        self._faults += 1
        example = None if what in self._report.lost else f"{self._report.file}: {self._at(part)}"
        self._report.lose(what, count, example)

    def _lose_end(self, what: str, count: int) -> None:
        """Count records that the end of the value truncates."""
        self._faults += 1
        end = self._place.at(self._data, len(bytes(self._data).rstrip()))
        self._report.lose(what, count, f"{self._report.file}: {end}")

    def span(self, raw: Any, scope: str, resource: dict[str, Any]) -> Span | None:
        """Read a span."""
        return self._one(raw, _SPAN, lambda wire: otlp_json.span_of(wire, scope, resource))

    def log(self, raw: Any, resource: dict[str, Any]) -> Event | None:
        """Read a log record."""
        return self._one(raw, _LOG, lambda wire: otlp_json.log_of(wire, resource))

    def jaeger_span(self, raw: Any, processes: dict[str, dict[str, Any]]) -> Span | None:
        """Read a span of Jaeger."""
        return self._one(raw, _JAEGER, lambda wire: jaeger.span_of(wire, processes))

    def mlflow_span(self, raw: Any, resource: dict[str, Any]) -> Span | None:
        """Read a span as MLflow stores it."""
        return self._one(raw, _MLFLOW, lambda wire: mlflow.span_of(wire, resource))

    def records(self, error: Exception) -> Iterator[Span | Event | None]:
        """Yield the complete records of a value that cannot be parsed, and report the error."""
        data = self._data
        scan = Scan(data)
        any_found = False
        for record in scan.found():
            any_found = True
            yield self._found(record)
        if scan.cut:
            self._lose_end("records truncated in the middle", scan.cut)
        elif "truncated" in str(error):
            self._lose_end("ends of JSON that is truncated", 1)
        if not any_found and b'"context"' in bytes(data):
            yield self._one(data, msgspec.json.Decoder(sdk.SdkSpan), sdk.span_of)
        if not self._faults:
            self._fault(error, data)

    def _found(self, found: Found) -> Span | Event | None:
        resource = self._attributes(found.resource)
        if found.key == b'"logRecords"':
            return self.log(found.record, resource)
        if mlflow.holds_own(found.record):
            return self.mlflow_span(found.record, {})
        if found.processes or b'"traceID"' in bytes(found.record):
            return self.jaeger_span(found.record, self._processes(found.processes))
        named = self._decode(found.scope, otlp_json.Named)
        return self.span(found.record, (named and named.name) or "", resource)

    def _one(self, raw: Any, decoder: msgspec.json.Decoder[W], make: Callable[[W], R]) -> R | None:
        """Read one record strictly, else leniently: with NaN, and text that is not UTF-8."""
        size = len(memoryview(raw))
        self._report.read += size
        if size > self._limits.span:
            self.lose(f"records of more than {self._limits.span} bytes", part=raw)
            return None
        try:
            return make(decoder.decode(raw))
        except RecursionError:
            self.lose("records nested too deep", part=raw)
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as strict:
            try:
                wire = msgspec.convert(lenient(bytes(raw)), decoder.type)
            except RecursionError:
                self.lose("records nested too deep", part=raw)
                return None
            except (msgspec.ValidationError, ValueError) as error:
                known = isinstance(error, msgspec.ValidationError)
                self._fault(error if known else strict, raw)
                return None
            self._faults += 1
            return make(wire)

    def _fault(self, error: Exception, part: Any) -> None:
        self._faults += 1
        if self._report.is_full():
            self._report.fault("")
            return
        message, _, path = (str(error) or type(error).__name__).partition(" - at `")
        offset = re.search(r"\(byte (\d+)\)", message)
        place = self._at(part, int(offset[1]) if offset else 0)
        name = f"{place.name}: " if place.name else ""
        self._report.fault(f"{name}{message}", place.line, path.rstrip("`").removeprefix("$."))

    def _at(self, part: Any, offset: int = 0) -> Place:
        if part is not None and part is not self._data:
            offset += offset_of(part, self._data)
        return self._place.at(self._data, offset)

    def _attributes(self, text: bytes) -> dict[str, Any]:
        named = self._decode(text, otlp_json.Named)
        return otlp_json.attributes_of(named.attributes) if named else {}

    def _processes(self, text: bytes) -> dict[str, dict[str, Any]]:
        processes = self._decode(text, dict[str, jaeger.Process]) or {}
        return {id_: jaeger.resource_of(process) for id_, process in processes.items()}

    def _decode(self, text: bytes, kind: type[W]) -> W | None:
        if not text:
            return None
        try:
            return msgspec.convert(lenient(text), kind)
        except (ValueError, RecursionError) as error:
            self._fault(error, text)
            return None


def lenient(data: bytes) -> Any:
    """Parse JSON as most software writes it: with NaN, broken UTF-8, and single surrogates."""
    text = data.decode("utf-8", "replace")
    return json.loads(_HALF_PAIR.sub(lambda match: match[1] + (match[2] or "\\ufffd"), text))


def camel_case(data: bytes) -> bytes:
    """Rename the keys of OTLP JSON to those of its specification."""
    return msgspec.json.encode(_camel(lenient(data)))


def _camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {re.sub("_([a-z])", _upper, key): _camel(item) for key, item in value.items()}
    return [_camel(item) for item in value] if isinstance(value, list) else value


def _upper(match: re.Match[str]) -> str:
    return match[1].upper()


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
    """One export, or a wrapper of it: Tempo's ``trace``, Jaeger's ``result``, a request's ``body``.

    ``data`` is an older response of Jaeger, ``spans`` one trace of it, ``context`` belongs to a
    span as the SDK prints it; ``info`` and ``traces`` belong to MLflow. Metrics are recognised, but
    not read.
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
    info: Raw = _NOTHING
    traces: Raw = _NOTHING

    def wrapped(self) -> list[Raw]:
        """Return the wrapped values; other values with such a name do not count."""
        return [raw for raw in (self.trace, self.result, self.body) if _starts(raw, b"{", b"[")]

    def answer(self) -> Raw | None:
        """Return the values in the response of a query service."""
        return self.data if _starts(self.data, b"{", b"[") else None

    def jaeger(self) -> bool:
        """Return whether this is one trace of Jaeger."""
        return _starts(self.spans, b"[")

    def may_be_mlflow(self) -> bool:
        """Return whether this may be one or several traces of MLflow."""
        return _starts(self.info, b"{") or _starts(self.traces, b"[") or self.jaeger()

    def sdk_span(self) -> bool:
        """Return whether this is a span as the SDK prints it."""
        return _starts(self.context, b"{")

    def known(self) -> bool:
        """Return whether this is any of the other formats."""
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
    return raw is not _NOTHING and bytes(memoryview(raw)[:1]) in starts


TYPED = msgspec.json.Decoder(Top[WireSpan, WireLog] | list[Top[WireSpan, WireLog]])
RAW = msgspec.json.Decoder(Top[Raw, Raw] | list[Top[Raw, Raw]])
JAEGER_TYPED = msgspec.json.Decoder(JaegerTrace[JaegerSpan] | list[JaegerTrace[JaegerSpan]])
JAEGER_RAW = msgspec.json.Decoder(JaegerTrace[Raw] | list[JaegerTrace[Raw]])
SDK = msgspec.json.Decoder(SdkSpan | list[SdkSpan])


Data = bytes | memoryview | msgspec.Raw
Record = Span | Event
# Bytes up to which a value is decoded at once, which is faster; a larger one is decoded record by
# record, so that memory holds one record and not all.
_SMALL = 1 << 20
_HEAD = 1 << 16
"""Number of bytes in which the keys of the first span are."""
_SNAKE = (b'"resource_spans"', b'"resource_logs"')


def json_records(
    data: bytes | memoryview, place: Place, report: Report, limits: Limits
) -> Iterable[Record]:
    """Return the spans and log records of a JSON value.

    Broken parts are reported, and complete parts around them are kept. Large values are decoded one
    record at a time.
    """
    salvage = Salvage(data, place, report, limits)
    try:
        if len(data) <= _SMALL:
            typed = [record for record in _Typed(salvage).records(data) if record is not None]
            report.read += len(data)
            return typed
        raw = _Raw(salvage).records(data)
        first = next(raw, None)  # everything is parsed now
    except BROKEN as error:
        return filter(None, salvage.records(error))
    return filter(None, itertools.chain((first,), raw))


class _Typed:
    """Splits a value that is decoded at once."""

    decoder: Any = TYPED
    jaeger_decoder: Any = JAEGER_TYPED

    def __init__(self, salvage: Salvage) -> None:
        self.salvage = salvage
        self.span: Callable[[Any, str, dict[str, Any]], Span | None] = otlp_json.span_of
        self.log: Callable[[Any, dict[str, Any]], Event | None] = otlp_json.log_of
        self.jaeger_span: Callable[[Any, dict[str, dict[str, Any]]], Span | None] = jaeger.span_of

    def records(self, data: Data) -> Iterator[Record | None]:
        decoded = self.decoder.decode(data)
        tops = decoded if isinstance(decoded, list) else [decoded]
        if any(top.may_be_mlflow() for top in tops) and mlflow.holds_own(data):
            traces = mlflow.TRACES.decode(data)
            for raw, resource in mlflow.spans_of(traces if isinstance(traces, list) else [traces]):
                yield self.salvage.mlflow_span(raw, resource)
        elif any(top.jaeger() for top in tops):
            yield from self._jaeger(data)
        elif any(top.sdk_span() for top in tops):
            spans = SDK.decode(data)
            for span in spans if isinstance(spans, list) else [spans]:
                yield sdk.span_of(span)
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
            is_jaeger = is_list and not self._of_phoenix(answer)
            yield from (self._jaeger if is_jaeger else self.records)(answer)

    def _of_phoenix(self, answer: Raw) -> bool:
        """Return whether the API of Phoenix answered: with spans nearly as the SDK prints them."""
        if b'"context"' not in bytes(memoryview(answer)[:_HEAD]):
            return False
        decoded = self.decoder.decode(answer)
        return isinstance(decoded, list) and any(top.sdk_span() for top in decoded)

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
            self.salvage.lose("JSON that contains no spans or log records", count)


class _Raw(_Typed):
    """Splits a large value record by record."""

    decoder: Any = RAW
    jaeger_decoder: Any = JAEGER_RAW

    def __init__(self, salvage: Salvage) -> None:
        super().__init__(salvage)
        self.span, self.log, self.jaeger_span = salvage.span, salvage.log, salvage.jaeger_span
