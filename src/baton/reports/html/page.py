"""The page: a frame, cases in packed blocks, the list as JSON, and the script that shows them."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections import Counter
from collections.abc import Iterator
from html import escape
from typing import IO, Any

import msgspec

from baton.model import (
    STATUSES,
    CaseResult,
    Score,
    Status,
    Trace,
    chain_turns,
)
from baton.model.score import WORST_FIRST
from baton.model.visible import visible, visible_line
from baton.reports.figures import gate_lines
from baton.reports.terminal import align, case_line, counter_texts
from baton.reports.text import new_advice, one_line
from baton.runner.costs import fill_costs
from baton.stats.routing import plain_matrix
from baton.store import FoundTrace, Reportable

from .scripts import asset, one_script, one_style
from .trace_view import Cards, Plain, cut, trace_view

_BLOCK = 256 * 1024
"""Bytes of views in one block. A page unpacks a whole block to show one case, so larger ones open
slower; but cases repeat texts, and the smaller a block, the less of that is compressed."""
_WITH_FACTS = {"passed": 50, "skipped": 50, "failed": 200, "error": 200}
"""Cases of a status whose cards show where facts of a result were used again. That takes 5 ms per
dispatch: without a limit, a report of 5,000 cases would take as long as scoring them."""
_ENCODER = msgspec.json.Encoder()


def write_html(evaluation: Reportable, out: IO[str]) -> None:
    """Write one file that needs no other file and no network.

    Contents of traces and scores are data: cases are compressed (gzip, base64) in blocks of 256 kB
    that the page unpacks when a case is opened, the list is JSON in which ``<`` is escaped, and the
    script only makes text nodes of them. The policy of the page allows no other script and no
    requests.
    """
    script = one_script("main.js")
    out.write(_head(evaluation.header.name, one_style(), script))
    tables = Tables([counts.evaluator for counts in evaluation.header.evaluators])
    rows: list[dict[str, Any]] = []
    for number, block in enumerate(_blocks(evaluation, tables, rows)):
        out.write(f'<script type="application/octet-stream" id="block{number}">{block}</script>\n')
    data = {"summary": summary(evaluation), "names": tables.plain(), "rows": rows}
    out.write(f'<script type="application/json" id="data">{json_in_page(data)}</script>\n')
    out.write(f"<script>{script}</script>\n</body>\n</html>\n")


def _blocks(evaluation: Reportable, tables: Tables, rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the packed views of all cases; fill ``rows``, which have the place of each view."""
    rule = evaluation.header.pass_rule
    needed = rule.get("mean") if isinstance(rule, dict) else None
    number, size = 0, 0
    views: list[bytes] = []
    alike, counted = _Alike(), Counter[str]()
    prices = evaluation.header.prices
    for result, trace_or_why in evaluation.with_traces():
        if trace_or_why.trace is not None and prices is not None:
            priced = fill_costs(trace_or_why.trace, prices)
            trace_or_why = FoundTrace(priced, trace_or_why.why)  # noqa: PLW2901 - it was read again
        place = {"block": number, "place": len(views)}
        rows.append(list_row(result, trace_or_why.trace, tables) | place | alike(result, len(rows)))
        counted[result.status] += 1
        few = counted[result.status] <= _WITH_FACTS[result.status]
        cards: Cards = "whole" if few else "no facts"
        views.append(_ENCODER.encode(case_view(result, trace_or_why, needed, cards)))
        size += len(views[-1])
        if size >= _BLOCK:
            yield _packed(views)
            number, size, views = number + 1, 0, []
    if views:
        yield _packed(views)


class _Alike:
    """Finds the repeats of a case with equal rows in the list, which are shown once."""

    def __init__(self) -> None:
        self._position = -1
        self._first: dict[tuple[object, ...], int] = {}

    def __call__(self, result: CaseResult, number: int) -> Plain:
        """Return the number of the first row with the same content, if it is another one."""
        if result.position != self._position:  # repeats of a case come together
            self._position, self._first = result.position, {}
        verdicts = [(s.evaluator, s.status, s.value, s.reason) for s in result.scores]
        first = self._first.setdefault((result.status, result.error, *verdicts), number)
        return {} if first == number else {"same": first}


def _packed(views: list[bytes]) -> str:
    text = b"[" + b",".join(views) + b"]"
    return base64.b64encode(gzip.compress(text, 6, mtime=0)).decode()


def _head(name: str, style: str, script: str) -> str:
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return asset("page.html").format(title=escape(visible_line(name)), policy=policy, style=style)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def json_in_page(data: Any) -> str:
    """Write JSON that cannot end its HTML element."""
    return in_element(visible(_ENCODER.encode(data).decode()))


