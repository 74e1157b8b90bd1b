"""OTLP as received: valid bodies, how much of them is accepted, and the answers.

A valid body is stored as received. If single spans are invalid, the rest of the body is stored, and
the answer states how many were rejected: the partial success of the protocol.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Literal, NamedTuple, cast

import msgspec
import zstandard
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from baton.readers.otlp.wire.protobuf import BYTES, Field, NoProtobuf, fields

Kind = Literal["traces", "logs"]
Signal = Literal["traces", "logs", "metrics"]
Form = Literal["protobuf", "json"]


class NotOtlp(ValueError):  # noqa: N818 - says what is wrong
    """A body that is not OTLP at all; nothing of it is stored."""


class TooLarge(ValueError):  # noqa: N818 - says what is wrong
    """A body that is larger than the server accepts."""


class Export(NamedTuple):
    """The part of a body to store: ``records`` is the number of its spans or log records.

    ``rejected`` counts those that are not stored, and ``reason`` is why. ``body`` is empty if there
    is nothing to store.
    """

    body: bytes
    records: int
    rejected: int
    reason: str


class Cleaner(NamedTuple):
    """Functions that change bodies before they are stored, for each form."""

    protobuf: Callable[[Any], None]
    json: Callable[[Any], Any]


def unpack(data: bytes, encoding: str, most: int) -> bytes:
    """Unpack a body by its content encoding; never more than ``most`` bytes of it.

    Raises:
        NotOtlp: it is broken, or its end is missing.
        TooLarge: it is larger.
        LookupError: the encoding is not supported.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return data
    if encoding in ("gzip", "x-gzip"):
        unpacked = _gunzip(data, most)
    elif encoding == "zstd":
        try:
            reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(
                BytesIO(data), read_across_frames=True
            )
            pieces, size = [], 0
            while size <= most and (piece := reader.read(min(_PIECE, most + 1 - size))):
                pieces.append(piece)
                size += len(piece)
            unpacked = b"".join(pieces)
        except zstandard.ZstdError as error:
            raise NotOtlp(f"the body is not zstd: {error}") from None
        if data and not unpacked and not data.startswith(_ZSTD):
            raise NotOtlp("the body is not zstd")
    else:
        raise LookupError(encoding)
    if len(unpacked) > most:
        raise TooLarge(f"the body is larger than {most:,} bytes, unpacked")
    return unpacked


_WINDOW = 8 << 20
"""Maximum window of a zstd frame in bytes, which the specification asks every reader to support."""
_PIECE = 1 << 20
"""Bytes that are unpacked at once, so that a body that is too large is refused after one piece more
than allowed, and not unpacked as a whole."""
_ZSTD = b"\x28\xb5\x2f\xfd"


