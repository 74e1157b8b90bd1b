"""Baton's own record as JSON, and the traces in an evaluation folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from baton.formats.document import Document
from baton.formats.evaluation_folder import BODIES, INDEX, open_folder, read_row
from baton.formats.own_files import open_regular
from baton.formats.storage_addresses import is_copy, place_of
from baton.model import (
    READ_VERSIONS,
    SCHEMA_VERSION,
    AgentCard,
    InputError,
    Problem,
    Source,
    Trace,
    integrity_problems,
)
from baton.model.limits import RECORD_DEPTH


def read_record(document: Document, source: Source) -> Trace:
    """Read one trace; ``source`` is its location; the record's own source is kept.

    Raises:
        InputError: it is of another schema version, has errors, or contradicts itself.
    """
    try:
        trace = document.decode(Trace, deepest=RECORD_DEPTH.value)
    except InputError:
        value = document.value()
        version = value.get("schema_version") if isinstance(value, dict) else None
        if isinstance(version, int) and version not in READ_VERSIONS:
            message = f"schema_version is {version}; this Baton reads {SCHEMA_VERSION}"
            raise InputError(document.problem_at(("schema_version",), message)) from None
        raise
    problems = integrity_problems(trace)
    if problems:
        raise InputError(document.problem(message, document.first_line) for message in problems)
    trace.source.location = source.location
    return trace


class _Body(msgspec.Struct, kw_only=True):
    trace: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    agents: int | None = None
    repeat: int = 0


def read_bodies(file: Path, source: Source) -> Iterator[Trace]:
    """Yield the traces of a folder, in the order they were written.

    ``file`` is its ``bodies.jsonl``; the header has the definitions of agents. If a case was played
    again, the last trace counts. Traces of later repeats have their number in the attributes
    (``repeat``, from 1). Results whose trace is elsewhere are skipped.

    Raises:
        InputError: it is not such a folder; or, at the end, it is damaged, with the lost cases.
    """
    folder = file.parent
    place = place_of(folder)
    if is_copy(folder):
        source = msgspec.structs.replace(source, location=f"{place}/{BODIES}")
    opened = open_folder(folder)
    current = set(opened.lines)
    problems: list[Problem] = []
    with open_regular(folder / INDEX) as index, open_regular(file) as bodies:
        start = 0
        for number, line in enumerate(index, 1):
            if start in current:
                row = read_row(line)
                bodies.seek(row.offset)
                text = Document(f"{place}/{BODIES}", bodies.read(row.length), "json", number)
                try:
                    trace = _trace(text, source, opened.header.agents)
                except InputError as error:
                    problems += error.problems
                else:
                    yield from (trace,) if trace is not None else ()
            start += len(line)
    problems += [Problem(file=place, message=each, damaged=True) for each in opened.problems()]
    if problems:
        raise InputError(problems)


def _trace(
    document: Document, source: Source, catalogs: list[dict[str, AgentCard]]
) -> Trace | None:
    body = document.decode(_Body, extra_keys=[], deepest=RECORD_DEPTH.value)
    recorded = bytes(body.trace)
    if not recorded:
        return None
    text = Document(document.file, recorded, "json", document.first_line)
    trace = read_record(text, source)
    if body.agents is not None and 0 <= body.agents < len(catalogs):
        trace.agents = catalogs[body.agents]
    if body.repeat:
        trace.attributes["repeat"] = body.repeat
    return trace


def alone(file: str) -> InputError:
    """Return the error for bodies that are not in their folder."""
    message = f"holds results of an evaluation without their index: name the folder of {BODIES}"
    return InputError(Problem(file=file, message=message))
