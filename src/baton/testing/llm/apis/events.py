"""How events of a stream are written: as server-sent events, or as Amazon's binary messages."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Any

import msgspec

Event = tuple[str | None, Any]
"""One event of a stream: its name, and JSON, or a text that is sent as it is."""

_TEXT_HEADER = 7


def server_sent(events: Iterable[Event]) -> bytes:
    """Write server-sent events."""
    lines: list[bytes] = []
    for name, data in events:
        text = data.encode() if isinstance(data, str) else msgspec.json.encode(data)
        lines.append((f"event: {name}\n".encode() if name else b"") + b"data: " + text + b"\n\n")
    return b"".join(lines)


def amazon(events: Iterable[Event]) -> bytes:
    """Write messages of ``application/vnd.amazon.eventstream``.

    One is the lengths of all of it and of its headers, their checksum, the headers, the JSON, and
    the checksum of all that; numbers are big-endian, of 4 bytes.
    """
    return b"".join(_message(name or "", msgspec.json.encode(data)) for name, data in events)


def _message(name: str, payload: bytes) -> bytes:
    fields = {
        ":event-type": name,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    headers = b"".join(_header(key.encode(), value.encode()) for key, value in fields.items())
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    start = lengths + struct.pack(">I", zlib.crc32(lengths)) + headers + payload
    return start + struct.pack(">I", zlib.crc32(start))


def _header(name: bytes, value: bytes) -> bytes:
    return (
        struct.pack(">B", len(name)) + name + struct.pack(">BH", _TEXT_HEADER, len(value)) + value
    )
