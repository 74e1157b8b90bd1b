"""Reports everything that is wrong with a value at once.

msgspec stops at the first problem and describes it by type. This walks the same types after a
decode has failed, so it costs nothing for valid files.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from baton.model import InputError, Problem, nearest, suggestion
from baton.model.limits import FAULTS

T = TypeVar("T")
Path = tuple[str | int, ...]
_NAMED_FIRST = re.compile(r"`(\w+)")


class Fault(msgspec.Struct, frozen=True):
    """A problem at ``path``."""

    path: Path
    message: str


def explain(value: Any, type_: Any, path: Path = ()) -> list[Fault]:
    """Return every problem of ``value`` (plain JSON data) as a ``type_``."""
    return _explain(value, type_info(type_), path) or _own_words(value, type_, path)


def checked(value: Any, type_: type[T], path: Path = ()) -> T:
    """Convert plain data at ``path`` to ``type_``.

    Raises:
        InputError: lists every problem.
    """
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError:
        raise InputError(
            Problem(path=path_text(fault.path), message=fault.message)
            for fault in explain(value, type_, path)
        ) from None


def path_text(path: Path) -> str:
    """Write a path as people do: ``cases[2].turns[0].input``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


@cache
def type_info(type_: Any) -> inspect.Type:
    """Return msgspec's description of a type; cached, as it is slow to compute."""
    return inspect.type_info(type_)


def _explain(value: Any, info: inspect.Type, path: Path) -> list[Fault]:
    match info:
        case inspect.Metadata():
            return _explain(value, info.type, path)
        case inspect.UnionType():
            alike = [option for option in info.types if _fits(value, option)]
            structs = [option for option in alike if isinstance(option, inspect.StructType)]
            if len(structs) > 1:
                alike = [next((s for s in structs if _tagged(value, s)), structs[0])]
            if alike:
                attempts = [_explain(value, option, path) for option in alike]
                return [_or_other(fault, value, info, path) for fault in min(attempts, key=len)]
            names = " or ".join(_name(option) for option in info.types)
            message = f"expected {names}, got {_describe(value)}"
            return [Fault(path, message + _in_a_list(value, info) + _with_keys(info.types))]
        case inspect.StructType() if isinstance(value, dict):
            return _explain_struct(value, info, path)
        case inspect.DictType() if isinstance(value, dict):
            return [f for k, v in value.items() for f in _explain(v, info.value_type, (*path, k))]
        case inspect.ListType() if isinstance(value, list):
            return [f for i, v in enumerate(value) for f in _explain(v, info.item_type, (*path, i))]
        case inspect.LiteralType() if isinstance(value, str):
            words = [str(word) for word in info.values]
            if value in words:
                return []
            return [
                Fault(path, f"`{value}` is not one of {', '.join(words)}{_meant(value, words)}")
            ]
    if _fits(value, info):
        if not isinstance(info, inspect.IntType | inspect.FloatType):
            return []
        bounds = [(sign, holds, getattr(info, name)) for name, holds, sign in _BOUNDS]
        return [
            Fault(path, f"expected {_name(info)} {sign} {bound:g}, got {value:g}")
            for sign, holds, bound in bounds
            if bound is not None and not holds(value, bound)
        ]
    is_number = isinstance(value, int | float) and isinstance(info, inspect.StrType)
    quotes = "; write it in quotes" if is_number else ""
    return [
        Fault(path, f"expected {_name(info)}, got {_describe(value)}{quotes}{_with_keys([info])}")
    ]


def _meant(word: str, known: list[str]) -> str:
    close = nearest(word, known, 1)
    return f"; did you mean `{close[0]}`?" if close else ""


_BOUNDS = (
    ("ge", operator.ge, ">="),
    ("gt", operator.gt, ">"),
    ("le", operator.le, "<="),
    ("lt", operator.lt, "<"),
)


def _in_a_list(value: Any, info: inspect.UnionType) -> str:
    """Say how to write one text as a list: ``agents: router`` as ``[router]``."""
    items = [option.item_type for option in info.types if isinstance(option, inspect.ListType)]
    kinds = [kind for item in items for kind in getattr(item, "types", [item])]
    takes_texts = any(isinstance(kind, inspect.StrType) for kind in kinds)
    plain = isinstance(value, str) and _PLAIN.fullmatch(value)
    return f"; write `[{value}]`" if plain and takes_texts else ""


def _with_keys(infos: Iterable[inspect.Type]) -> str:
    """Name the keys of a mapping of Baton's own; those of other tools' files are too many."""
    structs = [info for info in infos if isinstance(info, inspect.StructType)]
    if len(structs) != 1 or not structs[0].forbid_unknown_fields:
        return ""
    names = [f"`{field.encode_name}`" for field in structs[0].fields]
    return f"; its keys: {', '.join(names)}" if len(names) <= _MANY_KEYS else ""


