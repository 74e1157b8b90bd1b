"""The registry: a table of names. It imports nothing that it names."""

from __future__ import annotations

import importlib
from typing import Any

from baton.model import InputError, suggestion

from .entry import Entry

BACKENDS = (
    Entry("local", "baton.runner.backends.local:Local", "processes on this machine"),
    Entry("ray", "baton.runner.backends.ray:Ray", "a Ray cluster, or one made for the run"),
)

RUBRIC_SUFFIXES = (".yaml", ".yml")
"""What the name of a rubric's file ends in."""


def backend_entry(name: str) -> Entry:
    """Find a backend by its name; raises InputError with the nearest ones."""
    known = {entry.type: entry for entry in BACKENDS}
    if name not in known:
        raise InputError(f"unknown backend `{name}`; {suggestion(name, known)}")
    return known[name]


def resolve(entry: Entry) -> Any:
    """Return what an entry names; it is imported where it is named only."""
    target = entry.target
    return resolve_target(target) if isinstance(target, str) else target


def resolve_target(target: str) -> Any:
    """Import ``module:attribute`` of Baton's own."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)
