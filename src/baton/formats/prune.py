"""Keys of other tools' files that no type of ours names."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple

from msgspec import inspect

from baton.model import nearest

from .explain import Path
from .spelling import fields_of


class Stray(NamedTuple):
    """A key that was left out, and the known key it may be a misspelling of."""

    path: Path
    value: Any
    meant: str | None


def prune(value: Any, type_: Any) -> tuple[Any, list[Stray]]:
    """Copy plain data without the keys that ``type_`` does not name; say which those were."""
    strays: list[Stray] = []
    return _prune(value, _info(type_), (), strays), strays


@cache
def _info(type_: Any) -> inspect.Type:
    return inspect.type_info(type_)


def _prune(value: Any, info: inspect.Type, path: Path, strays: list[Stray]) -> Any:
    match info:
        case inspect.UnionType():
            shape = inspect.ListType if isinstance(value, list) else inspect.StructType
            option = next((o for o in info.types if isinstance(o, shape)), None)
            return value if option is None else _prune(value, option, path, strays)
        case inspect.StructType() if isinstance(value, dict):
            return _prune_struct(value, info, path, strays)
        case inspect.ListType() if isinstance(value, list):
            return [_prune(v, info.item_type, (*path, i), strays) for i, v in enumerate(value)]
        case inspect.DictType() if isinstance(value, dict):
            return {k: _prune(v, info.value_type, (*path, k), strays) for k, v in value.items()}
    return value


def _prune_struct(
    value: dict[str, Any], info: inspect.StructType, path: Path, strays: list[Stray]
) -> dict[str, Any]:
    fields = fields_of(info.cls)
    kept = {}
    for key, item in value.items():
        if key in fields:
            nested = isinstance(item, dict | list)
            kept[key] = _prune(item, fields[key], (*path, key), strays) if nested else item
        elif item not in (None, [], {}, ""):
            free = tuple(name for name in fields if name not in value)
            strays.append(Stray((*path, key), item, _meant(str(key), free)))
    return kept


@lru_cache(maxsize=4096)
def _meant(key: str, names: tuple[str, ...]) -> str | None:
    """Find what a key may be a misspelling of; a file has the same few strays over and over."""
    return next(iter(nearest(key, names, 1, 0.85)), None)
