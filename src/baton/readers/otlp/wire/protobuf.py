"""OTLP as protobuf: spans and log records of serialised messages, one or several appended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from baton.model import InputError, Problem
from baton.plugins.origin import install, requirement
from baton.readers.otlp.span import Event, Span

from .streams import Limits, Place, Report

# The wire types of protobuf. 3 and 4 are groups, which OTLP never had: they mean that these bytes
# are something else.
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Field(msgspec.Struct, frozen=True):
    """A field: its number, type, and the place of its value. ``cut``: the end is missing."""

    number: int
    type: int
    start: int
    end: int
    cut: bool = False


class NoProtobuf(ValueError):  # noqa: N818 - says what it is
    """Bytes that are no protobuf message. ``at`` is the position of the error."""

    def __init__(self, at: int) -> None:
        super().__init__(f"no protobuf at byte {at}")
        self.at = at


def fields(data: memoryview, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message at ``start``. The last one may be truncated.

    Raises:
        NoProtobuf: these bytes are no message.
    """
    at = start
    while at < end:
        tag, after = _varint(data, at, end)
        number, type_ = tag >> 3, tag & 7
        if after > end:
            yield Field(number, type_, end, end, cut=True)
            return
        if number == 0 or type_ not in (VARINT, FIXED64, BYTES, FIXED32):
            raise NoProtobuf(at)
        if type_ == BYTES:
            length, after = _varint(data, after, end)
            stop = after + length
        elif type_ == VARINT:
            _, stop = _varint(data, after, end)
        else:
            stop = after + (8 if type_ == FIXED64 else 4)
        if stop > end or after > end:
            yield Field(number, type_, min(after, end), end, cut=True)
            return
        yield Field(number, type_, after, stop)
        at = stop


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Read a varint; if its end is missing, the place after it is beyond ``end``."""
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:  # ten bytes hold 64 bits, and no number is longer
            raise NoProtobuf(at)
    return value, end + 1


# Scopes are field 2 of a resource. Field 1000 is `instrumentation_library_spans`, which older
# exporters still write.
_SCOPES = (2, 1000)
_RESOURCE, _RECORD, _EMBEDDED = 1, 2, 1


def proto_records(
    data: bytes | memoryview, place: Place, report: Report, limits: Limits
) -> Iterator[list[Span | Event]]:
    """Yield the spans and log records of serialised exports, in order: all of a scope or one.

    If the data is truncated, complete parts are kept, and the report says what is lost.

    Raises:
        InputError: the library for protobuf is missing.
    """
    reader = _Reader(memoryview(data), place, report, limits)
    try:
        for field in fields(reader.data, 0, len(reader.data)):
            if field.number == 1 and field.type == BYTES:
                yield from reader.group(field.start, field.end)
            if field.cut:
                reader.lose_the_end(field.start)
    except NoProtobuf as error:
        at = place.at(reader.data, error.at)
        report.fault(f"{at}: neither OTLP protobuf nor JSON from here on")


class _Reader:
    """Finds the records in one piece of a file."""

    def __init__(self, data: memoryview, place: Place, report: Report, limits: Limits) -> None:
        self.data = data
        self._place = place
        self._report = report
        self._limits = limits
        self._convert = _converter(report.file)
        self._cut_told = False

    def group(self, start: int, end: int) -> Iterator[list[Span | Event]]:
        """Yield the records of one resource, which may be before or after them."""
        # Protobuf allows fields in any order, and a resource after its spans describes them, too.
        parts = list(fields(self.data, start, end))
        resource: dict[str, Any] = {}
        for field in parts:
            if field.number == _RESOURCE and field.type == BYTES and not field.cut:
                resource.update(self._decoded("resource", field.start, field.end, {}) or {})
        for field in parts:
            if field.number in _SCOPES and field.type == BYTES:
                yield from self._scope(field.start, field.end, resource)
            if field.cut:
                self.lose_the_end(field.start)

    def lose_the_end(self, at: int) -> None:
        """Report once that the data ends in the middle of a message."""
        if not self._cut_told:
            self._cut_told = True
            self._lose("records truncated in the middle", at)

    def _scope(
        self, start: int, end: int, resource: dict[str, Any]
    ) -> Iterator[list[Span | Event]]:
        spans = self._whole_scope(start, end, resource)
        if spans is not None:
            yield spans
            return
        scope = ""
        for field in fields(self.data, start, end):
            if field.cut:
                self.lose_the_end(field.start)
            elif field.number == _EMBEDDED and field.type == BYTES:
                scope = self._decoded("scope", field.start, field.end) or ""
            elif field.number == _RECORD and field.type == BYTES:
                record = self._record(field.start, field.end, scope, resource)
                if record is not None:
                    yield [record]

    def _whole_scope(
        self, start: int, end: int, resource: dict[str, Any]
    ) -> list[Span | Event] | None:
        """Decode the spans of a scope at once; ``None`` if each has to be decoded alone.

        That is the case if there are many, if they are log records, or if data is broken.
        """
        if end - start > _SMALL:
            return None
        try:
            records = (f for f in fields(self.data, start, end) if f.number == _RECORD)
            first = next(records, None)
            if first is None or first.cut or first.type != BYTES:
                return None
            if self._kind(first.start, first.end) != "span":
                return None
            spans: list[Span | Event] = self._convert["spans"](self.data[start:end], resource)
        except (ValueError, RecursionError):
            return None
        self._report.read += end - start
        return spans

    def _record(
        self, start: int, end: int, scope: str, resource: dict[str, Any]
    ) -> Span | Event | None:
        self._report.read += end - start
        if end - start > self._limits.span:
            self._lose(f"records of more than {self._limits.span} bytes", start)
            return None
        kind = self._kind(start, end)
        if kind is None:
            return None
        record: Span | Event | None = self._decoded(kind, start, end, scope, resource)
        return record

    def _kind(self, start: int, end: int) -> str | None:
        """Return whether these are spans, which start with ids of 16 and 8 bytes."""
        first = next(iter(fields(self.data, start, end)), None)
        if first is None:
            return None
        if first.type != BYTES:
            return "log" if (first.number, first.type) in _LOG_STARTS else None
        length = first.end - first.start
        if first.number == 1:
            return "span" if length == 16 else None
        return "log" if first.number in _LOG_TEXTS else None

    def _decoded(self, what: str, start: int, end: int, *more: Any) -> Any:
        try:
            return self._convert[what](self.data[start:end], *more)
        except RecursionError:
            self._lose("records nested too deep", start)
        except ValueError as error:
            self._lose(f"{what} messages that protobuf cannot decode ({error})", start)
        return None

    def _lose(self, what: str, at: int) -> None:
        place = self._place.at(self.data, at)
        self._report.lose(what, example=f"{self._report.file}: {place}")


_SMALL = 1 << 20
"""Bytes of a scope up to which its spans are decoded together."""
# The first field of a log record is nearly always its time (1) or when it was observed (11), fixed
# numbers; else its severity (2), dropped attributes (7) or flags (8). Its texts and values have the
# other numbers. Field 1 as bytes is the id of a trace, so a span.
_LOG_STARTS = {(1, FIXED64), (2, 0), (11, FIXED64), (7, 0), (8, 5)}
_LOG_TEXTS = {3, 5, 6, 9, 10, 12}


def _converter(file: str) -> dict[str, Any]:
    try:
        from baton.readers.otlp.wire import proto_convert
    except ImportError:
        message = f"protobuf needs a library: {install(requirement('otel'))}"
        raise InputError(Problem(file=file, message=message)) from None
    return proto_convert.CONVERTERS
