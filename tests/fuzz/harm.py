"""Harm done to recordings, the same for the same dice: values, lines and bytes."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

ODD: list[Any] = [
    None, True, False, 0, -1, 3.5, 1e308, -1e300, float("nan"), float("inf"), 2**63, 10**30, "",
    "x", " ", "\ud800", "a\x00b", "\U0001f600", "Zoë Müller", "{", '{"a": [1', "[]", "null", "-5",
    "2026-01-01T00:00:00Z", "NaN", [], {}, [None], [[]], {"": None}, {"a": {"b": []}}, ["x"] * 40,
    {"type": "text"}, {"role": "user", "content": None}, "agent", "transfer_to_agent",
]  # fmt: skip
"""What stands in a place it is not meant for."""
_BYTES = [b"{", b"}", b'"', b"\n", b"\xff", b"[", b"\t", b"\x00", b"\\", b"data:", b"\xed\xa0\x80"]
_MOST = 4000


def places(value: Any) -> list[tuple[Any, Any]]:
    """List every container of a value with every key or index in it, up to a limit."""
    found: list[tuple[Any, Any]] = []
    stack = [value]
    while stack and len(found) < _MOST:
        node = stack.pop()
        keys = node if isinstance(node, dict) else range(len(node) if isinstance(node, list) else 0)
        for key in keys:
            found.append((node, key))
            stack.append(node[key])
    return found


def _drop(container: Any, key: Any, _other: Any, _dice: random.Random) -> None:
    del container[key]


def _double(container: Any, key: Any, _other: Any, _dice: random.Random) -> None:
    if isinstance(container, list):
        container.insert(key, copy.deepcopy(container[key]))
    else:
        container[f"{key}2"] = copy.deepcopy(container[key])


def _inside(container: Any, key: Any, other: Any, dice: random.Random) -> None:
    """Harm what a text holds as JSON, as attributes of spans do."""
    value = container[key]
    try:
        inner = json.loads(value) if isinstance(value, str) and value[:1] in "{[" else None
    except ValueError:
        inner = None
    if inner:
        container[key] = json.dumps(harmed(inner, dice))
    else:
        _swap(container, key, other, dice)


def _swap(container: Any, key: Any, other: Any, _dice: random.Random) -> None:
    container[key] = copy.deepcopy(other)


def _retype(container: Any, key: Any, _other: Any, dice: random.Random) -> None:
    value = container[key]
    wrapped = [[value], {"value": value}, json.dumps(value), str(value), [value, value]]
    container[key] = dice.choice(wrapped)


def _junk(container: Any, key: Any, _other: Any, dice: random.Random) -> None:
    container[key] = copy.deepcopy(dice.choice(ODD))


def _shuffle(container: Any, key: Any, _other: Any, dice: random.Random) -> None:
    if isinstance(container[key], list):
        dice.shuffle(container[key])
    elif isinstance(container, dict):
        container[dice.choice([str(key).upper(), f" {key}", ""])] = container.pop(key)


_HARM: list[Callable[[Any, Any, Any, random.Random], None]] = [
    _drop, _double, _inside, _inside, _inside, _swap, _swap, _retype, _junk, _junk, _junk, _shuffle,
]  # fmt: skip


def harmed(value: Any, dice: random.Random) -> Any:
    """Change some places of a value: left out, doubled, retyped, replaced by odd ones or others."""
    top = [copy.deepcopy(value)]
    for _ in range(dice.choice((1, 1, 2, 3, 6, 12))):
        all_places = places(top)
        if not all_places:
            break
        container, key = dice.choice(all_places)
        around, inner = dice.choice(all_places)
        dice.choice(_HARM)(container, key, around[inner], dice)
    return top[0] if top else None


def harmed_lines(data: bytes, dice: random.Random) -> bytes:
    """Lose, double, move and change lines of JSON, also such that ``data:`` stands before."""
    lines = data.split(b"\n")
    for _ in range(dice.choice((1, 1, 2, 5))):
        at = dice.randrange(len(lines))
        match dice.randrange(5):
            case 0:
                del lines[at]
            case 1:
                lines.insert(dice.randrange(len(lines) + 1), lines[at])
            case 2:
                lines.append(lines.pop(at))
            case _:
                lines[at] = _harmed_line(lines[at], dice)
        lines = lines or [b""]
    return b"\n".join(lines)


def _harmed_line(line: bytes, dice: random.Random) -> bytes:
    prefix = b"data: " if line.startswith(b"data:") else b""
    try:
        value = json.loads(line.removeprefix(b"data:"))
    except ValueError:
        return torn(line, dice)
    return prefix + as_json(harmed(value, dice))


def torn(data: bytes, dice: random.Random) -> bytes:
    """Cut the text anywhere, or change, take out and put in a few bytes."""
    if dice.random() < 0.4:
        return data[: dice.randrange(len(data) + 1)]
    torn = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(torn) + 1)
        torn[at : at + dice.choice((0, 0, 1, 30))] = dice.choice(_BYTES)
    return bytes(torn)


def as_json(value: Any) -> bytes:
    """Write any value, half surrogates and NaN too, as JSON."""
    return json.dumps(value).encode()


def harmed_file(data: bytes, dice: random.Random) -> bytes:
    """Harm the content of a file in a way that fits what it is."""
    if dice.random() < 0.2:
        return torn(data, dice)
    try:
        value = json.loads(data)
    except ValueError:
        return harmed_lines(data, dice)
    return as_json(harmed(value, dice))


_TOKENS = [
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\n", b"\\", b"null", b"true", b"-1", b"1e999",
    b"9" * 400, b"NaN", b"\xff\xfe", b"\xed\xa0\x80", b"\x00", b'"\\ud800"', b"data: ", b"- ",
    b"&a ", b"*a", b"<<: ", b"!!int ", b"? ", b"---\n", b"#", b"\t", b"\xe2\x80\xae", b"x" * 3000,
]  # fmt: skip


def broken_bytes(data: bytes, dice: random.Random) -> bytes:
    """Break a file without understanding it; fast, so that a million are done in minutes."""
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        if not data:
            return dice.choice(_TOKENS)
        at = dice.randrange(len(data))
        end = min(len(data), at + dice.choice((1, 2, 8, 60, 400)))
        match dice.randrange(9):
            case 0:  # one byte flipped
                data = data[:at] + bytes([data[at] ^ (1 << dice.randrange(8))]) + data[at + 1 :]
            case 1:  # truncated
                data = data[:at]
            case 2:  # a piece taken out
                data = data[:at] + data[end:]
            case 3:  # a piece repeated
                data = data[:end] + data[at:end] * dice.choice((1, 2, 30)) + data[end:]
            case 4:  # a piece put somewhere else
                to = dice.randrange(len(data))
                data = data[:to] + data[at:end] + data[to:]
            case 5:  # nested deeply
                depth = dice.choice((3, 150, 250, 1000, 20_000))
                opens, closes = dice.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")))
                data = data[:at] + opens * depth + b"1" + closes * depth + data[at:]
            case 6:  # a value swapped for another one of the file
                data = _swapped(data, dice)
            case _:
                data = data[:at] + dice.choice(_TOKENS) + data[end if dice.random() < 0.5 else at :]
    return data


_VALUE = re.compile(rb'"(?:[^"\\]|\\.){0,200}"|-?\d+(?:\.\d+)?|true|false|null|\[\]|\{\}')


def _swapped(data: bytes, dice: random.Random) -> bytes:
    """Put one text, number or key of a file where another is: swapped types, duplicate keys."""
    found = [match.span() for match in _VALUE.finditer(data, 0, 20_000)]
    if len(found) < 2:
        return data + data
    (start, end), (other, till) = dice.sample(found, 2)
    return data[:start] + data[other:till] + data[end:]
