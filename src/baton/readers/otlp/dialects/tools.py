"""Names of the tools that a model was offered, from their definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from baton.readers.otlp.values import parsed


def tool_names(definitions: Any) -> list[str] | None:
    """Return the names in a list of definitions, in whichever shape; ``None`` without a list."""
    if isinstance(definitions, str):
        names = _names_in(definitions)
    else:
        names = tuple(_names(definitions)) if isinstance(definitions, list) else None
    return None if names is None else list(names)


@lru_cache(maxsize=512)
def _names_in(definitions: str) -> tuple[str, ...] | None:
    """Read definitions that are a text: every request of an agent repeats the same one."""
    value = parsed(definitions)
    return tuple(_names(value)) if isinstance(value, list) else None


def _names(definitions: list[Any]) -> Iterator[str]:
    for item in definitions:
        told = parsed(item)
        if isinstance(told, str):
            yield told
        elif isinstance(told, dict):
            yield from _name(told)


def _name(item: Mapping[str, Any]) -> Iterator[str]:
    declared = item.get("function_declarations") or item.get("functionDeclarations")
    if isinstance(declared, list):
        yield from _names(declared)
        return
    for key in ("function", "toolSpec", "tool"):
        if isinstance(item.get(key), dict):
            item = item[key]
    name = item.get("name")
    if isinstance(name, str) and name:
        yield name
