"""Attribute values as content: text, JSON that was written as text, and attachments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from baton.model import Content, Part

_DECODE = msgspec.json.Decoder().decode
HIDDEN = frozenset({"[REDACTED]", "__REDACTED__", "<elided>", "<redacted>", "[redacted]"})
"""What instrumentations write in place of content that is not to be recorded."""
_ATTACHMENTS = frozenset(
    {"blob", "file", "uri", "image", "image_url", "input_image", "audio", "document", "video"}
)


def parsed(value: Any) -> Any:
    """Return the object or list that a text holds as JSON, else the value as it is."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return _DECODE(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return value


def text(value: Any) -> str | None:
    """Return a text that is not empty; ``None`` for anything else."""
    return value if isinstance(value, str) and value else None


def whole(value: Any) -> int | None:
    """Return a count; numbers may come as texts. ``None`` for what is no count."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        count = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return count if count >= 0 else None


def amount(value: Any) -> float | None:
    """Return a finite amount that is not negative; ``None`` for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        figure = float(value)
    except ValueError:
        return None
    return figure if 0 <= figure < float("inf") else None


def first(values: Mapping[str, Any], *keys: str) -> Any:
    """Return the value of the first key that has one."""
    for key in keys:
        value = values.get(key)
        if value is not None:
            return value
    return None


def content(value: Any) -> Content | None:
    """Return a value as content: texts as text, blocks of text joined, all else as data."""
    value = parsed(value)
    if value is None or value == "" or (isinstance(value, str) and value in HIDDEN):
        return None
    if isinstance(value, str):
        return Content(text=value)
    blocks = _blocks(value)
    return (blocks or None) if blocks is not None else Content(data=value)


def _blocks(value: Any) -> Content | None:
    """Read a list of blocks ({"text": ...}, images, ...); ``None`` when it is none."""
    if not isinstance(value, list) or not value:
        return None
    texts: list[str] = []
    data: list[Any] = []
    parts: list[Part] = []
    for block in value:
        if not isinstance(block, dict):
            return None
        said = block_text(block)
        if said is not None:
            texts += [] if said in HIDDEN else [said]
        elif set(block) == {"json"}:
            data.append(block["json"])
        elif (part := attachment(block)) is not None:
            parts.append(part)
        else:
            return None
    joined = "\n".join(texts) if texts else None
    return Content(
        text=joined, data=data[0] if len(data) == 1 else data or None, parts=parts or None
    )


def shown(value: Any) -> Any:
    """Return a value as data; ``None`` for what was left out when it was recorded."""
    value = parsed(value)
    return None if isinstance(value, str) and (not value or value in HIDDEN) else value


def block_text(block: Mapping[str, Any]) -> str | None:
    """Return the text of a block that is nothing but text."""
    kind = block.get("type")
    if kind in ("text", "input_text", "output_text") or (kind is None and "text" in block):
        said = block.get("text", block.get("content"))
        if isinstance(said, dict):
            said = said.get("value")
        return said if isinstance(said, str) and (kind is not None or len(block) <= 2) else None
    return None


def attachment(block: Mapping[str, Any]) -> Part | None:
    """Return a block that is an attachment, without its bytes."""
    kind = block.get("type")
    if kind is None:
        kind = next((key for key in block if key in _ATTACHMENTS), None)
    if kind not in _ATTACHMENTS:
        return None
    uri = first(block, "uri", "url", "file_id", "image_url")
    return Part(
        type=str(kind),
        mime=text(first(block, "mime_type", "media_type", "modality")),
        uri=uri if isinstance(uri, str) and not uri.startswith("data:") else None,
    )
