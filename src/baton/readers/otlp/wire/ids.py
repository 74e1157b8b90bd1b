"""Ids as the wires write them, to lower-case hex."""

from __future__ import annotations

import base64
import binascii


def trace_id_of(text: str | None) -> str:
    """Return 32 lower-case hex digits; empty when there is no id."""
    return _hex(text, 32, 24) if text else ""


def span_id_of(text: str | None) -> str:
    """Return 16 lower-case hex digits; empty when there is no id."""
    return _hex(text, 16, 12) if text else ""


def _hex(text: str, digits: int, base64_length: int) -> str:
    """Read an id; ``base64_length`` is how long one is as stock protobuf-to-JSON prints it.

    Shorter hex is filled up, as tracers with short ids leave zeros out. What is no id by any of
    these rules names the same thing wherever it stands, so it is kept as it is.
    """
    if len(text) == base64_length and text.endswith("="):
        try:
            text = base64.b64decode(text, validate=True).hex()
        except binascii.Error:
            return text
    id_ = text.lower().removeprefix("0x")
    if len(id_) != digits:
        id_ = id_.zfill(digits)
    return id_ if id_.strip("0") else ""
