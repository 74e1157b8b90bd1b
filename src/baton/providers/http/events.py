"""The body of an answer as one JSON document: itself, or the list of its events."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from baton.http.answers import NOT_JSON, Body, is_html, utf8, what_it_is
from baton.http.blank import Blank
from baton.http.limits import Stream

_END = b"[DONE]"  # how some end a stream


class Document(NamedTuple):
    """What came, as far as it could be read; ``trouble`` says why there may be more."""

    value: Any
    trouble: str | None = None


def read_body(body: Body, stream: Stream, blank: Blank) -> Document:
    """Read an answer; ``UNSET`` where it is no JSON."""
    try:
        data = utf8(body).removeprefix(codecs.BOM_UTF8)
    except (UnicodeError, LookupError) as error:
        return Document(msgspec.UNSET, f"the answer is not {body.charset}: {blank(str(error))}")
    if is_html(data):
        return Document(msgspec.UNSET, f"the answer is {what_it_is(body, blank)}, not JSON")
    if stream == "none":
        return _whole(body, data, blank)
    pieces = _sse(data) if stream == "sse" else _lines(data)
    events: list[Any] = []
    for number, piece in enumerate(pieces, 1):
        try:
            events.append(_event(piece))
        except NOT_JSON:
            shown = blank(" ".join(piece.data[:80].decode(errors="replace").split()))
            trouble = body.cut or f"event {number} of the answer is not JSON: “{shown}”"
            return Document(events, trouble)
    if body.cut is None and not events:
        what = f"it is {what_it_is(body, blank)}" if data.strip() else "it is empty"
        return Document(msgspec.UNSET, f"the answer holds no event ({stream}): {what}")
    return Document(events, body.cut)


def _whole(body: Body, data: bytes, blank: Blank) -> Document:
    if body.cut is not None:
        return Document(msgspec.UNSET, body.cut)
    try:
        return Document(msgspec.json.decode(data))
    except NOT_JSON:
        what = what_it_is(body, blank)
        return Document(msgspec.UNSET, f"the answer is {what}, not JSON")


class _Piece(NamedTuple):
    data: bytes
    name: str | None = None


def _event(piece: _Piece) -> Any:
    """Decode an event; its name, where it has one, stands beside what it holds."""
    value = msgspec.json.decode(piece.data)
    if piece.name is None:
        return value
    if isinstance(value, dict):
        return {"event": piece.name, **value}
    return {"event": piece.name, "data": value}


def _lines(data: bytes) -> Iterator[_Piece]:
    for line in data.splitlines():
        if line.strip():
            yield _Piece(line.strip())


def _sse(data: bytes) -> Iterator[_Piece]:
    """Yield the events of a stream; one that has no data says nothing."""
    pieces: list[bytes] = []
    name = None
    for line in [*data.splitlines(), b""]:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            text = b"\n".join(pieces)
            if text.strip() not in (b"", _END):
                yield _Piece(text, name)
            pieces, name = [], None
        elif field == b"data":
            pieces.append(value)
        elif field == b"event":
            name = value.decode(errors="replace")
