"""Records that no strict parser takes: finding them, and what can be kept of each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.wire import jaeger, otlp_json, sdk_json

from .report import Limits, Report
from .streams import Place, offset_of

BLANK = b" \t\r\n\x1e"
BOM = b"\xef\xbb\xbf"
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_SOLID = re.compile(rb"[^ \t\r\n\x1e\xef\xbb\xbf]")


def is_value(text: bytes) -> bool:
    """Tell whether a text is one whole JSON value."""
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
        """Note a bracket that opens, and tell whether a record starts with it.

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
        """Note a bracket that closes, and yield what that makes whole."""
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
_HALF_PAIR = re.compile(
    r"(?<!\\)((?:\\\\)*)(?:(\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..)"
)


class Mender:
    """Makes records of texts that may be broken, and reports what is lost."""

    def __init__(
        self, data: bytes | memoryview, place: Place, report: Report, limits: Limits
    ) -> None:
        self._data = data
        self._place = place
        self._report = report
        self._limits = limits
        self._told = 0

    def lose(self, what: str, count: int = 1, part: Any = None) -> None:
        """Count what is lost; ``part`` is the text that is."""
        self._told += 1
        example = None if what in self._report.lost else f"{self._report.file}: {self._at(part)}"
        self._report.lose(what, count, example)

    def _lose_end(self, what: str, count: int) -> None:
        """Count what the end of the value cuts off."""
        self._told += 1
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

    def salvage(self, error: Exception) -> Iterator[Span | Event | None]:
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
            yield self._one(data, msgspec.json.Decoder(sdk_json.SdkSpan), sdk_json.span_of)
        if not self._told:
            self._fault(error, data)

    def _found(self, found: Found) -> Span | Event | None:
        resource = self._attributes(found.resource)
        if found.key == b'"logRecords"':
            return self.log(found.record, resource)
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
            self._told += 1
            return make(wire)

    def _fault(self, error: Exception, part: Any) -> None:
        self._told += 1
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
