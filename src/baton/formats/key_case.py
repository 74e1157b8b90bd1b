"""One set of types for keys in snake_case, camelCase or both, and unknown keys."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from baton.model import nearest

from .explain_mistakes import Path, type_info

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


def snake(name: str) -> str:
    """Turn ``evalSetId`` into ``eval_set_id``; snake_case stays as it is."""
    return _HUMP.sub(lambda match: f"_{match[1].lower()}", name)


def camel(name: str) -> str:
    """Turn ``eval_set_id`` into ``evalSetId``."""
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


def normalise(value: Any, type_: Any) -> Any:
    """Rename the keys of plain data to those of ``type_``, as deep as its structs go.

    Free-form parts (tool arguments, state) keep their keys. A key that the type does not know
    in either spelling stays as it is; if both spellings of a key occur, both stay.
    """
    return _normalise(value, type_info(type_))


@cache
def fields_of(cls: type) -> dict[str, inspect.Type]:
    """Return the fields of a struct type by the names that files use."""
    info = inspect.type_info(cls)
    fields = info.fields if isinstance(info, inspect.StructType) else ()
    return {field.encode_name: field.type for field in fields}


def _normalise(value: Any, info: inspect.Type) -> Any:
    match info:
        case inspect.UnionType():
            for option in info.types:
                of_list = isinstance(option, inspect.ListType)
                of_mapping = isinstance(option, inspect.StructType | inspect.DictType)
                if (isinstance(value, list) and of_list) or (
                    isinstance(value, dict) and of_mapping
                ):
                    return _normalise(value, option)
            return value
        case inspect.StructType() if isinstance(value, dict):
            fields = fields_of(info.cls)
            renamed = {}
            for key, item in value.items():
                name = key
                if key not in fields and (spelt := snake(key)) in fields and spelt not in value:
                    name = spelt
                nested = name in fields and isinstance(item, dict | list)
                renamed[name] = _normalise(item, fields[name]) if nested else item
            return renamed
        case inspect.ListType() if isinstance(value, list):
            return [_normalise(item, info.item_type) for item in value]
        case inspect.DictType() if isinstance(value, dict):
            return {key: _normalise(item, info.value_type) for key, item in value.items()}
    return value


@cache
def _struct_twin(cls: type) -> type:
    fields: list[tuple[str, Any, Any]] = []
    for field in msgspec.structs.fields(cls):
        default: Any = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = msgspec.field(default_factory=field.default_factory)
        type_ = camel_twin(field.type)
        fields.append((field.name, type_) if field.required else (field.name, type_, default))  # type: ignore[arg-type]
    return msgspec.defstruct(
        f"{cls.__name__}Camel",
        fields,
        bases=(cls,),
        rename={name: camel(name) for name, *_ in fields},
        kw_only=True,
        gc=cls.__struct_config__.gc,  # type: ignore[attr-defined]
    )


def camel_twin(type_: Any) -> Any:
    """Return the type that reads the same in camelCase.

    For a struct type it is a subclass, so that decoded objects are instances of ``type_``; their
    parts are of such subclasses as well.
    """
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return _struct_twin(type_)
    arguments = getattr(type_, "__args__", None)
    if not arguments or getattr(type_, "__origin__", None) is dict:
        return type_
    twins = tuple(camel_twin(argument) for argument in arguments)
    if hasattr(type_, "__origin__"):
        return type_.__origin__[twins if len(twins) > 1 else twins[0]]
    union = twins[0]
    for twin in twins[1:]:
        union = union | twin
    return union


class ExtraKey(NamedTuple):
    """A key that was left out, and the known key it may be a misspelling of."""

    path: Path
    value: Any
    meant: str | None


def prune(value: Any, type_: Any) -> tuple[Any, list[ExtraKey]]:
    """Copy plain data without keys that are unknown to ``type_``; return these.

    Keys in a struct that allows unknown ones are not returned.
    """
    extra_keys: list[ExtraKey] = []
    return _prune(value, type_info(type_), (), extra_keys), extra_keys


def _prune(value: Any, info: inspect.Type, path: Path, extra_keys: list[ExtraKey]) -> Any:
    match info:
        case inspect.UnionType():
            shape = inspect.ListType if isinstance(value, list) else inspect.StructType
            option = next((o for o in info.types if isinstance(o, shape)), None)
            return value if option is None else _prune(value, option, path, extra_keys)
        case inspect.StructType() if isinstance(value, dict):
            fields = fields_of(info.cls)
            kept = {}
            for key, item in value.items():
                if key in fields:
                    nested = isinstance(item, dict | list)
                    kept[key] = (
                        _prune(item, fields[key], (*path, key), extra_keys) if nested else item
                    )
                elif info.forbid_unknown_fields and item not in (None, [], {}, ""):
                    free = tuple(name for name in fields if name not in value)
                    extra_keys.append(ExtraKey((*path, key), item, _meant(str(key), free)))
            return kept
        case inspect.ListType() if isinstance(value, list):
            return [_prune(v, info.item_type, (*path, i), extra_keys) for i, v in enumerate(value)]
        case inspect.DictType() if isinstance(value, dict):
            return {k: _prune(v, info.value_type, (*path, k), extra_keys) for k, v in value.items()}
    return value


@lru_cache(maxsize=4096)
def _meant(key: str, names: tuple[str, ...]) -> str | None:
    """Find what a key may be a misspelling of; a file repeats the same few unknown keys."""
    return next(iter(nearest(key, names, 1, 0.85)), None)
