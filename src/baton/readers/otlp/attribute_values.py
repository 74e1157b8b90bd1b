"""Read attribute values as content, counts and tokens; compare differently spelt agent names."""

from __future__ import annotations

import ast
import re
from ast import literal_eval
from collections.abc import Callable, Container, Mapping
from functools import lru_cache
from math import isfinite
from typing import Any

import msgspec

from baton.formats.nesting import decode_json
from baton.formats.otlp_json import utf8
from baton.model import Content, Part, Usage

# Levels of a value in which NaN is replaced. Deeper ones are kept as they are: prompts and
# arguments have a few levels, and each takes a call of its own here.
_DEEPEST = 100
HIDDEN_VALUE = "[REDACTED]"
HIDDEN = frozenset(
    {HIDDEN_VALUE, "__REDACTED__", "<elided>", "<redacted>", "<REDACTED>", "[redacted]"}
)
"""Placeholders that instrumentations write for content that must not be recorded."""
_ATTACHMENTS = frozenset(
    {"blob", "file", "uri", "image", "image_url", "input_image", "input_file", "audio",
     "input_audio", "document", "video", "inline_data", "inlineData", "file_data", "fileData"}
)  # fmt: skip
_TEXTS = frozenset({"text", "input_text", "output_text", "summary_text", "refusal"})


def parsed(value: Any) -> Any:
    """Return the object or list that a text holds as JSON, else the value unchanged."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return decode_json(value)
    except msgspec.DecodeError:
        return value


def printed_value(printed: Any, *, otherwise: Any) -> Any:
    """Return the plain value whose Python ``repr`` is this text; ``otherwise`` if there is none.

    A value that is not a string is returned unchanged.
    """
    if not isinstance(printed, str):
        return printed
    try:
        return literal_eval(printed)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return otherwise


# A text; what Python prints for an enum, `<ChatRole.USER: 'user'>`; and for any other object,
# `<function Tool.__init__.<locals>.invoke at 0x7f21>`.
_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_PRINTED = re.compile(
    rf"(?P<text>{_STRING})|<[A-Za-z_][\w.]*: (?P<value>{_STRING}|-?\d+)>"
    rf"|(?P<object><[A-Za-z_](?:[^<>'\"]|{_STRING}|<[^<>]*>)*>)",
    re.DOTALL,
)


def printed_objects(printed: str, build: Callable[[str, dict[str, Any]], Any]) -> Any:
    """Return the value that Python printed, with objects in it; ``None`` if it cannot be read.

    ``build`` gets the class and the fields of each object: ``TextContent(text='hi')``. An object
    that is printed without its fields is ``None``.
    """

    def plain(token: re.Match[str]) -> str:
        return "None" if token["object"] else token["text"] or token["value"]

    def value(node: ast.AST | None) -> Any:
        match node:
            case ast.Constant(value=str() as found):
                return utf8(found)
            case ast.Constant(value=bool() | int() | float()):
                return node.value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.List() | ast.Tuple() | ast.Set():
                return [value(each) for each in node.elts]
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                return {str(value(key)): value(each) for key, each in pairs}
            case ast.Call(func=ast.Name(id=name)):
                return build(name, {str(each.arg): value(each.value) for each in node.keywords})
        return None

    try:
        return value(ast.parse(_PRINTED.sub(plain, printed), mode="eval").body)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def text(value: Any) -> str | None:
    """Return a string that is not empty; ``None`` for anything else."""
    return value if isinstance(value, str) and value else None


_MOST = 10**15
"""No request has 10^15 tokens, so a larger number is not a count. Sums of larger numbers would
exceed 64 bits, and a record with such an integer could be written but not read again."""


def whole(value: Any) -> int | None:
    """Return a count, which can also be a number in text form; ``None`` for anything else."""
    if type(value) is int:
        return value if 0 <= value <= _MOST else None
    if isinstance(value, bool) or value is None:
        return None
    try:
        count = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return count if 0 <= count <= _MOST else None


def amount(value: Any) -> float | None:
    """Return a finite amount that is not negative; ``None`` for anything else."""
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        figure = float(value)
    except ValueError:
        return None
    return figure if 0 <= figure < float("inf") else None


MOST_NAMES = 100
"""The number of attributes per span whose names are cached, so that no file can fill the memory."""
_INDEX_DIGITS = 9
"""The maximum digits of an index. No list has a billion items, and `int` refuses long numbers."""


def numbered(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Group attributes such as ``PREFIX0.role`` and ``PREFIX0.content`` by their numbers.

    Returns one mapping for each number, in order. Its keys are the part after the number.
    """
    rows: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix):
            index, _, rest = key[len(prefix) :].partition(".")
            # `isdecimal` excludes digits such as `²`.
            if index.isdecimal() and len(index) <= _INDEX_DIGITS:
                rows.setdefault(int(index), {})[rest] = value
    return [rows[index] for index in sorted(rows)]


