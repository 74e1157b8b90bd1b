"""Keys of other tools' files that no type of ours names."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from msgspec import inspect

from baton.model import nearest

from .explain import Path


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
    fields = {field.encode_name: field for field in info.fields}
    kept = {}
    for key, item in value.items():
        if key in fields:
            kept[key] = _prune(item, fields[key].type, (*path, key), strays)
        elif item not in (None, [], {}, ""):
            meant = nearest(str(key), [name for name in fields if name not in value], 1, 0.85)
            strays.append(Stray((*path, key), item, meant[0] if meant else None))
    return kept
