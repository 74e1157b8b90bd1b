"""From a model's answer to a verdict: an object that matches its JSON Schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from baton.model import JudgeErrorKind

_NOTES = frozenset({"title", "description", "default", "examples", "$schema"})
_CHECKED = frozenset(
    {
        "type", "enum", "const", "anyOf", "properties", "required", "additionalProperties",
        "items", "minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern",
    }
)  # fmt: skip


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise ValueError for a schema that is not for an object, or has unknown keywords."""
    if schema.get("type") != "object":
        raise ValueError("the schema of an answer is that of an object")
    for part in _parts(schema):
        unknown = set(part) - _CHECKED - _NOTES
        if unknown:
            raise ValueError(f"keywords of JSON Schema that are not checked: {sorted(unknown)}")


def faults(value: Any, schema: Mapping[str, Any], path: str = "the answer") -> Iterator[str]:
    """Yield the differences of a value from a schema, without quoting the value."""
    kinds = schema.get("type")
    if kinds is not None:
        wanted = [kinds] if isinstance(kinds, str) else list(kinds)
        if not any(_TYPES[kind](value) for kind in wanted):
            yield f"{path} has to be {' or '.join(wanted)}"
            return
    if "enum" in schema and not _among(value, schema["enum"]):
        yield f"{path} has to be one of {', '.join(map(repr, schema['enum']))}"
    if "const" in schema and not _among(value, [schema["const"]]):
        yield f"{path} has to be {schema['const']!r}"
    if "anyOf" in schema and all(any(faults(value, part)) for part in schema["anyOf"]):
        yield f"{path} matches none of the allowed schemas"
    if isinstance(value, dict):
        yield from _object_faults(value, schema, path)
    elif isinstance(value, list):
        yield from _list_faults(value, schema, path)
    elif isinstance(value, str):
        yield from _text_faults(value, schema, path)
    elif _is_number(value):
        if value < schema.get("minimum", value):
            yield f"{path} has to be {schema['minimum']} or more"
        if value > schema.get("maximum", value):
            yield f"{path} has to be {schema['maximum']} or less"


