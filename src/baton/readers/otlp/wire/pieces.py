"""A file to its spans and log records, piece by piece."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from baton.model import InputError, Problem
from baton.model.limits import SPAN_FILE_BYTES

from .json_records import Record, json_records
from .mapped import Chain, Mapped
from .place import Place, lines_between
from .proto_records import proto_records
from .report import Limits, Report
from .sniff import HEAD, form_of
from .streams import GZIP, ZSTD, unpacked
from .values import BLANK, BOM, is_value, values

_LONG = 16 << 20


def file_records(path: Path, report: Report, limits: Limits) -> Iterator[Record]:
    """Yield the spans and log records of a file, or of a pipe.

    Raises:
        InputError: the file cannot be read, is none of the known forms, or is over a limit.
    """
    try:
        with open(path, "rb", buffering=1 << 20) as stream:
            if os.fstat(stream.fileno()).st_size > SPAN_FILE_BYTES.current():
                most = f"{SPAN_FILE_BYTES.current():,} bytes, which is the limit"
                message = f"is larger than {most}{SPAN_FILE_BYTES.raised_by()}"
                raise InputError(Problem(file=report.file, message=message))
            yield from _stream_records(stream, report, limits)
    except OSError as error:
        message = error.strerror or str(error)
        raise InputError(Problem(file=report.file, message=message)) from None


def _stream_records(stream: BinaryIO, report: Report, limits: Limits) -> Iterator[Record]:
    source = unpacked(unpacked(stream, report, limits), report, limits)
    head = source.read(HEAD)
    if source is stream and stream.seekable():
        stream.seek(0)
    else:
        source = io.BufferedReader(Chain(head, source), 1 << 20)
    match form_of(head):
        case "frames":
            yield from _frames(source, report, limits)
        case "protobuf":
            with Mapped(source, stream) as data:
                for record in proto_records(data.view, Place(), report, limits):
                    yield record
                    data.forget(report.read)
        case "json":
            yield from _json(source, stream, report, limits)
        case _ if head.strip(BOM + BLANK):
            message = "holds neither OTLP, as JSON or protobuf, nor Jaeger's JSON"
            raise InputError(Problem(file=report.file, message=message))


def _json(source: BinaryIO, file: BinaryIO, report: Report, limits: Limits) -> Iterator[Record]:
    """Read JSON lines where these are whole values, else the file as one document or several."""
    first = source.readline(_LONG)
    second = source.readline(_LONG) if first.endswith(b"\n") else b""
    opens = first.removeprefix(BOM).strip(BLANK) in (b"{", b"[")
    if is_value(first) or (not opens and is_value(second)):
        yield from _lines(source, [first, second], report, limits)
        return
    with Mapped(source, file, first + second) as data:
        yield from _values(data, 1, report, limits)


def _lines(
    source: BinaryIO, lines: list[bytes], report: Report, limits: Limits
) -> Iterator[Record]:
    number = 0
    while lines[0]:
        for line in lines:
            number += 1
            if len(line) >= _LONG and not line.endswith(b"\n"):
                with Mapped(source, None, line) as data:
                    yield from _values(data, number, report, limits)
                return
            text = line.removeprefix(BOM).strip(BLANK)
            if text:
                yield from json_records(text, Place(number), report, limits)
        lines = [source.readline(_LONG)]


def _values(data: Mapped, line: int, report: Report, limits: Limits) -> Iterator[Record]:
    seen = 0
    for start, end in values(data.view):
        line += lines_between(data.view, seen, start)
        for record in json_records(data.view[start:end], Place(line), report, limits):
            yield record
            data.forget(report.read)
        seen = start


def _frames(source: BinaryIO, report: Report, limits: Limits) -> Iterator[Record]:
    """Read messages with their length before them, as the Collector's file exporter writes."""
    number = 0
    while size := source.read(4):
        number += 1
        place = Place(name=f"message {number}")
        length = int.from_bytes(size, "big")
        if length > limits.message:
            report.fault(f"{place} has {length} bytes; the limit is {limits.message}")
            return
        message = source.read(length)
        if len(size) < 4 or len(message) < length:
            report.lose("messages cut off by the end of the file", example=str(place))
        yield from _message(message, place, report, limits)


def _message(message: bytes, place: Place, report: Report, limits: Limits) -> Iterator[Record]:
    content = message
    if message.startswith((GZIP, ZSTD)):
        stream = io.BufferedReader(io.BytesIO(message))
        content = unpacked(stream, report, limits).read(limits.message + 1)
    if len(content) > limits.message:
        report.fault(f"{place} unpacks to more than {limits.message} bytes, which is the limit")
    elif form_of(content[:HEAD]) == "json":
        yield from json_records(content.strip(BLANK), place, report, limits)
    else:
        yield from proto_records(content, place, report, limits)
