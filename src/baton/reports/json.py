"""The JSON report: everything, in the order of the dataset, the same for the same data."""

from __future__ import annotations

from typing import IO, Any

import msgspec

from baton.model import plain_agent_scores, plain_sums
from baton.stats.routing import plain_matrix
from baton.store import StoredEvaluation

from .calibrate import calibrations_of
from .figures import plain_repeats, repeats_of
from .judging import plain_judges

EXIT_CODES = {"passed": 0, "failed": 1}
_ENCODER = msgspec.json.Encoder()


def write_json(evaluation: StoredEvaluation, out: IO[str]) -> None:
    """Write one JSON object, its results one to a line; times stand under ``timings`` alone."""
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
        "efficiency": plain_sums(header.efficiency),
    }
    if header.by_agent:
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
    for row, body in evaluation.entries():
        entry = {"case_id": row.case_id, "repeat": row.repeat, "status": row.status, **body}
        if row.efficiency is not None:
            entry["efficiency"] = row.efficiency
        out.write(separator + _ENCODER.encode(entry).decode())
        separator = ",\n    "
    out.write("\n  ]\n}\n")
