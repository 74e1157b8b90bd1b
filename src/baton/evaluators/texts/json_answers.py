"""JSON in answers: finding it, and saying where two values differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from baton.formats.nesting import decode_json
from baton.model import Content

_FENCE = "```"


def json_in(answer: Content | None) -> Any:
    """Return the JSON of an answer, ``msgspec.UNSET`` when it has none.

    That is its data; else its whole text; else the first of its fenced blocks (plain, or of
    ``json``) that is JSON.
    """
    if answer is None:
        return msgspec.UNSET
    if answer.data is not None:
        return answer.data
    text = answer.text or ""
    for candidate in (text, *_fenced(text)):
        try:
            return decode_json(candidate)
        except msgspec.DecodeError:
            continue
    return msgspec.UNSET


def _fenced(text: str) -> Iterator[str]:
    """Yield what stands in fenced blocks that name no language, or ``json``.

    As in Markdown, a block that is never closed goes on to the end.
    """
    language: str | None = None
    block: list[str] = []
    for line in [*text.split("\n"), _FENCE]:
        before, fence, rest = line.strip().partition(_FENCE)
        rest = rest.strip("` \t").lower()
        if before or not fence:
            block.append(line)
        elif language is None:
            language, block = rest, []
        elif not rest:
            if language in ("", "json"):
                yield "\n".join(block)
            language = None


def json_differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Say where two JSON values differ; numbers are equal by value, true is no number."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in dict.fromkeys([*expected, *actual]):
            inside = f"{path}.{key}" if path else str(key)
            if key not in actual:
                yield f"`{inside}` is missing"
            elif key not in expected:
                yield f"`{inside}` is not expected"
            else:
                yield from json_differences(expected[key], actual[key], inside)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from json_differences(one, other, f"{path}[{index}]")
    elif isinstance(expected, bool) is not isinstance(actual, bool) or expected != actual:
        yield f"{f'`{path}`' if path else 'it'} is {_short(actual)}, not {_short(expected)}"


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:59]}…"
