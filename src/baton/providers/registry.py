"""Finds providers by name, and builds one from a config.

Each module with a provider in this package is named after its type, and the class describes its
purpose in ``summary``. So a provider is found by importing one module.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from baton.formats.explain_mistakes import checked
from baton.model import InputError, Problem, suggestion
from baton.plugins import Entry, module_names

from .base_provider import ConfiguredProvider, ProviderOptions, Surroundings


@cache
def provider_entries() -> tuple[Entry, ...]:
    """Return all providers, in the order of their names."""
    return tuple(entry for name in module_names(__file__) for entry in _entries_of(name))


def provider_entry(name: str) -> Entry:
    """Find a provider by any of its names; raises InputError with similar names."""
    entries = _entries_of(name) if name in module_names(__file__) else ()
    entries = entries or tuple(entry for entry in provider_entries() if name in entry.names)
    if not entries:
        known = [known for entry in provider_entries() for known in entry.names]
        raise InputError(f"unknown provider `{name}`; {suggestion(name, known)}")
    return entries[0]


def in_our_words(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a provider with another tool's name, converted to Baton's.

    Raises: InputError: no provider has this name, or an option is missing.
    """
    entry = provider_entry(str(spec.get("type")))
    plain = dict(spec)
    if spec.get("type") != entry.type:
        plain = {**entry.target.translated(plain), "type": entry.type}
    return plain


@cache
def _entries_of(module: str) -> tuple[Entry, ...]:
    """Return the provider in a module: the class with a summary."""
    name = f"{__package__}.{module}"
    members: Iterable[Any] = vars(importlib.import_module(name)).values()
    classes: list[Any] = [each for each in members if inspect.isclass(each)]
    return tuple(
        Entry(module, each, each.summary, each.aliases)
        for each in classes
        if each.__module__ == name and "summary" in vars(each)
    )


def make_provider(
    spec: Mapping[str, Any], around: Surroundings | None = None
) -> ConfiguredProvider[Any]:
    """Build a provider from ``{"type": ..., ...}``; it does not connect yet.

    Raises:
        InputError: an unknown type, option or value, or options that contradict each other.
    """
    plain = dict(spec)
    kind = plain.get("type")
    if not isinstance(kind, str):
        raise InputError(Problem(path="type", message="is missing: name the provider"))
    try:
        provider = provider_entry(kind).target
        plain = in_our_words(plain)
    except InputError as error:
        raise InputError(Problem(path="type", message=str(error))) from None
    return build_provider(checked(plain, provider.options_type), around)


def build_provider(
    options: ProviderOptions, around: Surroundings | None = None
) -> ConfiguredProvider[Any]:
    """Build the provider that checked options are for; raises InputError as above."""
    made: ConfiguredProvider[Any] = provider_entry(options.type).target(options, around)
    return made