# Keys that fit into a message. Of more, nobody reads the list, and the reference pages have it.
_MANY_KEYS = 8
_PLAIN = re.compile(r"[A-Za-z_][\w.-]{0,39}")
_OTHER_WORDS = {
    "message": "input",
    "query": "input",
    "question": "input",
    "prompt": "input",
    "user_input": "input",
    "expected": "response",
    "expected_output": "response",
    "expected_response": "response",
    "answer": "response",
    "output": "response",
    "expected_agents": "agents",
    "expected_tools": "tools",
    "tool_calls": "tools",
}
"""Other tools' names for keys of cases that are not similar to Baton's."""


def _hint(key: str, free: list[str]) -> str:
    other = _OTHER_WORDS.get(key)
    if other in free and not nearest(key, free):
        return f"did you mean `{other}`?"
    return suggestion(key, free)


def _or_other(fault: Fault, value: Any, info: inspect.UnionType, path: Path) -> Fault:
    """Mention what is allowed in place of a word: a boolean, a mapping or a list.

    For example, `tools: Read` is `[Read]`, and `instrument: yes` is neither `auto` nor `true`.
    """
    if any(isinstance(option, inspect.BoolType) for option in info.types):
        message = fault.message.replace(" is not one of ", " is not one of true, false, ", 1)
        fault = Fault(fault.path, message)
    if (
        fault.path == path
        and "is not one of" in fault.message
        and (meant := _in_a_list(value, info))
    ):
        return Fault(path, fault.message + meant)
    structs = [option for option in info.types if isinstance(option, inspect.StructType)]
    words = any(isinstance(option, inspect.LiteralType) for option in info.types)
    if not structs or not words or "is not one of" not in fault.message:
        return fault
    keys = ", ".join(f"`{field.encode_name}`" for field in structs[0].fields)
    return Fault(fault.path, f"{fault.message}, nor a mapping with {keys}")


def _explain_struct(value: dict[str, Any], info: inspect.StructType, path: Path) -> list[Fault]:
    fields = {field.encode_name: field for field in info.fields}
    free = [name for name in fields if name not in value] or list(fields)
    faults: list[Fault] = []
    for key, item in value.items():
        if key in fields:
            faults += _explain(item, fields[key].type, (*path, key))
        elif info.forbid_unknown_fields and key != info.tag_field:
            # Searching for similar keys takes time, and no more than these are shown.
            meant = f"; {_hint(str(key), free)}" if len(faults) < FAULTS.value else ""
            faults.append(Fault((*path, key), f"unknown key{meant}"))
    faults += [
        Fault(path, f"`{name}` is missing")
        for name, field in fields.items()
        if field.required and name not in value
    ]
    if info.tag_field and not _tagged(value, info):
        faults.append(Fault(path, f"`{info.tag_field}` has to be {info.tag!r}"))
    return faults or _own_words(value, info.cls, path)


def _own_words(value: Any, type_: Any, path: Path) -> list[Fault]:
    """Return the message of a type that checks itself, or msgspec's own."""
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        message, _, _ = str(error).partition(" - at `")
        blamed = _NAMED_FIRST.match(message)
        named = blamed and isinstance(value, dict) and blamed[1] in value
        return [Fault((*path, blamed[1]) if blamed and named else path, message)]
    return []


def _tagged(value: dict[str, Any], info: inspect.StructType) -> bool:
    return info.tag_field is None or value.get(info.tag_field) == info.tag


_SHAPES: list[tuple[tuple[type[inspect.Type], ...], tuple[type, ...], str]] = [
    ((inspect.StructType, inspect.DictType), (dict,), "a mapping"),
    ((inspect.ListType,), (list,), "a list"),
    ((inspect.StrType, inspect.LiteralType), (str,), "text"),
    ((inspect.BoolType,), (bool,), "true or false"),
    ((inspect.IntType,), (int,), "a whole number"),
    ((inspect.FloatType,), (int, float), "a number"),
    ((inspect.NoneType,), (type(None),), "null"),
]


def _fits(value: Any, info: inspect.Type) -> bool:
    """Tell whether a value has the outer shape of a type."""
    for kinds, types, _ in _SHAPES:
        if isinstance(info, kinds):
            if isinstance(value, bool):
                return bool in types
            return isinstance(value, types)
    return True


def _name(info: inspect.Type) -> str:
    if isinstance(info, inspect.LiteralType):
        return "one of " + ", ".join(str(word) for word in info.values)
    return next((name for kinds, _, name in _SHAPES if isinstance(info, kinds)), "something else")


def _describe(value: Any) -> str:
    if isinstance(value, dict | list):
        kind = "a mapping" if isinstance(value, dict) else "a list"
        return kind if value else f"an empty {kind.removeprefix('a ')}"
    text = msgspec.json.encode(value[:60] if isinstance(value, str) else value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."
