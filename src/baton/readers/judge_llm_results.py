"""Recordings of judge-llm: its reports, and single provider results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from baton.formats.adk import EvalCase, Invocation
from baton.formats.document import Document
from baton.formats.key_case import ExtraKey
from baton.model import Source, Trace

from .adk.reader import recorded_case
from .catalog import Catalog
from .registry import FileFormat


class ProviderResult(msgspec.Struct, kw_only=True):
    """An agent's answer; cost and time are not read."""

    conversation_history: list[Invocation]
    metadata: dict[str, Any] | None = None
    success: bool = True
    error: str | None = None


class ExecutionRun(msgspec.Struct, kw_only=True):
    """One execution of one case."""

    eval_case_id: str
    provider_result: ProviderResult
    execution_id: str | None = None


class Report(msgspec.Struct, kw_only=True):
    """A report file."""

    execution_runs: list[ExecutionRun]


def read_report(
    document: Document, source: Source, catalog: Catalog, _fallback_id: str
) -> Iterator[Trace]:
    """Read the executions of a report, one trace each."""
    extra_keys: list[ExtraKey] = []
    for run in document.decode(Report, extra_keys=extra_keys).execution_runs:
        yield _trace(
            run.provider_result, extra_keys, run.eval_case_id, run.execution_id, source, catalog
        )


def read_provider_result(
    document: Document, source: Source, catalog: Catalog, fallback_id: str
) -> Iterator[Trace]:
    """Read one provider result; only its metadata may name its case."""
    extra_keys: list[ExtraKey] = []
    result = document.decode(ProviderResult, extra_keys=extra_keys)
    case = (result.metadata or {}).get("eval_id")
    case = case if isinstance(case, str) else fallback_id
    yield _trace(result, extra_keys, case, None, source, catalog)


def _trace(
    result: ProviderResult,
    extra_keys: list[ExtraKey],
    case: str,
    id_: str | None,
    source: Source,
    catalog: Catalog,
) -> Trace:
    history = result.conversation_history
    recorded = EvalCase(eval_id=case, conversation=history, metadata=result.metadata)
    trace = recorded_case(recorded, extra_keys, source, catalog, id_)
    if not result.success:
        for turn in trace.turns[-1:]:
            turn.status, turn.error = "failed", result.error or "the provider failed"
    return trace


FORMATS = (
    FileFormat("judge-llm-report", None, frozenset({"execution_runs"}), read_report),
    FileFormat("judge-llm-result", None, frozenset({"conversation_history"}), read_provider_result),
)
