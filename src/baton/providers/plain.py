"""What comes back from code of the user's own, as JSON."""

from __future__ import annotations

import math
from typing import Any

import msgspec

NOT_JSON = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
"""What :func:`as_json` raises."""


def as_json(value: Any) -> bytes:
    """Encode a value; nan and infinity, which JSON does not have, raise ValueError."""
    encoded = msgspec.json.encode(value)
    # They are encoded as null: where there is none, nobody has to look for them.
    if b"null" in encoded and not _is_finite(msgspec.to_builtins(value)):
        raise ValueError("nan and infinity are no numbers there")
    return encoded


def _is_finite(value: Any) -> bool:
    """Look at every number of plain data, however deep it lies."""
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, float) and not math.isfinite(each):
            return False
        if isinstance(each, dict):
            rest += each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            rest += each
    return True
