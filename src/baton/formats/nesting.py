"""The nesting depth of values: counted without recursion, before anything is built."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from baton.model.limits import JSON_DEPTH

# All bytes except brackets and quotes.
_OTHERS = bytes(byte for byte in range(256) if byte not in b'"[]{}')
_SQUARE = bytes.maketrans(b"{}", b"[]")
TOO_DEEP = f"nested too deeply: more than {JSON_DEPTH.value} levels, which is the limit"
_RUN = re.compile(rb"\[++|\]++")
_QUOTED = re.compile(rb'"[^"]*+"')


def is_too_deep(data: bytes, limit: int = JSON_DEPTH.value) -> bool:
    """Tell whether JSON text has more than ``limit`` levels of lists and objects.

    For text that is not JSON, brackets are counted. This takes a fraction of the time of parsing:
    bytes are removed in bulk, not one by one in Python. ``{"a": ["]"]}`` becomes ``{["]"]}`` (only
    brackets and quotes), ``[[]]`` (without strings), and then loses its innermost pair once per
    level.
    """
    # Few brackets cannot be nested deeply. Deleting a byte jumps between occurrences, while
    # counting visits every byte: half the time, as brackets are few.
    lists, objects = data.replace(b"[", b""), data.replace(b"{", b"")
    if 2 * len(data) - len(lists) - len(objects) <= limit:
        return False
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes without a bracket between them can be removed: what is inside a string stays
    # inside.
    brackets = data.translate(None, _OTHERS).replace(b'""', b"")
    if b'"' in brackets:
        brackets = _QUOTED.sub(b"", brackets)
    brackets = brackets.translate(_SQUARE, b'"')
    level = 0
    while brackets and level + len(brackets) > limit:
        # With many pairs, removing them shortens the text quickly; with few pairs, there are few
        # runs of equal brackets. Both together are linear: with removal alone, 199 levels in 40 MB
        # would take a minute.
        if brackets.count(b"[]") * 16 < len(brackets):
            # The maximum number of open brackets.
            depth = deepest = 0
            for run in _RUN.finditer(brackets):
                length = run.end() - run.start()
                depth += length if run[0][0] == 91 else -length
                deepest = max(deepest, depth)
            return level + deepest > limit
        brackets = brackets.replace(b"[]", b"")
        level += 1
    return level > limit


def decode_json(data: bytes | str, limit: int = JSON_DEPTH.value) -> Any:
    """Parse JSON inside other data, such as the text of an attribute.

    Raises:
        msgspec.DecodeError: it is not JSON, not UTF-8, or has more than ``limit`` levels.
    """
    try:
        text = data.encode() if isinstance(data, str) else data
        if len(text) > limit and is_too_deep(text, limit):
            raise msgspec.DecodeError(TOO_DEEP)
        return msgspec.json.decode(text)
    except UnicodeError as error:
        raise msgspec.DecodeError(str(error)) from None


def is_value_too_deep(value: Any) -> bool:
    """Tell whether plain data has more levels of lists and objects than JSON may have."""
    level = [value]
    for _ in range(JSON_DEPTH.value):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list | tuple):
                inner += each
        if not inner:
            return False
        level = inner
    return any(isinstance(each, dict | list | tuple) for each in level)
