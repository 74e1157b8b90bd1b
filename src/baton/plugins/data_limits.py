"""Limits of data files: the names they may use, and the options they may set.

A dataset, an experiment or an evaluation folder is untrusted. It may name entries of the registry,
but never code, an address or a folder. Configs, the command line and Python are the user's own, and
may name everything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, Literal

import msgspec
from msgspec import inspect

Origin = Literal["case", "file"]
"""Who sets an option: a case, only for itself, or a data file that names its evaluators."""

FROM_CASES = msgspec.Meta(extra={"from": "case"})
"""Marks an option that a case may set: a text or a value to compare with."""

FROM_FILES = msgspec.Meta(extra={"from": "file"})
"""Marks an option that a data file may set for an evaluator it names, but a case may not."""

FROM_CONFIGS = msgspec.Meta(extra={"from": "config"})
"""Marks an option that only the user may set, although its type is harmless."""

JUDGE_FROM_FILES = msgspec.Meta(
    extra={"from": "file", "keys": frozenset({"model", "temperature", "max_tokens"})}
)
"""Marks settings of a judge. A file may say which model of a known provider is asked, and how,
as experiments of Strands and criteria of ADK do; never an address or a key."""

_HARMLESS = (
    inspect.BoolType,
    inspect.IntType,
    inspect.FloatType,
    inspect.LiteralType,
    inspect.EnumType,
    inspect.NoneType,
)
"""Types whose values can name nothing: `threshold: 0.5`, `match: contains`."""

# Users' evaluators declare no types, so names of parameters decide: a case may set `word`,
# `max_words` or `required_keys`, and not `base_url`, `api_key` or `prompt_file`.
_NAMES_SOMETHING = (  # compiled only when it is needed, as that takes 1 ms
    r"(^|_)(judges?|ur[il]s?|endpoints?|hosts?|port|address(es)?|servers?|proxy|headers?|env"
    r"|(api|access|private|auth)_?key|api_?token|auth|secrets?|passwords?|credentials?"
    r"|functions?|func|callbacks?|hooks?|modules?|scripts?|commands?|cmd|shell|exec"
    r"|folders?|dirs?|director(y|ies)|paths?|files?|filename|cwd)(_|$)"
    r"|^(model|target|class|code|plugin|provider|rubric|key|token|cache|root|output)$"
)
_CODE = re.compile(r"[:/\\]|\.(py|pyc|so|ya?ml|json|toml)$", re.IGNORECASE)


def names_code(name: str) -> bool:
    """Tell whether a name is not just an entry of the registry: code, a path, a file.

    `timeit:timeit`, `theirs/evil.py` and `rubric.yaml` are; `agent_chain` is not.
    """
    return _CODE.search(name) is not None


def refused_options(
    struct: type[msgspec.Struct], options: Mapping[str, Any], origin: Origin
) -> list[str]:
    """Return the options that data may not set, as paths (`judge.base_url`).

    The types of the fields decide: numbers, booleans and fixed words name nothing and may be set; a
    text may be set if it is marked. So only the user may set a new option until it is marked.

    Args:
        struct: the options of an evaluator.
        options: values of options, by Baton's names.
        origin: who sets them.
    """
    return [path for name in options for path in _refused(struct, name, options[name], origin)]


def refused_by_name(options: Iterable[str], listed: Collection[str] | None) -> list[str]:
    """Return the options that data may not set for a user's own evaluator.

    It may list allowed ones in `case_options` (``listed``); otherwise the names of its parameters
    decide.
    """
    if listed is not None:
        return [name for name in options if name not in listed and name != "threshold"]
    return [name for name in options if re.search(_NAMES_SOMETHING, name, re.IGNORECASE)]


def _refused(struct: type[msgspec.Struct], name: str, value: Any, origin: Origin) -> list[str]:
    rules = _rules(struct)
    if name not in rules:
        return []  # it is unknown, and refused as such with a similar name
    source, keys, nested = rules[name]
    if nested is not None:
        inside = value if isinstance(value, Mapping) else {}
        return [
            f"{name}.{path}"
            for each in inside
            for path in _refused(nested, each, inside[each], origin)
        ]
    if source == "config" or (source == "file" and origin == "case"):
        return [name]
    if keys is not None:
        inside = value if isinstance(value, Mapping) else {}
        return [f"{name}.{key}" for key in inside if key not in keys]
    return []


_Rule = tuple[str, frozenset[str] | None, type[msgspec.Struct] | None]


@cache
def _rules(struct: type[msgspec.Struct]) -> dict[str, _Rule]:
    """Return, for each option by its name in files, who may set it."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)  # noqa: S101 - it is asked for structs alone
    rules: dict[str, _Rule] = {}
    for field in info.fields:
        extra: dict[str, Any] = {}
        kind = field.type
        while isinstance(kind, inspect.Metadata):
            extra = {**(kind.extra or {}), **extra}
            kind = kind.type
        source = extra.get("from", "case" if _is_harmless(kind) else "config")
        rules[field.encode_name] = (source, extra.get("keys"), extra.get("options_of"))
    return rules


def _is_harmless(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.Metadata):
        return _is_harmless(kind.type)
    if isinstance(kind, inspect.UnionType):
        return all(map(_is_harmless, kind.types))
    if isinstance(kind, inspect.ListType | inspect.VarTupleType | inspect.SetType):
        return _is_harmless(kind.item_type)
    return isinstance(kind, _HARMLESS)