def first(values: Mapping[str, Any], *keys: str) -> Any:
    """Return the value of the first key that has one."""
    for key in keys:
        if key in values:
            value = values[key]
            if value is not None:
                return value
    return None


def content(value: Any) -> Content | None:
    """Return a value as content: strings as text, blocks of text joined, all else as data."""
    if isinstance(value, str):
        given, value = value, parsed(value)
        if value is given:
            return Content(text=value) if value and value not in HIDDEN else None
    elif value is not None:
        value = finite(value)
    if value is None:
        return None
    blocks = _blocks(value)
    return (blocks or None) if blocks is not None else Content(data=value)


def _blocks(value: Any) -> Content | None:
    """Read a list of blocks ({"text": ...}, images, ...); ``None`` when it is not one."""
    if not isinstance(value, list) or not value:
        return None
    texts: list[str] = []
    data: list[Any] = []
    parts: list[Part] = []
    for block in value:
        if not isinstance(block, dict):
            return None
        said = block_text(block)
        if said is not None:
            texts += [] if said in HIDDEN else [said]
        elif set(block) == {"json"}:
            data.append(finite(block["json"]))
        elif (part := attachment(block)) is not None:
            parts.append(part)
        else:
            return None
    joined = "\n".join(texts) if texts else None
    return Content(
        text=joined, data=data[0] if len(data) == 1 else data or None, parts=parts or None
    )


def shown(value: Any) -> Any:
    """Return a value as data; ``None`` if it was left out when it was recorded."""
    if not isinstance(value, str):
        return finite(value)
    data = parsed(value)  # JSON has no NaN
    return None if data is value and (not value or value in HIDDEN) else data


def finite(value: Any, depth: int = 0) -> Any:
    """Return data that JSON can hold: NaN and infinite numbers become text."""
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if depth < _DEEPEST and isinstance(value, list):
        return [finite(item, depth + 1) for item in value]
    if depth < _DEEPEST and isinstance(value, dict):
        return {key: finite(item, depth + 1) for key, item in value.items()}
    return value


def block_kind(block: Mapping[str, Any]) -> str | None:
    """Return the type of a block, with underscores as separators."""
    kind = block.get("type", block.get("block_type"))
    return kind.replace("-", "_") if isinstance(kind, str) else None


def block_text(block: Mapping[str, Any]) -> str | None:
    """Return the text of a block that contains only text."""
    kind = block_kind(block)
    if kind in _TEXTS or (kind is None and "text" in block):
        said = first(block, "text", "content", "refusal")
        if isinstance(said, Mapping):
            said = said.get("value")
        return said if isinstance(said, str) and (kind is not None or len(block) <= 2) else None
    return None


def attachment(block: Mapping[str, Any]) -> Part | None:
    """Return a block that is an attachment, without its bytes."""
    kind = block_kind(block)
    if kind is None:
        kind = next((key for key in block if key in _ATTACHMENTS), None)
    if kind not in _ATTACHMENTS:
        return None
    inner = first(block, kind, "source")
    described = {**block, **inner} if isinstance(inner, Mapping) else block
    uri = first(described, "uri", "url", "file_uri", "fileUri", "file_id", "image_url")
    return Part(
        type=kind,
        mime=text(first(described, "mime_type", "mimeType", "media_type", "modality")),
        uri=uri if isinstance(uri, str) and not uri.startswith("data:") else None,
    )


