"""What the page says of the evaluation as a whole."""

from __future__ import annotations

from typing import Any

from baton.analysis.routing import plain_matrix
from baton.model import STATUSES
from baton.reports.efficiency import counter_texts
from baton.reports.judging import gate_lines
from baton.store import StoredEvaluation


def summary(evaluation: StoredEvaluation) -> dict[str, Any]:
    """Return counts, the routing matrix, counters and notices as plain data."""
    header = evaluation.header
    return {
        "name": header.name,
        "id": header.id,
        "status": header.status,
        "cases": {status: header.cases.get(status, 0) for status in STATUSES},
        "evaluators": [
            {"name": each.evaluator, "optional": each.optional}
            | {status: getattr(each, status) for status in STATUSES}
            for each in header.evaluators
        ],
        "repeats": header.repeats,
        "problems": header.problems,
        "notices": [*header.notices, *gate_lines(header.gate, "unclear")],
        "missed": [*gate_lines(header.gate)],
        "routing": plain_matrix(header.routing),
        "spent": counter_texts(header.efficiency),
        "started": header.timings.get("started"),
        "seconds": header.timings.get("seconds"),
        "dataset": header.dataset,
        "traces": header.traces,
        "version": header.versions.get("baton"),
    }
