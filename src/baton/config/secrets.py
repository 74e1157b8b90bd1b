"""Taking secrets out of what is stored and shown."""

from __future__ import annotations

import re
from typing import Any

_SECRET = re.compile(
    r"(api|access|private)[-_]?key|token(?!s)|password|secret|authorization|credential|cookie"
    r"|(^|[-_])auth$",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<=://)[^/\s]+(?=@)")


def masked(value: Any, key: str = "") -> Any:
    """Return plain data with stars for what a key or an address says is secret, and headers."""
    if isinstance(value, list):
        return [masked(item, key) for item in value]
    if _SECRET.search(key) and value is not None:
        return "***"
    if isinstance(value, dict):
        if key.lower() == "headers":
            return dict.fromkeys(value, "***")
        return {name: masked(item, str(name)) for name, item in value.items()}
    return _USERINFO.sub("***", value) if isinstance(value, str) else value