_OTHER = re.compile(r"[\W_]+")


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """Return a name in lower case with uniform separators: ``Refund Agent`` is ``refund_agent``."""
    return _OTHER.sub("", name.casefold())


def name_key(name: str) -> str:
    """Return a key that is equal for all names of one agent, and only for these."""
    return plain_name(name) or name


def same_name(one: str | None, other: str | None) -> bool:
    """Return whether two names belong to the same agent."""
    if one is None or other is None:
        return False
    return one == other or plain_name(one) == plain_name(other) != ""


_COUNTS: dict[str, tuple[str, ...]] = {
    "input": ("input_tokens", "prompt_tokens"),
    "output": ("output_tokens", "completion_tokens"),
    "total": ("total_tokens",),
    "read": (
        "cache_read.input_tokens",
        "cache_read_input_tokens",
        "cache_read_tokens",
        "details.cache_read_tokens",
        "details.cache_read_input_tokens",
        "details.cached_content_tokens",
        "details.cached_tokens",
        "cached_tokens",
    ),
    "write": (
        "cache_creation.input_tokens",
        "cache_creation_input_tokens",
        "cache_write_input_tokens",
        "cache_write_tokens",
        "cache_creation_tokens",
        "details.cache_write_tokens",
        "details.cache_creation_input_tokens",
    ),
    "thinking": (
        "reasoning.output_tokens",
        "reasoning_tokens",
        "details.reasoning_tokens",
        "details.thoughts_tokens",
        "experimental.reasoning_tokens",
    ),
}


def usage_of(attributes: Mapping[str, Any], *prefixes: str) -> Usage | None:
    """Read the counts with the first prefix for which there are any; ``None`` without counts."""
    return usage_by(attributes, counts_in(attributes, prefixes))


def counts_in(names: Container[str], prefixes: tuple[str, ...]) -> list[tuple[str, str]] | None:
    """Return the names that are counts, with their kinds; ``None`` if there are none."""
    for prefix in prefixes:
        names_by_kind = [
            (kind, next((prefix + name for name in known if prefix + name in names), None))
            for kind, known in _COUNTS.items()
        ]
        counts = [(kind, name) for kind, name in names_by_kind if name is not None]
        if any(kind in ("input", "output") for kind, _ in counts):
            return counts
    return None


def usage_by(attributes: Mapping[str, Any], counts: list[tuple[str, str]] | None) -> Usage | None:
    """Read the counts that :func:`counts_in` found."""
    if counts is None:
        return None
    tokens: dict[str, int | None] = {"input": None, "output": None}
    for kind, name in counts:
        tokens[kind] = whole(attributes[name])
    return usage(**tokens)


def usage(
    *,
    input: int | None,
    output: int | None,
    total: int | None = None,
    read: int | None = None,
    write: int | None = None,
    thinking: int | None = None,
    cost: Any = None,
) -> Usage:
    """Return counts in the form of the record: input without cached tokens, output with thinking.

    Sources differ in whether the input includes cached tokens and the output includes thinking
    tokens. If there is a total, it shows this. Otherwise both are taken to be included, as
    OpenTelemetry specifies, unless that would give a negative count.

    Zero tokens in and out were not counted: no request is empty. OpenAI's SDK has zeros for a
    stream whose server sends no counts.
    """
    if input == 0 and not output and not read and not write and not cost:
        input = output = None
    if read is None and write is None and thinking is None and cost is None:
        return Usage(
            input_tokens=input,
            output_tokens=output,
            requests=1,
            complete=input is not None and output is not None,
        )
    cached = (read or 0) + (write or 0)
    spent = (input or 0) + (output or 0)
    thought = thinking or 0
    if input is not None and cached and input >= cached:
        beside = total in (spent + cached, spent + cached + thought) and total != spent + thought
        input -= 0 if beside else cached
    if output is not None and thought:
        beside_thinking = total in (spent + thought, spent + cached + thought)
        output += thought if beside_thinking or (total is None and output < thought) else 0
    figure = amount(cost)
    return Usage(
        input_tokens=input,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=write,
        requests=1,
        cost_usd=figure,
        cost_from=None if figure is None else "source",
        complete=input is not None and output is not None,
    )
