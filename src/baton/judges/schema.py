"""Does an answer keep to its JSON Schema? The part of the standard that rubrics need.

A keyword that is not checked is refused, so that no rule of a schema goes unheeded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_NOTES = frozenset({"title", "description", "default", "examples", "$schema"})
_CHECKED = frozenset(
    {
        "type", "enum", "const", "anyOf", "properties", "required", "additionalProperties",
        "items", "minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern",
    }
)  # fmt: skip


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise ValueError for a schema of something else than an object, or with unknown keywords."""
    if schema.get("type") != "object":
        raise ValueError("the schema of an answer is that of an object")
    for part in _parts(schema):
        unknown = set(part) - _CHECKED - _NOTES
        if unknown:
            raise ValueError(f"keywords of JSON Schema that are not checked: {sorted(unknown)}")


def faults(value: Any, schema: Mapping[str, Any], path: str = "the answer") -> Iterator[str]:
    """Yield what of a value does not keep to the schema; quotes nothing of the value itself."""
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
        yield f"{path} is none of the kinds it may be"
    if isinstance(value, dict):
        yield from _object_faults(value, schema, path)
    elif isinstance(value, list):
        yield from _list_faults(value, schema, path)
    elif isinstance(value, str):
        yield from _text_faults(value, schema, path)
    elif _is_number(value):
        yield from _number_faults(value, schema, path)


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
            yield f"{path} has a property that was not asked for"
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


def _number_faults(value: float, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if value < schema.get("minimum", value):
        yield f"{path} has to be {schema['minimum']} or more"
    if value > schema.get("maximum", value):
        yield f"{path} has to be {schema['maximum']} or less"


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those inside it."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [schema[name] for name in ("items", "additionalProperties") if name in schema]
    for part in inner:
        if isinstance(part, Mapping):
            yield from _parts(part)


def _among(value: Any, choices: Sequence[Any]) -> bool:
    """Tell whether a value is one of them; ``True`` is no 1."""
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
