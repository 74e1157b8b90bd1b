"""The plainest answer that keeps to a JSON Schema, around what a script states of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STATED_NOTHING: Any = object()


def fill(stated: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``stated`` with the required properties that it lacks.

    These are the first of an ``enum``, the least number that is allowed, a short text, ``false``,
    and as few items as may be. A ``pattern`` is not heeded.
    """
    filled: dict[str, Any] = _filled(stated, schema, schema)
    return filled


def _filled(stated: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    schema = _resolved(schema, root)
    if isinstance(stated, Mapping) and "properties" in schema:
        return {**_required(stated, schema, root), **_inside(stated, schema, root)}
    if isinstance(stated, list) and "items" in schema:
        return [_filled(item, schema["items"], root) for item in stated]
    if stated is not _STATED_NOTHING:
        return stated
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "object")
    kind = str(kinds[0] if isinstance(kinds, list) else kinds).lower()
    match kind:
        case "object":
            return _required({}, schema, root)
        case "array":
            item = _filled(_STATED_NOTHING, schema.get("items", {}), root)
            return [item] * schema.get("minItems", 0)
        case "string":
            return "scripted".ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]
        case "number" | "integer":
            return schema.get("minimum", min(0, schema.get("maximum", 0)))
    return False if kind == "boolean" else None


def _required(
    stated: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]
) -> dict[str, Any]:
    properties = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in stated]
    return {name: _filled(_STATED_NOTHING, properties.get(name, {}), root) for name in missing}


def _inside(
    stated: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]
) -> dict[str, Any]:
    properties = schema["properties"]
    return {name: _filled(value, properties.get(name, {}), root) for name, value in stated.items()}


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references into ``$defs``, and take the first of several ways."""
    while True:
        if "$ref" in schema:
            schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
        elif "anyOf" in schema:
            schema = schema["anyOf"][0]
        else:
            return schema
