"""Taking secrets out of what is stored and shown."""

from __future__ import annotations

import re
from typing import Any

_SECRET = re.compile(
    r"(api|access|private)[-_]?key|token(?!s)|password|secret|authorization|credential|cookie"
    r"|(^|[-_])auth$",
    re.IGNORECASE,
)
_QUERY = re.compile(
    r"(?<=[?&])([^=&\s]*(?:key|token|secret|password|signature|auth)[^=&\s]*=)[^&#\s]+",
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
    if not isinstance(value, str):
        return value
    return _QUERY.sub(r"\1***", _USERINFO.sub("***", value))
