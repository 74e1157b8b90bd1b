"""A case as plain data for the page: a short row for the list, and all of it for its view."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.model import STATUSES, Status, Trace
from baton.reports.chains import align
from baton.reports.efficiency import case_line
from baton.reports.text import one_line
from baton.store import IndexRow

from .traces import Found
from .tree import Plain, cut, text_of, trace_tree

_RANK = {"error": 0, "failed": 1, "skipped": 2, "passed": 3}
_SHOWN_APART = {"findings", "invocation_results", "mend"}


class Names:
    """Names by number, so that rows are short."""

    def __init__(self, names: list[str] | None = None) -> None:
        self.names = list(names or [])
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]


class Tables:
    """The names that all rows share."""

    def __init__(self, evaluators: list[str]) -> None:
        self.evaluators = Names(evaluators)
        self.agents = Names()
        self.tags = Names()

    def plain(self) -> Plain:
        """Return the names in the order of their numbers."""
        return {
            "statuses": list(STATUSES),
            "evaluators": self.evaluators.names,
            "agents": self.agents.names,
            "tags": self.tags.names,
        }


def list_row(row: IndexRow, body: Plain, trace: Trace | None, tables: Tables) -> Plain:
    """Return what the list shows, filters, sorts and searches by; names are numbers."""
    worst: dict[str, Status] = {}
    for name, status, _ in row.scores:
        if name not in worst or _RANK[status] < _RANK[worst[name]]:
            worst[name] = status
    runs = [run.agent for turn in trace.turns for run in turn.runs] if trace else []
    spent = row.efficiency
    return {
        "id": row.case_id,
        "repeat": row.repeat,
        "status": STATUSES.index(row.status),
        "input": _first_input(trace),
        "reason": _reason(row, body),
        "scores": [[tables.evaluators[n], STATUSES.index(s)] for n, s in worst.items()],
        "agents": [tables.agents[name] for name in dict.fromkeys(runs)],
        "tags": [tables.tags[tag] for tag in dict.fromkeys(body.get("tags", []))],
        "routing": [[_number(tables, one) for one in pair] for pair in row.routing],
        "seconds": _seconds(row, body),
        "tokens": spent.tokens if spent else None,
    }


def case_view(row: IndexRow, body: Plain, found: Found, mean_needed: float | None) -> Plain:
    """Return all that the page shows of a case."""
    scores = [score_view(score) for score in body["scores"]]
    view: Plain = {
        "scores": sorted(scores, key=lambda score: _RANK[score["status"]]),
        "error": body.get("error"),
        "where": _place(body),
        "recorded": body.get("recorded"),
        "spent": case_line(row.efficiency) if row.efficiency else "",
    }
    if mean_needed is not None and body.get("mean") is not None:
        view["mean"] = [body["mean"], mean_needed]
    if found.trace is not None:
        view["trace"] = trace_tree(found.trace)
    view["untold"] = found.why
    return view


def score_view(score: Plain) -> Plain:
    """Return a score with chains side by side; the details that are left stand as JSON."""
    details: Plain = score["details"]
    left = {name: value for name, value in details.items() if name not in _SHOWN_APART}
    view = {
        name: score[name]
        for name in ("status", "type", "threshold", "reason", "subject", "evidence", "judge")
        if score.get(name) not in (None, [], "")
    }
    view |= {"evaluator": score["evaluator_type"], "value": score["score"]}
    chains = [_chain(turn) for turn in _dicts(details, "invocation_results")]
    view["chains"] = [chain for chain in chains if chain is not None]
    view["findings"] = [
        {"says": str(finding.get("says", "")), "warning": bool(finding.get("warning"))}
        for finding in _dicts(details, "findings")
    ]
    view["mend"] = details.get("mend")
    if left:
        view["details"] = cut(msgspec.json.format(msgspec.json.encode(left), indent=2).decode())
    return view


def _dicts(details: Plain, name: str) -> list[Plain]:
    """Return a list of details; those of a user's own evaluator may be anything."""
    value = details.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _chain(turn: Plain) -> Plain | None:
    expected, actual = turn.get("expected_agents"), turn.get("actual_agents")
    if not isinstance(expected, list) or not isinstance(actual, list):
        return None
    columns = [list(c) for c in align([str(n) for n in expected], [str(n) for n in actual])]
    return {"turn": turn.get("invocation"), "columns": columns, "trouble": turn.get("trouble")}


def _first_input(trace: Trace | None) -> str:
    turn = trace.turns[0] if trace is not None and trace.turns else None
    return one_line(text_of(turn.input) or "", 160) if turn else ""


def _reason(row: IndexRow, body: Plain) -> str:
    if body.get("error"):
        return one_line(body["error"], 200)
    for score in body["scores"]:
        if score["status"] == row.status != "passed":
            return one_line(f"{score['evaluator_type']}: {score['reason']}", 200)
    return ""


def _place(body: Plain) -> str | None:
    where = body.get("where")
    if where is None:
        return None
    line = where.get("line")
    return str(where["file"]) if line is None else f"{where['file']}:{line}"


def _seconds(row: IndexRow, body: Plain) -> float | None:
    seconds: Any = row.efficiency.timings.get("seconds") if row.efficiency else None
    if seconds is None:
        seconds = body.get("timings", {}).get("seconds")
    return None if seconds is None else round(seconds, 3)


def _number(tables: Tables, name: str | None) -> int | None:
    return None if name is None else tables.agents[name]
