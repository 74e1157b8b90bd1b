"""Lines: where in a file a value stands."""

from __future__ import annotations

import json
import re
from json import decoder

from .explain import Path
from .spelling import snake

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)


def json_line(text: str, path: Path) -> int:
    """Return the line (from 1) on which the entry at ``path`` starts in a valid JSON text.

    A path that leads nowhere ends at its deepest part that exists.
    """
    start = value = _skip(text, 1 if text.startswith("\ufeff") else 0)
    for step in path:
        found = _entry(text, value, step)
        if found is None:
            break
        start, value = found
    return text.count("\n", 0, start) + 1


def _entry(text: str, at: int, step: str | int) -> tuple[int, int] | None:
    """Find an entry of the object or list that starts at ``at``: where it and its value begin."""
    opener = text[at]
    if opener not in "{[" or (opener == "{") != isinstance(step, str):
        return None
    index = 0
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        start, key = at, str(index)
        if opener == "{":
            key, at = decoder.scanstring(text, at + 1, False)  # type: ignore[attr-defined]
            at = _skip(text, _skip(text, at) + 1)
        if key == step or snake(key) == str(step):
            return start, at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        index += 1
    return None


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
