"""JSON values that stand one after the other in a text, found without reading them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

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
