"""Options of an evaluator that stand beside its ``type:``, where they are unknown keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from baton.evaluators.registry import evaluator_entry
from baton.formats.spelling import snake
from baton.model import InputError, Problem
from baton.plugins import resolve

_KEY = re.compile(r"evaluators\[(\d+)\]\.(\w+)")


def say_where(error: InputError, config: Mapping[str, Any]) -> InputError:
    """Tell of unknown keys that are options of the evaluator they stand beside."""
    return InputError(_worded(problem, config) for problem in error.problems)


def _worded(problem: Problem, config: Mapping[str, Any]) -> Problem:
    found = _KEY.fullmatch(problem.path)
    if found is None or not problem.message.startswith("unknown key"):
        return problem
    spec = config["evaluators"][int(found[1])]
    name = spec.get("type")
    if not isinstance(name, str) or snake(found[2]) not in _options(name):
        return problem
    message = f"is an option of `{name}`: put it under `config:`"
    return msgspec.structs.replace(problem, message=message)


def _options(name: str) -> set[str]:
    """Return the options of an evaluator, in Baton's words and in those of an alias."""
    try:
        entry = evaluator_entry(name)
    except InputError:
        return set()
    target = resolve(entry)
    struct = getattr(target, "options_type", target)
    if not (isinstance(struct, type) and issubclass(struct, msgspec.Struct)):
        return set()
    alias = entry.asked_as(name)
    theirs = {*alias.renames, *alias.unused, *(option for option, _ in alias.values)}
    return {field.encode_name for field in msgspec.structs.fields(struct)} | theirs
