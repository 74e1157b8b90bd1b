"""Results as JSON rows."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.model import CaseResult, Score
from baton.plugins import EVALUATORS


def score_row(score: Score) -> dict[str, Any]:
    """Write a score with the result keys of judge-llm, and ours beside them.

    ``evaluator_type`` is the name it was asked for under, ``success`` whether it could be
    evaluated at all; ``score`` is null when it could not.
    """
    entry = next((entry for entry in EVALUATORS if entry.type == score.type), None)
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


def body_of(result: CaseResult, *, keep_trace: bool) -> dict[str, Any]:
    """Write a result in full; a trace that lies in a file already is only pointed at."""
    body: dict[str, Any] = {"case_id": result.case_id, "repeat": result.repeat}
    if result.error is not None:
        body["error"] = result.error
    trace = result.trace
    if trace is not None and keep_trace:
        body["trace"] = msgspec.to_builtins(trace)
    elif trace is not None:
        source = trace.source
        recorded = {"id": trace.id, "format": source.format, "location": source.location}
        body["recorded"] = recorded
    body["scores"] = [score_row(score) for score in result.scores]
    return body
