"""The CSV report: a row for each score, for spreadsheets and data frames."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import IO, Any

from baton.model.visible import visible
from baton.store import IndexRow, StoredEvaluation

from .place import place_of

COLUMNS = (
    "case", "repeat", "case_status", "case_error", "evaluator", "type", "version", "unit",
    "subject", "status", "value", "threshold", "reason", "agent", "file", "line", "tags",
    "judge_model", "judge_tokens", "judge_cost_usd",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_csv(evaluation: StoredEvaluation, out: IO[str]) -> None:
    """Write the rows of RFC 4180; a case without scores has one, with its status and error.

    A text that a spreadsheet would take for a formula gets a ``'`` before it; figures are ours
    and stay as they are.
    """
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row, body in evaluation.entries():
        for cells in _rows(row, body):
            writer.writerow([safe(cells.get(name)) for name in COLUMNS])


def safe(value: str | float | None) -> str | float | None:
    """Return a cell that is not a formula, and in which nothing is invisible."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    # Spreadsheets skip white space of any kind before a formula, such as a no-break space.
    starts = (value.lstrip(" "), value.lstrip())
    is_formula = any(start.startswith(_FORMULA) for start in starts)
    return f"'{text}" if is_formula else text


def _rows(row: IndexRow, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    place = place_of(body)
    case = {
        "case": row.case_id,
        "repeat": row.repeat + 1,
        "case_status": row.status,
        "case_error": body.get("error"),
        "file": place.file if place else None,
        "line": place.line if place else None,
        "tags": ";".join(body.get("tags", [])),
    }
    for score in body["scores"]:
        judge = score.get("judge") or {}
        yield {
            **case,
            "evaluator": score["evaluator_type"],
            **{name: score[name] for name in ("type", "version", "unit", "status")},
            "value": score["score"],
            "threshold": score["threshold"],
            "reason": score["reason"],
            "subject": ";".join(score.get("subject", [])),
            "agent": agent_of(score["details"]),
            **{f"judge_{name}": judge.get(name) for name in ("model", "tokens", "cost_usd")},
        }
    if not body["scores"]:
        yield case


def agent_of(details: dict[str, Any]) -> str | None:
    """Return the agent that a score is about: the one that was to get the work, or got it."""
    names = (details.get(name) for name in ("expected_agent", "to", "actual_agent", "agent"))
    return next((name for name in names if isinstance(name, str)), None)
