"""Sessions and result files of ADK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from baton.formats.adk_events import SessionFile
from baton.formats.document import Document
from baton.formats.evalset import EvalCase, Invocation
from baton.formats.prune import Stray
from baton.formats.spelling import camel_twin
from baton.model import Source, Trace
from baton.readers.catalog import Catalog

from .conversation import read_conversation
from .recorded_case import recorded_case
from .wire import Wire, dropped_keys


class CaseOutcome(msgspec.Struct, kw_only=True):
    """One case of a result file; what is scored there is not read."""

    eval_id: str
    session_id: str | None = None
    session_details: SessionFile | None = None
    eval_metric_result_per_invocation: list[dict[str, Any]] | None = None


class ResultFile(msgspec.Struct, kw_only=True):
    """What ``adk eval`` writes."""

    eval_case_results: list[CaseOutcome]


def read_session(
    document: Document, source: Source, catalog: Catalog, case: str | None = None
) -> Trace:
    """Read a session, as a server answers it or ADK saves it."""
    strays: list[Stray] = []
    session = document.decode(SessionFile, strays=strays, spellings=(camel_twin(SessionFile),))
    return _session_trace(session, strays, source, catalog, case)


def read_result_file(document: Document, source: Source, catalog: Catalog) -> Iterator[Trace]:
    """Read the recorded runs of a result file, one trace a case."""
    value = document.value()
    if isinstance(value, str):
        document = Document(document.file, value.encode(), "json", document.first_line)
    strays: list[Stray] = []
    for index, outcome in enumerate(document.decode(ResultFile, strays=strays).eval_case_results):
        if outcome.session_details is not None:
            yield _session_trace(outcome.session_details, strays, source, catalog, outcome.eval_id)
            continue
        path = ("eval_case_results", index, "eval_metric_result_per_invocation")
        entries = outcome.eval_metric_result_per_invocation or []
        actual = [
            document.convert(entry["actual_invocation"], Invocation, path=path, strays=strays)
            for entry in entries
            if entry.get("actual_invocation")
        ]
        case = EvalCase(eval_id=outcome.eval_id, conversation=actual)
        yield recorded_case(case, strays, source, catalog, outcome.session_id)


def _session_trace(
    session: SessionFile,
    strays: list[Stray],
    source: Source,
    catalog: Catalog,
    case: str | None,
) -> Trace:
    return read_conversation(
        Wire(session.events, dropped_keys(strays)),
        id_=session.id,
        source=source,
        catalog=catalog,
        case=case,
        state=session.state,
    )