def in_element(json: str) -> str:
    """Escape written JSON so that no text in it can end its HTML element."""
    return json.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def summary(evaluation: Reportable) -> dict[str, Any]:
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


_SHOWN_APART = {"findings", "invocation_results", "fix"}


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


def list_row(result: CaseResult, trace: Trace | None, tables: Tables) -> Plain:
    """Return what the list shows, filters, sorts and searches by; names are numbers."""
    worst: dict[str, Status] = {}
    for score in result.scores:
        name, status = score.evaluator, score.status
        if name not in worst or WORST_FIRST[status] < WORST_FIRST[worst[name]]:
            worst[name] = status
    runs = [run.agent for turn in trace.turns for run in turn.runs] if trace else []
    spent = result.efficiency
    seconds = spent.timings.get("seconds") if spent else None
    if seconds is None:
        seconds = (result.timings or {}).get("seconds")
    return {
        "id": result.case_id,
        "repeat": result.repeat,
        "status": STATUSES.index(result.status),
        "input": first_input(trace),
        "reason": reason_of(result),
        "scores": [[tables.evaluators[n], STATUSES.index(s)] for n, s in worst.items()],
        "agents": [tables.agents[name] for name in dict.fromkeys(runs)],
        "tags": [tables.tags[tag] for tag in dict.fromkeys(result.tags)],
        "routing": [[_number(tables, one) for one in pair] for pair in result.routing],
        "seconds": None if seconds is None else round(seconds, 3),
        "tokens": spent.tokens if spent else None,
    }


def case_view(
    result: CaseResult, trace_or_why: FoundTrace, mean_needed: float | None, cards: Cards = "whole"
) -> Plain:
    """Return everything that the page shows of a case; ``cards`` as in :func:`trace_view`."""
    given: set[str] = set()
    scores = [{**score_view(each), "fix": new_advice(each, given)} for each in result.scores]
    view: Plain = {
        "scores": sorted(scores, key=lambda score: WORST_FIRST[score["status"]]),
        "error": result.error,
        "where": None if result.where is None else str(result.where),
        "recorded": None if result.recorded is None else msgspec.structs.asdict(result.recorded),
        "spent": case_line(result.efficiency) if result.efficiency else "",
    }
    if mean_needed is not None and result.mean is not None:
        view["mean"] = [result.mean, mean_needed]
    if trace_or_why.trace is not None:
        at_fault = {id_ for s in result.scores if s.status == "failed" for id_ in s.subject}
        view["trace"] = trace_view(trace_or_why.trace, failed=at_fault, cards=cards)
    view["untold"] = trace_or_why.why
    return view


def score_view(score: Score) -> Plain:
    """Return a score with chains side by side; all other details are shown as JSON."""
    details = score.details
    left = {name: value for name, value in details.items() if name not in _SHOWN_APART}
    fields = {
        "status": score.status,
        "type": score.type,
        "threshold": score.threshold,
        "reason": score.reason,
        "subject": score.subject,
        "evidence": score.evidence,
        "judge": score.judge,
    }
    view: Plain = {name: value for name, value in fields.items() if value not in (None, [], "")}
    view |= {"evaluator": score.evaluator, "value": score.value}
    view["chains"] = [
        {
            "turn": turn.invocation,
            "columns": [list(column) for column in align(turn.expected_agents, turn.actual_agents)],
            "trouble": turn.trouble,
        }
        for turn in chain_turns(score)
    ]
    view["findings"] = [
        {"says": str(finding.get("says", "")), "warning": bool(finding.get("warning"))}
        for finding in _dicts(details, "findings")
    ]
    view["fix"] = details.get("fix")
    if left:
        view["details"] = cut(msgspec.json.format(msgspec.json.encode(left), indent=2).decode())
    return view


def _dicts(details: Plain, name: str) -> list[Plain]:
    """Return a list of details; those of a user's own evaluator may be anything."""
    value = details.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def first_input(trace: Trace | None) -> str:
    """Return the first words of the user's question."""
    turn = trace.turns[0] if trace is not None and trace.turns else None
    return one_line(turn.input.plain(), 160) if turn and turn.input else ""


def reason_of(result: CaseResult) -> str:
    """Return why a result did not pass, in a line; empty for one that did."""
    if result.error:
        return one_line(result.error, 200)
    for score in result.scores:
        if score.status == result.status != "passed":
            return one_line(f"{score.evaluator}: {score.reason}", 200)
    return ""


def _number(tables: Tables, name: str | None) -> int | None:
    return None if name is None else tables.agents[name]
