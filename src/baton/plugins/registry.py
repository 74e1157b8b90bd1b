"""The registry: a table of names. It imports nothing that it names."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from baton.model import InputError, suggestion

from .entry import Alias, Entry
from .evaluators import EVALUATORS, JUDGE_LLM_JUDGED, JUDGED

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

_RUBRICS = "baton.evaluators.judging.maker"
RUBRIC_SUFFIXES = (".yaml", ".yml")
"""What the name of a rubric's file ends in."""


def evaluator_entry(name: str, own: Sequence[Entry] = ()) -> Entry:
    """Find an evaluator by any of its names; ``own`` are rubrics of the user's.

    Raises:
        InputError: nothing has this name; with the nearest ones.
    """
    found = next((entry for entry in (*own, *EVALUATORS) if name in entry.names), None)
    if found is not None:
        return found
    if name in JUDGED and not any(name in entry.names for entry in rubric_entries()):
        raise InputError(f"Baton has no rubric that does what `{name}` does; take it out")
    return _find(name, (*own, *all_evaluators()), "evaluator")


def rubric_entries() -> tuple[Entry, ...]:
    """Return the rubrics that come with Baton; they are read when first asked for."""
    found: tuple[Entry, ...] = resolve(Entry("", f"{_RUBRICS}:shipped_entries", ""))()
    return found


def own_rubrics(folders: Iterable[Path]) -> tuple[Entry, ...]:
    """Return the rubrics of some folders (or files) of the user's.

    Raises:
        InputError: a folder is not there or holds none, a rubric is faulty, or its name is taken.
    """
    found: tuple[Entry, ...] = resolve(Entry("", f"{_RUBRICS}:own_entries", ""))(folders)
    return found


def all_evaluators() -> tuple[Entry, ...]:
    """Return all evaluators there are, rubrics included."""
    return (*EVALUATORS, *rubric_entries())


def evaluator_of_type(type_: str) -> Entry | None:
    """Find an evaluator by its canonical name; ``None`` for one of the user's own."""
    found = next((entry for entry in EVALUATORS if entry.type == type_), None)
    if found is not None or ":" in type_:
        return found
    return next((entry for entry in rubric_entries() if entry.type == type_), None)


def backend_entry(name: str) -> Entry:
    """Find a backend by its name; raises InputError with the nearest ones."""
    return _find(name, BACKENDS, "backend")


def reporter_entry(name: str) -> Entry:
    """Find a reporter by any of its names; raises InputError with the nearest ones."""
    return _find(name, REPORTERS, "reporter")


def known_evaluator_names() -> set[str]:
    """Return every name a case may override options of, other tools' evaluators included."""
    ours = {name for entry in all_evaluators() for name in entry.names}
    return ours | JUDGE_LLM_JUDGED


def resolve(entry: Entry) -> Any:
    """Import what an entry names."""
    return resolve_target(entry.target)


def resolve_target(target: str) -> Any:
    """Import ``module:attribute`` of Baton's own."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _find(name: str, entries: Iterable[Entry], what: str) -> Entry:
    known = {alias: entry for entry in entries for alias in entry.names}
    if name not in known:
        raise InputError(f"unknown {what} `{name}`; {suggestion(name, known)}")
    return known[name]
