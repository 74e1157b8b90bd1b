"""Converts files to conversations, piece by piece."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from baton.formats.input_files import InputFile, current
from baton.formats.nesting import is_value_too_deep
from baton.model import Dropped, InputError, Problem
from baton.model.limits import SPAN_FILE_BYTES
from baton.readers.otlp.span import Conversation, Event, Span

from .conversations import assign, conversation
from .json_records import BLANK, BOM, Record, is_value, json_records, values
from .protobuf import proto_records
from .sniff import HEAD, form_of
from .streams import GZIP, ZSTD, Chain, Limits, Mapped, Place, Report, lines_between, unpacked
from .trace_store import TraceStore

# Bytes of a line that is loaded. A longer one is a document without line breaks, and is mapped into
# memory instead.
_LONGEST_LINE = 16 << 20


# Records are passed on in lists and not one by one, because each generator on the way would be
# resumed for every span.
Piece = list[Record]


def _pieces_of(file: Path | InputFile, report: Report, limits: Limits) -> Iterator[Piece]:
    """Yield the spans and log records of a file, or of a pipe, in pieces that fit into memory.

    Raises:
        InputError: the file cannot be read, is none of the known forms, or is over a limit.
    """
    try:
        if isinstance(file, InputFile):
            yield from _stream_pieces(file.stream(), report, limits)
        else:
            with open(file, "rb", buffering=1 << 20) as stream:
                yield from _stream_pieces(stream, report, limits)
    except OSError as error:
        message = error.strerror or str(error)
        raise InputError(Problem(file=report.file, message=message)) from None


def _stream_pieces(stream: BinaryIO, report: Report, limits: Limits) -> Iterator[Piece]:
    if os.fstat(stream.fileno()).st_size > current(SPAN_FILE_BYTES):
        most = f"{current(SPAN_FILE_BYTES):,} bytes, which is the limit"
        message = f"is larger than {most}{SPAN_FILE_BYTES.raised_by()}"
        raise InputError(Problem(file=report.file, message=message))
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
                for piece in proto_records(data.view, Place(), report, limits):
                    yield piece
                    data.forget(report.read)
        case "json":
            yield from _json(source, stream, report, limits)
        case _ if head.strip(BOM + BLANK):
            message = "holds neither OTLP, as JSON or protobuf, nor Jaeger's JSON"
            raise InputError(Problem(file=report.file, message=message))


def _json(source: BinaryIO, file: BinaryIO, report: Report, limits: Limits) -> Iterator[Piece]:
    """Read JSON lines if these are complete values, else the file as one or several documents."""
    first = source.readline(_LONGEST_LINE)
    second = source.readline(_LONGEST_LINE) if first.endswith(b"\n") else b""
    opens = first.removeprefix(BOM).strip(BLANK) in (b"{", b"[")
    if is_value(first) or (not opens and is_value(second)):
        yield from _lines(source, [first, second], report, limits)
        return
    with Mapped(source, file, first + second) as data:
        yield from _values(data, 1, report, limits)


def _lines(source: BinaryIO, lines: list[bytes], report: Report, limits: Limits) -> Iterator[Piece]:
    number = 0
    while lines[0]:
        for line in lines:
            number += 1
            if len(line) >= _LONGEST_LINE and not line.endswith(b"\n"):
                with Mapped(source, None, line) as data:
                    yield from _values(data, number, report, limits)
                return
            text = line.removeprefix(BOM).strip(BLANK)
            if text:
                yield from _in_pieces(json_records(text, Place(number), report, limits), report)
        lines = [source.readline(_LONGEST_LINE)]


def _values(data: Mapped, line: int, report: Report, limits: Limits) -> Iterator[Piece]:
    seen = 0
    for start, end in values(data.view):
        line += lines_between(data.view, seen, start)
        records = json_records(data.view[start:end], Place(line), report, limits)
        for piece in _in_pieces(records, report):
            yield piece
            data.forget(report.read)
        seen = start


def _in_pieces(records: Iterable[Record], report: Report) -> Iterator[Piece]:
    """Split data that is read record by record; a list is already in memory."""
    if isinstance(records, list):
        yield records
        return
    piece: Piece = []
    start = report.read
    for record in records:
        piece.append(record)
        if report.read - start > _IN_MEMORY:
            yield piece
            piece, start = [], report.read
    yield piece


def _frames(source: BinaryIO, report: Report, limits: Limits) -> Iterator[Piece]:
    """Read messages with their length before them, as the Collector's file exporter writes them."""
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
            report.lose("messages truncated by the end of the file", example=str(place))
        yield from _message(message, place, report, limits)


def _message(message: bytes, place: Place, report: Report, limits: Limits) -> Iterator[Piece]:
    content = message
    if message.startswith((GZIP, ZSTD)):
        stream = io.BufferedReader(io.BytesIO(message))
        content = unpacked(stream, report, limits).read(limits.message + 1)
    if len(content) > limits.message:
        report.fault(f"{place} unpacks to more than {limits.message} bytes, which is the limit")
    elif form_of(content[:HEAD]) == "json":
        yield from _in_pieces(json_records(content.strip(BLANK), place, report, limits), report)
    else:
        yield from proto_records(content, place, report, limits)


