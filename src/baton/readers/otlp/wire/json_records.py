"""JSON of any of the known forms to spans and log records, also if it is broken.

A value is decoded in one go, a large one record by record. Where that fails, ``Scan`` finds the
records that are whole, and ``Salvage`` keeps what can be kept of each.
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
    """Return whether a text is one whole JSON value."""
    try:
        msgspec.json.decode(text.removeprefix(BOM).strip(BLANK), type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def values(data: memoryview) -> Iterator[tuple[int, int]]:
    """Yield where the values start and end. The last may be broken, with all that follows it."""
    at = 0
    while start := _SOLID.search(data, at):
        at = start.start()
        end = at + (value_end(data[at:]) or len(data))
        yield at, end
        at = end


def value_end(data: memoryview) -> int | None:
    """Return where the value that ``data`` starts with ends; ``None`` when it is broken.

    What follows it makes the parser complain, and name the place.
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
_DEEPEST = 100_000
_OPEN, _CLOSE = b"{[", b"}]"


class Found(NamedTuple):
    """A span or log record, and the texts that say what it stands in; empty when there is none."""

    key: bytes
    record: memoryview
    offset: int
    scope: bytes
    resource: bytes
    processes: bytes


class Scan:
    """Goes over the text once, to where it is nested beyond all reason.

    ``cut`` counts the records that have no end.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self.cut = 0

    def found(self) -> Iterator[Found]:
        """Yield the whole records."""
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
    """Where the scan stands: the open brackets, and what waits for the end of its resource."""

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
        """Record a bracket that opens, and tell whether a record starts with it.

        What stands in a list is known by the list's key.
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
        """Record a bracket that closes, and yield what that makes whole."""
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
        """Yield what waits."""
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
    """Makes records of texts that may be broken, and reports what is lost."""

    def __init__(
        self, data: bytes | memoryview, place: Place, report: Report, limits: Limits
    ) -> None:
        self._data = data
        self._place = place
        self._report = report
        self._limits = limits
        self._faults = 0

    def lose(self, what: str, count: int = 1, part: Any = None) -> None:
        """Count what is lost; ``part`` is the text that is."""
        self._faults += 1
        example = None if what in self._report.lost else f"{self._report.file}: {self._at(part)}"
        self._report.lose(what, count, example)

    def _lose_end(self, what: str, count: int) -> None:
        """Count what the end of the value cuts off."""
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
        """Read a span as MLflow keeps it."""
        return self._one(raw, _MLFLOW, lambda wire: mlflow.span_of(wire, resource))

    def records(self, error: Exception) -> Iterator[Span | Event | None]:
        """Yield the whole records of a value that cannot be parsed, and say what is wrong."""
        data = self._data
        scan = Scan(data)
        any_found = False
        for found in scan.found():
            any_found = True
            yield self._found(found)
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
        """Read one record, strictly and else leniently: NaN, text that is not UTF-8."""
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
        found = self._decode(text, dict[str, jaeger.Process]) or {}
        return {id_: jaeger.resource_of(process) for id_, process in found.items()}

    def _decode(self, text: bytes, kind: type[W]) -> W | None:
        if not text:
            return None
        try:
            return msgspec.convert(lenient(text), kind)
        except (ValueError, RecursionError) as error:
            self._fault(error, text)
            return None


def lenient(data: bytes) -> Any:
    """Parse JSON as most software writes it: with NaN, broken UTF-8, and halves of pairs."""
    text = data.decode("utf-8", "replace")
    return json.loads(_HALF_PAIR.sub(lambda match: match[1] + (match[2] or "\\ufffd"), text))


def camel_case(data: bytes) -> bytes:
    """Spell the keys of OTLP JSON as its specification does."""
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
    """One export, or what wraps it: Tempo's ``trace``, Jaeger's ``result``, a request's ``body``.

    ``data`` is an older answer of Jaeger, ``spans`` one trace of it, ``context`` that of a span as
    the SDK prints it; ``info`` and ``traces`` are of MLflow. Metrics are known, and not read.
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
        """Return the wrapped values; those that only have such a name are none."""
        return [raw for raw in (self.trace, self.result, self.body) if _starts(raw, b"{", b"[")]

    def answer(self) -> Raw | None:
        """Return what a query service answers with."""
        return self.data if _starts(self.data, b"{", b"[") else None

    def jaeger(self) -> bool:
        """Return whether this is one trace of Jaeger."""
        return _starts(self.spans, b"[")

    def may_be_mlflow(self) -> bool:
        """Return whether this may be a trace of MLflow, or several."""
        return _starts(self.info, b"{") or _starts(self.traces, b"[") or self.jaeger()

    def sdk_span(self) -> bool:
        """Return whether this is a span as the SDK prints it."""
        return _starts(self.context, b"{")

    def known(self) -> bool:
        """Return whether this is any of the other forms."""
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
) -> Iterable[Record]:
    """Return the spans and log records of a JSON value.

    What is broken is told to ``report``, and what is whole around it is kept. Large values are
    taken apart one record at a time.
    """
    salvage = Salvage(data, place, report, limits)
    try:
        if len(data) <= _SMALL:
            typed = [record for record in _Typed(salvage).records(data) if record is not None]
            report.read += len(data)
            return typed
        raw = _Raw(salvage).records(data)
        first = next(raw, None)  # all of it is parsed by now
    except BROKEN as error:
        return filter(None, salvage.records(error))
    return filter(None, itertools.chain((first,), raw))


class _Typed:
    """Takes a value apart that is decoded in one go."""

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
            self.salvage.lose("JSON that holds no spans or log records", count)


class _Raw(_Typed):
    """Takes a large value apart record by record."""

    decoder: Any = RAW
    jaeger_decoder: Any = JAEGER_RAW

    def __init__(self, salvage: Salvage) -> None:
        super().__init__(salvage)
        self.span, self.log, self.jaeger_span = salvage.span, salvage.log, salvage.jaeger_span
