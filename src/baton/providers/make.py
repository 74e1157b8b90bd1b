"""A provider from what a config says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.formats.explain import checked
from baton.model import InputError, Problem
from baton.plugins import provider_entry, resolve

from .base import ConfiguredProvider, ProviderOptions, Surroundings


def make_provider(
    spec: Mapping[str, Any], around: Surroundings | None = None
) -> ConfiguredProvider[Any]:
    """Build a provider from ``{"type": ..., ...}``; nothing is connected to yet.

    Raises:
        InputError: an unknown type, option or value, or options that contradict each other.
    """
    plain = dict(spec)
    kind = plain.get("type")
    if not isinstance(kind, str):
        raise InputError(Problem(path="type", message="is missing: which provider is it?"))
    try:
        provider = resolve(provider_entry(kind))
    except InputError as error:
        raise InputError(Problem(path="type", message=str(error))) from None
    return build_provider(checked(plain, provider.options_type), around)


def build_provider(
    options: ProviderOptions, around: Surroundings | None = None
) -> ConfiguredProvider[Any]:
    """Build the provider that checked options are for; raises InputError as above."""
    made: ConfiguredProvider[Any] = resolve(provider_entry(options.type))(options, around)
    return made
