"""The CSV report: a row for each score, for spreadsheets and data frames."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from typing import IO, Any

from baton.model import CaseResult
from baton.model.score import agent_of
from baton.model.visible import visible
from baton.plugins import Entry
from baton.store import Reportable

from .text import place_of

COLUMNS = (
    "case", "repeat", "case_status", "case_error", "evaluator", "type", "version", "unit",
    "subject", "status", "value", "threshold", "reason", "agent", "file", "line", "tags",
    "judge_model", "judge_tokens", "judge_cost_usd",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_csv(evaluation: Reportable, out: IO[str]) -> None:
    """Write the rows of RFC 4180; a case without scores has one, with its status and error.

    Notices ("stated but not checked: ...") come last, in rows without a case.

    A text that a spreadsheet would read as a formula gets a ``'`` before it; Baton's own figures
    are not changed.
    """
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for result in evaluation:
        for cells in _rows(result):
            writer.writerow([safe(cells.get(name)) for name in COLUMNS])
    for notice in evaluation.header.notices:
        cells = {"status": "notice", "reason": notice}
        writer.writerow([safe(cells.get(name)) for name in COLUMNS])


def safe(value: str | float | None) -> str | float | None:
    """Return a cell that is not a formula and has no invisible characters."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    # Spreadsheets skip white space of any kind before a formula, such as a no-break space.
    starts = (value.lstrip(" "), value.lstrip())
    is_formula = any(start.startswith(_FORMULA) for start in starts)
    return f"'{text}" if is_formula else text


def _rows(result: CaseResult) -> Iterator[dict[str, Any]]:
    place = place_of(result)
    case = {
        "case": result.case_id,
        "repeat": result.repeat + 1,
        "case_status": result.status,
        "case_error": result.error,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "tags": ";".join(result.tags),
    }
    for score in result.scores:
        judge = score.judge
        yield {
            **case,
            "evaluator": score.evaluator,
            "type": score.type,
            "version": score.version,
            "unit": score.unit,
            "status": score.status,
            "value": score.value,
            "threshold": score.threshold,
            "reason": score.reason,
            "subject": ";".join(score.subject),
            "agent": _agent(score.details),
            "judge_model": judge.model if judge else None,
            "judge_tokens": judge.tokens if judge else None,
            "judge_cost_usd": judge.cost_usd if judge else None,
        }
    if not result.scores:
        yield case


def _agent(details: Mapping[str, Any]) -> str | None:
    """Return the agent that the work was for, else the one that a score is about.

    They differ if work went to the wrong agent, or to none. Billing was expected, and shipping got
    the refund: who looks for the failures of billing finds this row. Figures by agent are about
    what an agent did with its work, so there the score counts for shipping.
    """
    expected = details.get("expected_agent")
    return expected if isinstance(expected, str) else agent_of(details)


REPORT = Entry("csv", write_csv, "a row for each score, for spreadsheets")
