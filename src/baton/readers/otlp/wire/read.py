"""Files to conversations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from baton.formats.nesting import is_value_too_deep
from baton.model import Dropped, InputError, Problem
from baton.readers.otlp.span import Conversation, Event, Span

from .assign import assign
from .group import conversation
from .pieces import file_records
from .report import Limits, Report
from .shelf import Shelf

File = str | os.PathLike[str]
_IN_MEMORY = 4 << 20


def read_conversations(
    files: File | Sequence[File],
    *,
    limits: Limits | None = None,
    on_lost: Callable[[Dropped], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[Conversation]:
    """Yield the conversations of one or several files that belong together, in start order.

    All is read before the first conversation comes; what does not fit into a few megabytes
    waits in a temporary file. By then ``on_lost`` has been told what could not be kept, and
    ``on_note`` what was put right.

    Raises:
        InputError: at the end, when something was wrong; what is whole was yielded before. At
            once, when a file cannot be read or is over a limit.
    """
    paths = [files] if isinstance(files, str | os.PathLike) else files
    problems: list[Problem] = []
    shelf = Shelf()
    try:
        for path in paths:
            report = Report(str(path))
            _fill(shelf, Path(path), report, limits or Limits())
            problems += report.all_problems()
            for lost in report.lost.values():
                if on_lost is not None:
                    on_lost(lost)
        found = assign(shelf)
        _tell_what_was_odd(shelf, on_lost, on_note)
        for id_, numbers in found.items():
            yield conversation(shelf, id_, numbers)
    finally:
        shelf.close()
    if problems:
        raise InputError(problems)


def _fill(shelf: Shelf, path: Path, report: Report, limits: Limits) -> None:
    flushed = 0
    for record in file_records(path, report, limits):
        _drop_deep_values(record, report)
        if not isinstance(record, Span):
            shelf.add_log(record)
        elif record.trace_id and record.span_id:
            shelf.add(record)
        else:
            report.lose("spans without an id", example=f"{report.file}: {record.name}")
        if report.read - flushed > _IN_MEMORY:
            flushed = report.read
            shelf.flush()


def _drop_deep_values(record: Span | Event, report: Report) -> None:
    """Leave out attributes that are nested beyond the limit; the rest of a record stays."""
    holders = [record.attributes]
    if isinstance(record, Span):
        holders += [event.attributes for event in record.events]
    for attributes in holders:
        deep = [
            key
            for key, value in attributes.items()
            if isinstance(value, dict | list) and is_value_too_deep(value)
        ]
        for key in deep:
            del attributes[key]
            report.lose("attributes nested too deep", example=f"{report.file}: {key}")
    if isinstance(record, Event) and is_value_too_deep(record.body):
        record.body = None
        report.lose("attributes nested too deep", example=f"{report.file}: body")


def _tell_what_was_odd(
    shelf: Shelf,
    on_lost: Callable[[Dropped], None] | None,
    on_note: Callable[[str], None] | None,
) -> None:
    if shelf.homeless and on_lost is not None:
        on_lost(Dropped(what="log records of no conversation", count=shelf.homeless))
    if shelf.backwards and on_note is not None:
        on_note(f"{shelf.backwards} spans end before they start; they count as taking no time")
