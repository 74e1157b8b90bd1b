"""Text and data as they pass between users, agents and tools."""

from __future__ import annotations

from typing import Any

import msgspec


class Part(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An attachment. Its bytes are not kept; ``sha256`` (hex) tells two apart."""

    type: str
    mime: str | None = None
    uri: str | None = None
    sha256: str | None = None


class Content(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What was said, asked or returned.

    ``data`` is JSON: structured output, or the result of a tool that returns an object.
    """

    text: str | None = None
    data: Any = None
    parts: list[Part] | None = None

    def __bool__(self) -> bool:
        return bool(self.text) or self.data is not None or bool(self.parts)

    def plain(self) -> str:
        """Return the text, or the data as compact JSON, or an empty string."""
        if self.text is not None:
            return self.text
        return "" if self.data is None else msgspec.json.encode(self.data).decode()
