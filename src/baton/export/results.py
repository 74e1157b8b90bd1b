"""Scores as ``gen_ai.evaluation.result`` events of OpenTelemetry's GenAI conventions.

An error has ``error.type`` and neither value nor label; a score that was skipped has the label
``skipped`` and no value. Nothing that is no verdict looks like one.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from baton.model import CaseResult, Score
from baton.store import StoredEvaluation

from .places import Read, SpanIds, Written
from .wire import LogRecord

EVENT = "gen_ai.evaluation.result"
_INFO, _ERROR = 9, 17
_LABELS = {"passed": "pass", "failed": "fail", "skipped": "skipped"}
_OTHER = "_OTHER"
"""What OpenTelemetry writes for an error that has no class."""
Json = dict[str, Any]


def events_of(
    evaluation: StoredEvaluation,
    result: CaseResult,
    places: Written | Read | None,
    observed: float,
) -> Iterator[LogRecord]:
    """Yield an event for each score of a case, and one for an error of the case itself.

    ``places`` tells the spans of its trace; a case without a trace has no span. ``observed`` is
    the time of the export, in seconds since the epoch.
    """
    at = _ended(evaluation)
    case = {
        "baton.evaluation.id": evaluation.header.id,
        "baton.case": result.case_id,
        "baton.repeat": result.repeat + 1,
        "baton.case.status": result.status,
    }
    held = result.trace or result.recorded
    if held is not None and held.id:
        case["gen_ai.conversation.id"] = held.id
    if result.error is not None:
        about = {
            "gen_ai.evaluation.name": "case",
            **_explained(result.error),
            "error.type": _OTHER,
        }
        span = places.of([]) if places is not None else None
        yield _event({**about, **case}, span, at, observed, is_error=True)
    for score in result.scores:
        span = places.of(score.subject) if places is not None else None
        is_error = score.status == "error"
        yield _event({**_score(score), **case}, span, at, observed, is_error=is_error)


def _event(
    attributes: Json, span: SpanIds | None, at: float | None, observed: float, *, is_error: bool
) -> LogRecord:
    return LogRecord(
        name=EVENT,
        at=at,
        observed=observed,
        severity=_ERROR if is_error else _INFO,
        attributes=attributes,
        trace_id=span.trace_id if span is not None else None,
        span_id=span.span_id if span is not None else None,
    )


def _score(score: Score) -> Json:
    attributes = {
        "gen_ai.evaluation.name": score.evaluator,
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": _LABELS.get(score.status),
        **_explained(score.reason),
        "error.type": _OTHER if score.status == "error" else None,
        "baton.evaluator.type": score.type,
        "baton.evaluator.version": score.version,
        "baton.score.status": score.status,
        "baton.score.threshold": score.threshold,
        "baton.score.unit": score.unit,
        "baton.score.subject": score.subject or None,
        "baton.judge.model": score.judge.model if score.judge is not None else None,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _explained(reason: str) -> Json:
    return {"gen_ai.evaluation.explanation": reason} if reason else {}


def _ended(evaluation: StoredEvaluation) -> float | None:
    """Return when the evaluation ended, or else began; in seconds since the epoch."""
    timings = evaluation.header.timings
    told = timings.get("ended") or timings.get("started")
    try:
        return datetime.fromisoformat(str(told)).timestamp() if told else None
    except ValueError:
        return None
