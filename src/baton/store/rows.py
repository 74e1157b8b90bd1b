"""Results as JSON rows."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.model import CaseResult, Score
from baton.plugins import evaluator_of_type


def score_row(score: Score) -> dict[str, Any]:
    """Write a score with the result keys of judge-llm, and ours beside them.

    ``evaluator_type`` is the name it was asked for under, ``success`` whether it could be
    evaluated at all; ``score`` is null when it could not.
    """
    entry = evaluator_of_type(score.type)
    class_name = entry.asked_as(score.evaluator).class_name if entry else score.evaluator
    row: dict[str, Any] = {
        "evaluator_name": class_name
        if entry and score.evaluator in entry.names
        else score.evaluator,
        "evaluator_type": score.evaluator,
        "type": score.type,
        "version": score.version,
        "unit": score.unit,
        "status": score.status,
        "passed": score.status == "passed",
        "score": score.value,
        "threshold": score.threshold,
        "success": score.status in ("passed", "failed"),
        "reason": score.reason,
        "details": score.details,
    }
    if score.subject:
        row["subject"] = score.subject
    if score.evidence:
        row["evidence"] = msgspec.to_builtins(score.evidence)
    if score.judge is not None:
        row["judge"] = msgspec.to_builtins(score.judge)
    return row


def index_row(result: CaseResult, offset: int, length: int) -> dict[str, Any]:
    """Write a result in short, with the place of its body."""
    row: dict[str, Any] = {
        "position": result.position,
        "case_id": result.case_id,
        "repeat": result.repeat,
        "status": result.status,
        "scores": [[score.evaluator, score.status, score.value] for score in result.scores],
        "offset": offset,
        "length": length,
    }
    if result.trace is not None and result.trace.usage is not None:
        row["usage"] = msgspec.to_builtins(result.trace.usage)
    if result.efficiency is not None:
        row["efficiency"] = msgspec.to_builtins(result.efficiency)
    if result.routing:
        row["routing"] = result.routing
    if result.by_agent:
        row["by_agent"] = msgspec.to_builtins(result.by_agent)
    if result.agents:
        row["agents"] = msgspec.to_builtins(result.agents)
    if result.route:
        row["route"] = msgspec.to_builtins(result.route)
    if result.tags:
        row["tags"] = result.tags
    return row


def body_of(result: CaseResult, *, keep_trace: bool, catalog: int | None = None) -> dict[str, Any]:
    """Write a result in full; a trace that lies in a file already is only pointed at.

    ``catalog`` is the place, among those of the header, of the agents that the trace leaves out.
    """
    body: dict[str, Any] = {"case_id": result.case_id, "repeat": result.repeat}
    if result.where is not None:
        body["where"] = msgspec.to_builtins(result.where)
    if result.tags:
        body["tags"] = result.tags
    if result.error is not None:
        body["error"] = result.error
    if result.mean is not None:
        body["mean"] = result.mean
    if result.timings is not None:
        body["timings"] = result.timings
    trace = result.trace
    if trace is not None and keep_trace:
        body["trace"] = msgspec.to_builtins(trace)
        if catalog is not None:
            body["agents"] = catalog
    elif trace is not None:
        source = trace.source
        recorded = {"id": trace.id, "format": source.format, "location": source.location}
        body["recorded"] = recorded
    body["scores"] = [score_row(score) for score in result.scores]
    return body
