"""Detects by its first bytes whether a file has one of the wire's formats."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from baton.formats.input_files import InputFile
from baton.model import InputError

from .protobuf import BYTES, NoProtobuf, fields
from .streams import GZIP, ZSTD, Limits, Report, unpacked

Form = Literal["json", "protobuf", "frames"]
# The names of the outermost objects are in the first kilobytes; 64 KiB allow for a resource with
# many attributes before them.
HEAD = 1 << 16
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"(\s*:)?|[{}\[\]"]', re.DOTALL)
# One of these names is enough: no other format has them. `spans` or `trace_id` alone occurs in the
# logs of any service, so some names count only together (`_TOGETHER`): those of Jaeger's export, of
# the SDK's console exporter, and of MLflow's traces (versions 3 and 2, whole or only their spans).
_SURE = {
    b'"resourceSpans"', b'"resourceLogs"', b'"resourceMetrics"', b'"resource_spans"',
    b'"resource_logs"', b'"scopeSpans"', b'"instrumentationLibrarySpans"',
}  # fmt: skip
_TOGETHER = (
    {b'"traceID"', b'"spans"'},
    {b'"context"', b'"trace_id"', b'"start_time"'},
    {b'"info"', b'"trace_metadata"'},
    {b'"info"', b'"request_metadata"'},
    {b'"spans"', b'"trace_id"', b'"start_time_unix_nano"'},
)
_RARE = (*_SURE, b'"traceID"', b'"trace_id"', b'"trace_metadata"', b'"request_metadata"')


def is_otlp(file: Path | str | InputFile) -> bool:
    """Return whether a file holds spans or log records, in any form this package reads.

    Reads the first 64 KiB, unpacked. False for a file that cannot be read.
    """
    if not isinstance(file, InputFile):
        with InputFile(Path(file)) as opened:
            return is_otlp(opened)
    try:
        stream = file.stream()
    except InputError:
        return False
    try:
        head = unpacked(stream, Report(str(file.path)), Limits()).read(HEAD)
    except InputError:
        return True
    except OSError:
        return False
    return form_of(head) is not None


def form_of(head: bytes) -> Form | None:
    """Return the format of a file, from its first bytes; ``None`` for an unknown format."""
    if head.isspace():  # A new line and a space would pass for the start of an export.
        return None
    return _bare_form(head) or ("frames" if _is_frame(head) else None)


def _bare_form(head: bytes) -> Literal["json", "protobuf"] | None:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in (b"{", b"[") and _is_json(text):
        return "json"
    return "protobuf" if head[:1] == b"\n" and _is_export(memoryview(head)) else None


def _is_json(text: bytes) -> bool:
    """Search for the keys near the top level, if any of them is in the text at all."""
    if not any(key in text for key in _RARE):
        return False
    depth = 0
    keys: set[bytes] = set()
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
        elif match[1] and depth <= 4:
            keys.add(token[: -len(match[1])])
            if keys & _SURE or any(together <= keys for together in _TOGETHER):
                return True
        if depth == 0:
            break
    return False


def _is_frame(head: bytes) -> bool:
    """Return whether data starts with a four-byte length before a message, packed or not."""
    length, body = int.from_bytes(head[:4], "big"), head[4:]
    if len(head) < 6 or length < 2 or length > 1 << 31:
        return False
    if body.startswith((ZSTD, GZIP)):
        return True
    return _bare_form(body[:length]) is not None


def _is_export(head: memoryview) -> bool:
    """Return whether data is a serialised export: groups of a resource and scopes in field 1."""
    try:
        outer = next(fields(head, 0, len(head)), None)
        if outer is None or outer.number != 1 or outer.type != BYTES:
            return False
        inner = list(fields(head, outer.start, outer.end))
    except NoProtobuf:
        return False
    return bool(inner) and all(
        field.type == BYTES and field.number in (1, 2, 3, 1000) and (outer.cut or not field.cut)
        for field in inner
    )