File = str | os.PathLike[str] | InputFile
# Data that was read waits as objects, five times as large as the text, and should fit into a
# processor's cache until it is written: with 512 KiB of text, each span took 3 microseconds more.
# With less, spans of mixed traces would be written in too many small batches.
_IN_MEMORY = 128 << 10


class SpanFiles:
    """The conversations of one or several files that belong together, in start order.

    All files are read at once; data over 128 KiB waits in a temporary file until ``close``.
    ``on_lost`` is called with what could not be kept, and ``on_note`` with what was corrected.
    ``spans`` is the number of spans, and ``problems`` are the errors in the data. Conversations
    that are complete are read in spite of them.

    Raises:
        InputError: a file cannot be read or exceeds a limit.
    """

    def __init__(
        self,
        files: Iterable[File],
        *,
        limits: Limits | None = None,
        on_lost: Callable[[Dropped], None] | None = None,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        self.problems: list[Problem] = []
        self._store = store = TraceStore()
        try:
            for one in files:
                file = one if isinstance(one, InputFile) else Path(one)
                report = Report(str(file.path if isinstance(file, InputFile) else file))
                try:
                    _fill(store, file, report, limits or Limits())
                finally:
                    if isinstance(file, InputFile):
                        file.close()
                self.problems += report.all_problems()
                for lost in report.lost.values():
                    if on_lost is not None:
                        on_lost(lost)
            self._found = list(assign(store).items())
        except BaseException:
            store.close()
            raise
        self.spans = sum(store.counts)
        if store.homeless and on_lost is not None:
            on_lost(
                Dropped(what="log records that belong to no conversation", count=store.homeless)
            )
        if store.backwards and on_note is not None:
            on_note(f"{store.backwards} spans end before they start; they count as taking no time")

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, place: int) -> Conversation:
        return conversation(self._store, *self._found[place])

    def close(self) -> None:
        """Remove the temporary file."""
        self._store.close()


def read_conversations(
    files: File | Sequence[File],
    *,
    limits: Limits | None = None,
    on_lost: Callable[[Dropped], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[Conversation]:
    """Yield the conversations of :class:`SpanFiles`.

    Raises:
        InputError: at the end, after an error in the data; complete parts were yielded before.
            Immediately, if a file cannot be read or exceeds a limit.
    """
    several = [files] if isinstance(files, str | os.PathLike | InputFile) else files
    with closing(SpanFiles(several, limits=limits, on_lost=on_lost, on_note=on_note)) as recorded:
        for place in range(len(recorded)):
            yield recorded[place]
    if recorded.problems:
        raise InputError(recorded.problems)


def body_records(body: bytes, form: str, report: Report) -> Iterator[Record]:
    """Yield the spans and log records of one export, ``form`` being ``protobuf`` or ``json``.

    They are the same as for a file with this content. ``report`` has what could not be kept, and
    what is broken.

    Raises:
        InputError: the library for protobuf is missing.
    """
    limits = Limits()
    if form == "json":
        pieces = json_records(body.removeprefix(BOM).strip(BLANK), Place(1), report, limits)
        return chain.from_iterable(_kept(p, report) for p in _in_pieces(pieces, report))
    return chain.from_iterable(
        _kept(piece, report) for piece in proto_records(body, Place(), report, limits)
    )


def records_of(file: InputFile, report: Report) -> Iterator[Record]:
    """Yield the spans and log records of a file, as ``body_records`` does.

    Raises:
        InputError: the file cannot be read, is none of the known forms, or is over a limit.
    """
    return chain.from_iterable(_kept(piece, report) for piece in _pieces_of(file, report, Limits()))


def _fill(store: TraceStore, file: Path | InputFile, report: Report, limits: Limits) -> None:
    flushed = 0
    for piece in _pieces_of(file, report, limits):
        for record in _kept(piece, report):
            if type(record) is Span:
                store.add(record)
            else:
                store.add_log(record)  # type: ignore[arg-type]
        if report.read - flushed > _IN_MEMORY:
            flushed = report.read
            store.flush()


def _kept(records: Piece, report: Report) -> Piece:
    """Leave out spans without an id, and values that are nested too deeply."""
    kept: Piece = []
    for record in records:
        if not _FLAT.issuperset(map(type, record.attributes.values())):
            _drop_deep(record.attributes, report)
        if type(record) is Span:
            for event in record.events:
                _drop_deep(event.attributes, report)
            if not (record.trace_id and record.span_id):
                report.lose("spans without an id", example=f"{report.file}: {record.name}")
                continue
        elif type(record) is Event and is_value_too_deep(record.body):
            record.body = None
            report.lose("attributes nested too deep", example=f"{report.file}: body")
        kept.append(record)
    return kept


_FLAT = frozenset({str, int, float, bool, type(None)})
"""Types of values without nested values."""


def _drop_deep(attributes: dict[str, Any], report: Report) -> None:
    """Leave out attributes that are nested too deeply; the rest of a record stays."""
    deep = [
        key
        for key, value in attributes.items()
        if isinstance(value, dict | list) and is_value_too_deep(value)
    ]
    for key in deep:
        del attributes[key]
        report.lose("attributes nested too deep", example=f"{report.file}: {key}")
