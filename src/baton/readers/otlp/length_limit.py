"""Values that were truncated to a length limit when they were recorded: they are not recorded.

OpenTelemetry's SDKs have such a limit (`OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT`), and so have Collectors
and stores. Nothing in a span says that a value was truncated. If the start of a text were taken
for the whole text, a fact behind the limit would count as lost in a hand-off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from baton.formats.nesting import decode_json

from .attribute_values import HIDDEN_VALUE, printed_value
from .span import Conversation, Event, Span

_LEAST = 16
"""The shortest limit that is recognised. Names and ids are the longest values of small spans."""
_USUAL = frozenset(
    {100, 128, 150, 200, 250, 255, 256, 300, 400, 500, 512, 600, 750, 800, 1000, 1023, 1024, 1200,
     1500, 2000, 2047, 2048, 2500, 3000, 4000, 4095, 4096, 5000, 8000, 8191, 8192, 10_000, 12_000,
     16_000, 16_383, 16_384, 20_000, 25_000, 30_000, 32_000, 32_766, 32_767, 32_768, 50_000,
     60_000, 64_000, 65_535, 65_536, 100_000, 131_072}
)  # fmt: skip
"""Limits that people configure, and those of stores (New Relic 4095, Azure Monitor 8192)."""
_IDENTITY = (".name", "_name", ".id", "_id")
"""Ends of the keys of names and ids. Their start still tells one agent from another, which a
placeholder would not, so these values are kept.
"""
_ENDS = ".!?:;)]}>\"'`|…。！？"
"""Characters with which a complete text or value often ends, besides white space."""


def without_truncated(conversation: Conversation) -> int:
    """Replace the values in a conversation that a length limit truncated; returns their number."""
    groups: dict[str, list[Span]] = {}
    names: dict[int, str] = {}
    for span in conversation.spans:
        # A limit applies to a process, and two of them can have taken part in a conversation.
        of = id(span.resource)
        name = names.get(of)
        if name is None:
            name = names[of] = repr(span.resource)
        groups.setdefault(name, []).append(span)
    return sum(map(_replace, groups.values()))


def _replace(spans: Sequence[Span]) -> int:
    limit = _limit(span.attributes for span in spans)
    replaced = 0
    if limit is not None:
        for span in spans:
            replaced += _hide(span, limit)
    # The start of an error's text says what the error was, so it is kept.
    events = [event for span in spans for event in span.events if event.name != "exception"]
    limit = _limit(event.attributes for event in events)
    if limit is not None:
        for event in events:
            replaced += _hide(event, limit)
    return replaced


def _limit(records: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the length limit of attributes; ``None`` if they do not show one.

    With a limit no value is longer, and many texts have exactly this length. A single run without
    a limit can have two longest texts of one length, too: "rates of Alpha?" and "rates of Delta?".
    So JSON that ends in the middle must be among them, or the length must be a usual limit.
    """
    most, texts = _LEAST, set[str]()
    for attributes in records:
        for value in attributes.values():
            if type(value) is str and len(value) >= most:
                if len(value) > most:
                    most, texts = len(value), {value}
                else:
                    texts.add(value)
    usual = most in _USUAL
    if not usual and len(texts) < 2:
        return None  # the usual case: there is one longest text, of any length
    # Of two nodes whose metadata has 100 characters each, nothing was cut.
    texts = {text for text in texts if not _is_whole(text)}
    if not texts:
        return None
    torn = sum(map(_is_torn, texts))
    if (torn and (usual or len(texts) > 1)) or (usual and len(texts) > 1):
        return most
    # An only text, and no JSON: it must also end in the middle of a sentence.
    return most if usual and not any(text.rstrip()[-1:] in _ENDS for text in texts) else None


def _is_whole(value: str) -> bool:
    """Return whether a value is JSON to its end."""
    if value[0] not in "{[" or value.rstrip()[-1:] not in ("}", "]"):
        return False
    try:
        decode_json(value)
    except ValueError:
        return False
    return True


def _is_torn(value: str) -> bool:
    """Return whether a value is JSON or a Python literal that ends in the middle."""
    if value[0] not in "{[" or value.rstrip()[-1:] in ("}", "]"):
        return False
    try:
        decode_json(value)
    except ValueError:
        return printed_value(value, otherwise=None) is None
    return False


def _hide(record: Span | Event, limit: int) -> int:
    """Replace the values of one record that are as long as the limit; returns their number."""
    truncated = [
        key
        for key, value in record.attributes.items()
        if type(value) is str
        and len(value) <= limit
        and _reaches(value, limit)
        and not key.endswith(_IDENTITY)
    ]
    if truncated:
        hidden = {key: _legible(key, record.attributes[key]) for key in truncated}
        # Attributes may be shared by spans of a stream, so they are not changed in place.
        record.attributes = {**record.attributes, **hidden}
    return len(truncated)


def _legible(key: str, value: str) -> str:
    """Return the complete entries of truncated metadata, and a placeholder for content.

    Metadata names agents and conversations (``{"langgraph_node": "billing", "langgraph_pa``), and
    each of its entries counts alone.
    """
    if key.rpartition(".")[2] != "metadata" or value[0] != "{":
        return HIDDEN_VALUE
    depth = end = 0
    quoted = escaped = False
    for at, letter in enumerate(value):
        if quoted:
            quoted, escaped = escaped or letter != '"', letter == "\\" and not escaped
        elif letter == '"':
            quoted = True
        elif letter in "{[":
            depth += 1
        elif letter in "}]":
            depth -= 1
        elif letter == "," and depth == 1:
            end = at
    return f"{value[:end]}}}" if end else HIDDEN_VALUE


def _reaches(value: str, limit: int) -> bool:
    """Return whether a value has the length of the limit.

    Python counts characters, JavaScript and Java UTF-16 units, Go bytes. No program stops within a
    character, so up to three bytes are missing.
    """
    if len(value) == limit:
        return True
    if value.isascii() or len(value) * 4 < limit:
        return False
    units = len(value.encode("utf-16-le", "replace")) // 2
    return (
        limit - 1 <= units <= limit or limit - 3 <= len(value.encode("utf-8", "replace")) <= limit
    )