def _object_faults(value: dict[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path} lacks `{name}`"
    more = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in properties:
            yield from faults(item, properties[name], f"`{name}` of {path}")
        elif more is False:
            yield f"{path} has a property that is not in the schema"
        elif isinstance(more, Mapping):
            yield from faults(item, more, f"a property of {path}")


def _list_faults(value: list[Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if len(value) < schema.get("minItems", 0):
        yield f"{path} needs at least {schema['minItems']} items"
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{path} may have {schema['maxItems']} items at most"
    for number, item in enumerate(value, 1):
        yield from faults(item, schema.get("items", {}), f"item {number} of {path}")


def _text_faults(value: str, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if len(value) < schema.get("minLength", 0):
        yield f"{path} needs at least {schema['minLength']} characters"
    if len(value) > schema.get("maxLength", len(value)):
        yield f"{path} may have {schema['maxLength']} characters at most"
    if "pattern" in schema and re.search(schema["pattern"], value) is None:
        yield f"{path} has to match {schema['pattern']!r}"


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and its sub-schemas."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [schema[name] for name in ("items", "additionalProperties") if name in schema]
    for part in inner:
        if isinstance(part, Mapping):
            yield from _parts(part)


def _among(value: Any, choices: Sequence[Any]) -> bool:
    """Return whether a value is one of them; ``True`` is not 1."""
    return any(
        value == choice and isinstance(value, bool) == isinstance(choice, bool)
        for choice in choices
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and float(value).is_integer()


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": _is_number,
    "integer": _is_whole,
    "null": lambda value: value is None,
}


VERSION = "2"
"""The version of reading answers: after a change, old cached verdicts are not reused."""

# Faults of an answer that its error lists: an answer of the wrong type can have one for each key.
_SHOWN = 5
# Models that were asked for JSON in the prompt, having no mode for it, often put it into a code
# block.
_IN_MARKDOWN = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL | re.IGNORECASE)
# Reasoning models behind servers that do not separate it write their thinking before the answer,
# as `<think>...</think>{"label": ...}`: DeepSeek-R1 and Qwen say `think`, Anthropic's older prompts
# `thinking`, others `thought` or `reasoning`.
_THINKING = re.compile(
    r"\s*<(?P<tag>think|thinking|thought|reasoning)>(?P<inside>.*?)</(?P=tag)>",
    re.DOTALL | re.IGNORECASE,
)


class RawAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A model's raw answer to one request.

    ``text`` is JSON, normally. ``stopped`` says why the model did not finish: ``refusal`` or
    ``truncated``; ``note`` is its message about that.
    """

    text: str
    model: str
    stopped: JudgeErrorKind | None = None
    note: str = ""
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0

    @property
    def read_tokens(self) -> int:
        """All input tokens, cached or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


class CallError(Exception):
    """A request without an answer.

    ``again``: whether a retry may succeed; ``retry_after``: how many seconds the server asks to
    wait.
    """

    def __init__(
        self,
        kind: JudgeErrorKind,
        message: str,
        *,
        again: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.again = again
        self.retry_after = retry_after


class AnswerError(Exception):
    """An answer that is not a verdict: ``kind`` is ``unparsable`` or ``empty``; a retry may help.

    The message contains only Baton's text, and may be shown to the model.
    """

    def __init__(self, kind: JudgeErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


def read_verdict(raw: RawAnswer, schema: Mapping[str, Any], canary: str) -> dict[str, Any]:
    """Return the answer as an object that matches the schema.

    Raises:
        CallError: the model refused, or its answer was truncated.
        AnswerError: it was empty, or not what was requested.
    """
    if raw.stopped is not None:
        raise CallError(raw.stopped, raw.note or _STOPPED[raw.stopped])
    text = _without_thinking(raw.text)
    if not text:
        raise AnswerError("empty", "the answer was empty")
    value = _object(text)
    # Escapes such as \\u0063anary hide it in the text, but not in the value.
    if canary in text or canary in json.dumps(value):
        leak = "the answer repeats the canary of the instructions: the material may have led it"
        raise AnswerError("unparsable", leak)
    problems = list(islice(faults(value, schema), _SHOWN))
    if problems:
        raise AnswerError("unparsable", "; ".join(problems))
    return value


def _without_thinking(text: str) -> str:
    """Drop closed blocks of thinking before the answer.

    A block that is not closed stays, and makes the answer unparsable: the model was still thinking,
    and `<think>{"label": "inside"}` is a label that it considered. The same applies to nested
    blocks, as only one of the two is closed.
    """
    start = 0
    while (block := _THINKING.match(text, start)) is not None:
        if f"<{block['tag']}>".lower() in block["inside"].lower():
            break
        start = block.end()
    return text[start:].strip()


def _object(text: str) -> dict[str, Any]:
    """Decode a whole text, maybe in a Markdown code block; JSON inside prose may be a quotation."""
    within = _IN_MARKDOWN.fullmatch(text)
    text = within[1] if within else text
    try:
        value = msgspec.json.decode(text)
        json.loads(text, object_pairs_hook=_once_each)
    except AnswerError:
        raise
    except (ValueError, RecursionError):
        raise AnswerError("unparsable", "the answer is not valid JSON") from None
    if not isinstance(value, dict):
        raise AnswerError("unparsable", "the answer is not a JSON object")
    return value


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object with a duplicate key, even with the same value.

    It is undefined which value counts, and no encoder writes a key twice: the text has two answers
    in one, or the model was confused. A retry costs one request.
    """
    answer = dict(pairs)
    if len(answer) < len(pairs):
        raise AnswerError("unparsable", "an object of the answer has a key twice")
    return answer


_STOPPED: Mapping[JudgeErrorKind, str] = {
    "refusal": "the model refused to answer",
    "truncated": "the answer was truncated: raise `max_tokens` of the judge",
}
