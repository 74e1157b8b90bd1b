"""The JSON report: everything, in the order of the dataset, the same for the same data."""

from __future__ import annotations

from typing import IO, Any

import msgspec

from baton.evaluators.registry import evaluator_of_type
from baton.model import CaseResult, Score, plain_agent_scores
from baton.plugins import Entry
from baton.stats.routing import plain_matrix
from baton.store import Reportable

from .figures import plain_judges, plain_repeats, repeats_of

EXIT_CODES = {"passed": 0, "failed": 1}
_ENCODER = msgspec.json.Encoder()


def write_json(evaluation: Reportable, out: IO[str]) -> None:
    """Write one JSON object, with one result per line; times are only under ``timings``."""
    header = evaluation.header
    head: dict[str, Any] = {
        "name": header.name,
        "status": header.status,
        "exit_code": EXIT_CODES.get(header.status, 3),
        "problems": header.problems,
        "notices": header.notices,
        "cases": header.cases,
        "evaluators": msgspec.to_builtins(header.evaluators),
        "routing": plain_matrix(header.routing),
        "efficiency": {"results": 0, **msgspec.to_builtins(header.efficiency)},
    }
    if header.by_agent:
        from .calibrate import calibrations_of

        head["by_agent"] = plain_agent_scores(header.by_agent)
        head["judges"] = plain_judges(header.by_agent)
        head["calibrations"] = [
            {"evaluator": name, "model": model, "calibration": line}
            for name, model, line in calibrations_of(header)
        ]
    head["statistics"] = plain_repeats(repeats_of(evaluation))
    if header.provenance is not None:
        head["provenance"] = msgspec.to_builtins(header.provenance)
    if header.gate:
        head["gate"] = msgspec.to_builtins(header.gate)
    out.write(msgspec.json.format(_ENCODER.encode(head), indent=2).decode().removesuffix("\n}"))
    out.write(',\n  "results": [')
    separator = "\n    "
    for result in evaluation:
        out.write(separator + _ENCODER.encode(_entry(result)).decode())
        separator = ",\n    "
    out.write("\n  ]\n}\n")


def _entry(result: CaseResult) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "case_id": result.case_id,
        "repeat": result.repeat,
        "status": result.status,
        "where": result.where,
        "tags": result.tags or None,
        "error": result.error,
        "mean": result.mean,
        "timings": result.timings,
    }
    if result.recorded is not None:
        entry["recorded"] = {
            "id": result.recorded.id,
            "format": result.recorded.format,
            "location": result.recorded.location,
        }
    elif result.trace is not None:
        entry["trace"] = msgspec.structs.replace(result.trace, agents={})
    entry["scores"] = [_score(score) for score in result.scores]
    entry["efficiency"] = result.efficiency
    return {name: value for name, value in entry.items() if value is not None}


def _score(score: Score) -> dict[str, Any]:
    """Return a score with the result keys of judge-llm, and Baton's own.

    ``evaluator_type`` is the requested name, ``success`` is whether it could be evaluated; if not,
    ``score`` is null.
    """
    entry = evaluator_of_type(score.type)
    is_built_in = entry is not None and score.evaluator in entry.names
    plain: dict[str, Any] = {
        "evaluator_name": entry.asked_as(score.evaluator).class_name
        if entry is not None and is_built_in
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
        plain["subject"] = score.subject
    if score.evidence:
        plain["evidence"] = score.evidence
    if score.judge is not None:
        plain["judge"] = score.judge
    return plain


REPORT = Entry("json", write_json, "everything, for programs")
