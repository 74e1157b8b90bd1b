"""Baton's own record, as JSON."""

from __future__ import annotations

from baton.formats.document import Document
from baton.model import SCHEMA_VERSION, InputError, Source, Trace, integrity_problems
from baton.model.limits import RECORD_DEPTH


def read_record(document: Document, source: Source) -> Trace:
    """Read one trace; ``source`` tells where from, what the record says of its source stays.

    Raises:
        InputError: it is of another schema version, has faults, or contradicts itself.
    """
    try:
        trace = document.decode(Trace, deepest=RECORD_DEPTH.value)
    except InputError:
        value = document.value()
        version = value.get("schema_version") if isinstance(value, dict) else None
        if isinstance(version, int) and version != SCHEMA_VERSION:
            message = f"schema_version is {version}; this Baton reads {SCHEMA_VERSION}"
            raise InputError(document.problem_at(("schema_version",), message)) from None
        raise
    problems = integrity_problems(trace)
    if problems:
        raise InputError(document.problem(message, document.first_line) for message in problems)
    trace.source.location = source.location
    return trace
