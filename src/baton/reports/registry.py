"""Finds reports by name: each module of this package that ends with ``REPORT = Entry(...)``.

The module is named after the type of its report, so one module is imported to find one report. Only
an alias or an unknown name requires importing all of them.
"""

from __future__ import annotations

import importlib
from functools import cache

from baton.model import InputError, suggestion
from baton.plugins import Entry, module_names


@cache
def report_entries() -> tuple[Entry, ...]:
    """Return all reports, in the order of their names."""
    entries = [_entry_of(name) for name in module_names(__file__)]
    return tuple(entry for entry in entries if entry is not None)


def report_entry(name: str) -> Entry:
    """Find a report by any of its names; raises InputError with similar names."""
    if name in module_names(__file__):
        entry = _entry_of(name)
        if entry is not None:
            return entry
    known = {each: entry for entry in report_entries() for each in entry.names}
    if name not in known:
        raise InputError(f"unknown reporter `{name}`; {suggestion(name, known)}")
    return known[name]


@cache
def _entry_of(module: str) -> Entry | None:
    entry: Entry | None = getattr(
        importlib.import_module(f"{__package__}.{module}"), "REPORT", None
    )
    return entry