def _gunzip(data: bytes, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    rest = data
    while rest and size <= most:
        member = zlib.decompressobj(wbits=31)
        try:
            piece = member.decompress(rest, most + 1 - size)
        except zlib.error as error:
            raise NotOtlp(f"the body is not gzip: {error}") from None
        pieces.append(piece)
        size += len(piece)
        if size <= most and not member.eof:
            raise NotOtlp("the body is gzip without its end")
        rest = member.unused_data
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def read_export(
    kind: Kind, form: Form, body: bytes, most: int, cleaner: Cleaner | None = None
) -> Export:
    """Check a body, and take the valid part: at most ``most`` records.

    Raises:
        NotOtlp: with the reason.
    """
    if not body.strip(b" \t\r\n"):
        if form == "json":
            raise NotOtlp("the body is empty, and no JSON")
        return Export(b"", 0, 0, "")
    read = _read_protobuf if form == "protobuf" else _read_json
    try:
        export = read(kind, body, most, cleaner)
    except RecursionError:
        raise NotOtlp("the body is nested too deeply") from None
    return export if export.records else export._replace(body=b"")


class _Reasons:
    """Counts rejected records, and collects the first reasons."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.kept = 0
        self.counts: dict[str, int] = {}

    def takes(self, reason: str) -> bool:
        """Return whether a record is accepted: no ``reason`` is against it, and there is space."""
        if not reason and self.kept >= self._most:
            reason = f"beyond the {self._most:,} records that a request may have"
        if reason:
            self.counts[reason] = self.counts.get(reason, 0) + 1
            return False
        self.kept += 1
        return True

    def export(self, body: bytes) -> Export:
        reason = "; ".join(f"{count:,} {why}" for why, count in self.counts.items())
        return Export(body, self.kept, sum(self.counts.values()), reason)


_NO_TRACE = "without a trace id of 16 bytes that are not all zero"
_NO_SPAN = "without a span id of 8 bytes that are not all zero"
_BROKEN = "that protobuf cannot decode: broken, or their text is not UTF-8"
_NO_TRACE_HEX = "without a trace id"
_NO_SPAN_HEX = "without a span id"
_ZERO_TRACE, _ZERO_SPAN = bytes(16), bytes(8)


def _against(kind: Kind, record: Any) -> str:
    """Return the reason to reject a record; log records need no ids."""
    if kind == "traces":
        if len(record.trace_id) != 16 or record.trace_id == _ZERO_TRACE:
            return _NO_TRACE
        if len(record.span_id) != 8 or record.span_id == _ZERO_SPAN:
            return _NO_SPAN
    return ""


def scopes_of(kind: Kind, group: Any) -> Any:
    """Return the scopes of a group of a message."""
    return group.scope_spans if kind == "traces" else group.scope_logs


def records_of(kind: Kind, scope: Any) -> Any:
    """Return the spans or log records of a scope of a message."""
    return scope.spans if kind == "traces" else scope.log_records


def _read_protobuf(kind: Kind, body: bytes, most: int, cleaner: Cleaner | None) -> Export:
    type_ = ExportTraceServiceRequest if kind == "traces" else ExportLogsServiceRequest
    reasons = _Reasons(most)
    try:
        message: Any = type_.FromString(body)
    except DecodeError:
        body = _without_broken(kind, body, reasons)
        message = type_.FromString(body)
    groups = message.resource_spans if kind == "traces" else message.resource_logs
    if not groups and not reasons.counts:
        raise NotOtlp(f"the body is not a protobuf message with {kind}")
    changed = False
    for group in groups:
        for scope in scopes_of(kind, group):
            records = records_of(kind, scope)
            bad = [
                at for at, record in enumerate(records) if not reasons.takes(_against(kind, record))
            ]
            for at in reversed(bad):
                del records[at]
                changed = True
    if cleaner is not None:
        cleaner.protobuf(message)
        changed = True
    return reasons.export(message.SerializeToString() if changed else body)


def _without_broken(kind: Kind, body: bytes, reasons: _Reasons) -> bytes:
    """Leave out records that cannot be decoded, such as those with text that is not UTF-8.

    One of them is not a reason to lose the others of its request.

    Raises:
        NotOtlp: what is around the records is broken.
    """
    data = memoryview(body)
    record_type = Span if kind == "traces" else LogRecord

    def parts(start: int, end: int) -> Iterator[Field]:
        for field in fields(data, start, end):
            if field.cut:
                raise NotOtlp(f"the body ends in the middle, at byte {field.start:,}")
            yield field

    def whole(field: Field) -> bytes:
        return _encoded(field, data[field.start : field.end])

    def scope(field: Field) -> bytes:
        kept = []
        for part in parts(field.start, field.end):
            if part.number == _RECORDS and part.type == BYTES:
                try:
                    record_type.FromString(data[part.start : part.end])  # type: ignore[arg-type]
                except DecodeError:
                    reasons.takes(_BROKEN)
                    continue
            kept.append(whole(part))
        return _encoded(field, b"".join(kept))

    def group(field: Field) -> bytes:
        inner = parts(field.start, field.end)
        return _encoded(
            field,
            b"".join(
                scope(part) if part.number == _SCOPES and part.type == BYTES else whole(part)
                for part in inner
            ),
        )

    try:
        rest = b"".join(
            group(field) if field.number == 1 and field.type == BYTES else whole(field)
            for field in parts(0, len(data))
        )
        type_ = ExportTraceServiceRequest if kind == "traces" else ExportLogsServiceRequest
        type_.FromString(rest)
    except NoProtobuf as error:
        raise NotOtlp(f"the body is not protobuf from byte {error.at:,} on") from None
    except DecodeError:
        raise NotOtlp("the body is not OTLP: a resource or scope cannot be decoded") from None
    return rest


_SCOPES, _RECORDS = 2, 2
"""The numbers of the fields that hold scopes in a group, and records in a scope."""


def _encoded(field: Field, value: bytes | memoryview) -> bytes:
    """Write a field again, with another value if it holds bytes."""
    tag = varint(field.number << 3 | field.type)
    return tag + (varint(len(value)) if field.type == BYTES else b"") + bytes(value)


def varint(number: int) -> bytes:
    """Write a number as protobuf does."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


class _Camel(msgspec.Struct, rename="camel", gc=False):
    """The parts of OTLP JSON that are examined; the parser passes over the others."""


class _Ids(_Camel):
    trace_id: str
    span_id: str


class _ScopeSpans(_Camel):
    spans: list[_Ids] = []


class _ResourceSpans(_Camel):
    scope_spans: list[_ScopeSpans] = []


class _Traces(_Camel):
    resource_spans: list[_ResourceSpans]


_TRACES = msgspec.json.Decoder(_Traces)
_BOM = b"\xef\xbb\xbf"
_GROUP_KEYS = {
    "traces": ("resourceSpans", "resource_spans"),
    "logs": ("resourceLogs", "resource_logs"),
}
_SCOPE_KEYS = {
    # The last one is of senders from before 2022.
    "traces": ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"),
    "logs": ("scopeLogs", "scope_logs", "instrumentationLibraryLogs"),
}
_RECORD_KEYS = {"traces": ("spans",), "logs": ("logRecords", "log_records", "logs")}


def _read_json(kind: Kind, body: bytes, most: int, cleaner: Cleaner | None) -> Export:
    body = body.removeprefix(_BOM)
    if kind == "traces" and cleaner is None:
        try:
            traces = _TRACES.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # it is examined again below, to find the error
        else:
            spans = [s for g in traces.resource_spans for c in g.scope_spans for s in c.spans]
            if len(spans) <= most and all(span.trace_id and span.span_id for span in spans):
                return Export(body, len(spans), 0, "")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotOtlp(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise NotOtlp(f"the body is not an object with `{_GROUP_KEYS[kind][0]}`")
    if value and not any(key in value for key in _GROUP_KEYS[kind]):
        raise NotOtlp(f"the body has no `{_GROUP_KEYS[kind][0]}`")
    reasons = _Reasons(most)
    for group in _objects(value, _GROUP_KEYS[kind]):
        for scope in _objects(group, _SCOPE_KEYS[kind]):
            for key in _RECORD_KEYS[kind]:
                if key in scope:
                    records = _objects(scope, (key,))
                    scope[key] = [r for r in records if reasons.takes(_against_json(kind, r))]
    if cleaner is not None:
        value = cleaner.json(value)
    elif not reasons.counts:
        return reasons.export(body)
    return reasons.export(msgspec.json.encode(value))


def _objects(holder: dict[str, Any], keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the objects in the lists under some keys; ``null`` is an empty list."""
    listed: list[dict[str, Any]] = []
    for key in keys:
        items = holder.get(key)
        if items is None:
            continue
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise NotOtlp(f"`{key}` is not a list of objects")
        listed += items
    return listed


def _against_json(kind: Kind, record: dict[str, Any]) -> str:
    if kind == "traces":
        for keys, reason in (
            (("traceId", "trace_id"), _NO_TRACE_HEX),
            (("spanId", "span_id"), _NO_SPAN_HEX),
        ):
            id_ = next((record[key] for key in keys if record.get(key)), None)
            if not isinstance(id_, str):
                return reason
    return ""


_RESPONSES: dict[str, tuple[type[Message], str]] = {
    "traces": (ExportTraceServiceResponse, "rejected_spans"),
    "logs": (ExportLogsServiceResponse, "rejected_log_records"),
    "metrics": (ExportMetricsServiceResponse, "rejected_data_points"),
}


def response_of(kind: Signal, rejected: int, reason: str) -> Any:
    """Make the message that answers an export."""
    type_, name = _RESPONSES[kind]
    message = cast("Any", type_())
    if rejected or reason:
        setattr(message.partial_success, name, rejected)
        message.partial_success.error_message = reason
    return message


def answer(
    kind: Kind | Literal["metrics"], form: Form, rejected: int = 0, reason: str = ""
) -> bytes:
    """Write the answer to an export, in the form of the request."""
    if form == "protobuf":
        return bytes(response_of(kind, rejected, reason).SerializeToString())
    if not rejected and not reason:
        return b"{}"
    name = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}.get(kind, "rejectedDataPoints")
    # Numbers of 64 bits are texts in the JSON of protobuf.
    return msgspec.json.encode({"partialSuccess": {name: str(rejected), "errorMessage": reason}})


def status(form: Form, code: int, message: str) -> bytes:
    """Write what is wrong as a ``google.rpc.Status``, in the form of the request.

    ``code`` is one of gRPC's (https://grpc.io/docs/guides/status-codes/).
    """
    if form == "json":
        return msgspec.json.encode({"code": code, "message": message})
    text = message.encode("utf-8", "replace")
    return b"\x08" + varint(code) + b"\x12" + varint(len(text)) + text
