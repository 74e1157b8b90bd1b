"""The fields of a protobuf message, found without decoding it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Field(NamedTuple):
    """A field: its number and type, and where its value lies. ``cut``: the end is missing."""

    number: int
    type: int
    start: int
    end: int
    cut: bool = False


class NoProtobuf(ValueError):  # noqa: N818 - says what it is
    """Bytes that are no protobuf message. ``at`` is where that shows."""

    def __init__(self, at: int) -> None:
        super().__init__(f"no protobuf at byte {at}")
        self.at = at


def fields(data: memoryview, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message at ``start``. The last one may be cut.

    Raises:
        NoProtobuf: these bytes are none.
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
    """Read a varint; where its end is missing, the place after it is beyond ``end``."""
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise NoProtobuf(at)
    return value, end + 1
