"""``baton list``."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import msgspec
from msgspec import inspect
from rich.table import Table

from baton.evaluators.registry import evaluator_entries, rubric_entries
from baton.model import InputError, nearest, suggestion
from baton.providers.registry import provider_entries
from baton.reports.registry import report_entries
from baton.reports.text import console_for
from baton.runner.backends.registry import backend_entries

_RUBRICS = "evaluators that ask a judge"


def list_command(*names: str) -> int:
    """List evaluators, providers, reporters and backends, with their aliases, options and defaults.

    Parameters
    ----------
    names
        Names of evaluators, providers, reporters or backends to explain; by default all.
    """
    kinds = (
        ("evaluators", evaluator_entries()),
        (_RUBRICS, rubric_entries()),
        ("providers", provider_entries()),
        ("reporters", report_entries()),
        ("backends", backend_entries()),
    )
    known = [name for _, entries in kinds for entry in entries for name in entry.names]
    for name in names:
        if name not in known:
            # There are about two hundred names: too many for an error message.
            hint = suggestion(name, known) if nearest(name, known) else "`baton list` shows all"
            raise InputError(f"nothing is called `{name}`; {hint}")
    console = console_for(sys.stdout)
    for title, all_entries in kinds:
        entries = [e for e in all_entries if not names or not set(names).isdisjoint(e.names)]
        if not entries:
            continue
        table = Table(title, "", box=None, pad_edge=False, header_style="bold")
        for entry in entries:
            table.add_row(entry.type, entry.summary)
            also = [name for name in entry.names[1:] if name != entry.type]
            if also:
                table.add_row("", f"also {', '.join(also)}", style="dim")
            # Reporters have no options. All rubrics have the same ones: once is enough.
            shows_options = title != "reporters" and (names or title != _RUBRICS)
            for option, meaning in _options(entry.target.options_type) if shows_options else ():
                table.add_row("", option, style="dim")
                if names and meaning:
                    table.add_row("", f"  {meaning}")
        if title == _RUBRICS and not names:
            table.add_row("", "their options: baton list llm_judge", style="dim")
        console.print(table)
    return 0


def _options(struct: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    """Yield each option with its default, and its description if there is one."""
    for field in msgspec.structs.fields(struct):
        if field.name != "type":
            described = inspect.type_info(field.type)
            meaning = ""
            while isinstance(described, inspect.Metadata):
                meaning = (described.extra_json_schema or {}).get("description", meaning)
                described = described.type
            yield f"{field.name}: {_default(field)}", meaning


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    made = field.default is msgspec.NODEFAULT
    value = field.default_factory() if made else field.default
    return msgspec.json.encode(value).decode()
