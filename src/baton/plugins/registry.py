"""The registry: a table of names. It imports nothing that it names."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from baton.model import InputError, suggestion

from .entry import Alias, Entry

REPORTERS = (
    Entry(
        "terminal",
        "baton.reports.terminal:print_terminal",
        "a summary and the failures, for people",
        (Alias("console", "ConsoleReporter"),),
    ),
    Entry("json", "baton.reports.json:write_json", "everything, for programs"),
    Entry("junit", "baton.reports.junit:write_junit", "test cases, for CI systems"),
    Entry(
        "html",
        "baton.reports.html.page:write_html",
        "one page that opens from disk, with every trace",
    ),
    Entry("markdown", "baton.reports.markdown:write_markdown", "a comment on a pull request"),
    Entry("csv", "baton.reports.csv:write_csv", "a row for each score, for spreadsheets"),
    Entry(
        "github",
        "baton.reports.github:write_github",
        "annotations and the summary of a step, for GitHub Actions",
    ),
    Entry(
        "otlp",
        "baton.export.run:write_otlp",
        "results as OpenTelemetry events, to a file or an endpoint",
    ),
)

BACKENDS = (
    Entry("local", "baton.runner.backends.local:Local", "processes on this machine"),
    Entry("ray", "baton.runner.backends.ray:Ray", "a Ray cluster, or one made for the run"),
)

RUBRIC_SUFFIXES = (".yaml", ".yml")
"""What the name of a rubric's file ends in."""


def backend_entry(name: str) -> Entry:
    """Find a backend by its name; raises InputError with the nearest ones."""
    return _find(name, BACKENDS, "backend")


def reporter_entry(name: str) -> Entry:
    """Find a reporter by any of its names; raises InputError with the nearest ones."""
    return _find(name, REPORTERS, "reporter")


def resolve(entry: Entry) -> Any:
    """Return what an entry names; it is imported where it is named only."""
    target = entry.target
    return resolve_target(target) if isinstance(target, str) else target


def resolve_target(target: str) -> Any:
    """Import ``module:attribute`` of Baton's own."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _find(name: str, entries: Iterable[Entry], what: str) -> Entry:
    known = {alias: entry for entry in entries for alias in entry.names}
    if name not in known:
        raise InputError(f"unknown {what} `{name}`; {suggestion(name, known)}")
    return known[name]
