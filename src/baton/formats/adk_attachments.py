"""What is attached to a message of ADK, without its bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable
from typing import Any

from baton.model import Part

from .evalset import Part as WirePart

_KINDS = ("inline_data", "file_data")


def attachments(parts: Iterable[WirePart]) -> list[Part] | None:
    """Return the files of a message; ``None`` when there are none."""
    blobs = [(kind, getattr(part, kind)) for part in parts for kind in _KINDS]
    return [_attachment(kind, blob) for kind, blob in blobs if blob] or None


def _attachment(kind: str, blob: dict[str, Any]) -> Part:
    data = blob.get("data")
    return Part(
        type=kind,
        mime=blob.get("mime_type") or blob.get("mimeType"),
        uri=blob.get("file_uri") or blob.get("fileUri"),
        sha256=hashlib.sha256(_bytes(data)).hexdigest() if isinstance(data, str) else None,
    )


def _bytes(data: str) -> bytes:
    """Decode base64 in either alphabet; what is neither counts as it stands."""
    try:
        return base64.b64decode(data.replace("-", "+").replace("_", "/"), validate=True)
    except binascii.Error:
        return data.encode()
