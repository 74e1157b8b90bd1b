"""The page: a frame, cases in packed blocks, the list as JSON, and the script that shows them."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterator, Mapping
from html import escape
from typing import IO, Any

import msgspec

from baton.model import (
    STATUSES,
    AgentRun,
    CaseResult,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Score,
    Status,
    Step,
    ToolCall,
    Trace,
    Turn,
    chain_turns,
    known,
)
from baton.model.views import TreeNode, dispatch_costs, turn_tree
from baton.model.visible import visible, visible_line
from baton.reports.figures import gate_lines
from baton.reports.terminal import align, case_line, counter_texts
from baton.reports.text import one_line
from baton.reports.trace import dollars, gaps, tokens_line
from baton.runner.prices import fill_costs
from baton.stats.routing import plain_matrix
from baton.store import FoundTrace, Reportable

from .scripts import asset, one_script, one_style

_BLOCK = 256 * 1024
_ENCODER = msgspec.json.Encoder()
Plain = dict[str, Any]
MOST = 20_000
"""Characters of one text that the page holds."""


def write_html(evaluation: Reportable, out: IO[str]) -> None:
    """Write one file that needs no other and no network.

    What traces and scores hold is data: cases lie packed (gzip, base64) in blocks of
    256 kB that the page unpacks when one is opened, the list as JSON in which ``<`` is escaped,
    and the script makes text nodes of them and nothing else. The policy of the page lets no
    other script run and nothing be fetched.
    """
    script = one_script("main.js")
    out.write(_head(evaluation.header.name, one_style(), script))
    tables = Tables([counts.evaluator for counts in evaluation.header.evaluators])
    rows: list[dict[str, Any]] = []
    for number, block in enumerate(_blocks(evaluation, tables, rows)):
        out.write(f'<script type="application/octet-stream" id="block{number}">{block}</script>\n')
    data = {"summary": summary(evaluation), "names": tables.plain(), "rows": rows}
    out.write(f'<script type="application/json" id="data">{_json_in_page(data)}</script>\n')
    out.write(f"<script>{script}</script>\n</body>\n</html>\n")


def _blocks(evaluation: Reportable, tables: Tables, rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the packed views of all cases; fill ``rows``, which say where each view is."""
    rule = evaluation.header.pass_rule
    needed = rule.get("mean") if isinstance(rule, dict) else None
    number, size = 0, 0
    views: list[bytes] = []
    alike = _Alike()
    prices = evaluation.header.prices
    for result, trace_or_why in evaluation.with_traces():
        if trace_or_why.trace is not None and prices is not None:
            priced = fill_costs(trace_or_why.trace, prices)
            trace_or_why = FoundTrace(priced, trace_or_why.why)  # noqa: PLW2901 - it was read again
        place = {"block": number, "place": len(views)}
        rows.append(list_row(result, trace_or_why.trace, tables) | place | alike(result, len(rows)))
        views.append(_ENCODER.encode(case_view(result, trace_or_why, needed)))
        size += len(views[-1])
        if size >= _BLOCK:
            yield _packed(views)
            number, size, views = number + 1, 0, []
    if views:
        yield _packed(views)


class _Alike:
    """Finds the repeats of a case of which the list says the same: it shows them once."""

    def __init__(self) -> None:
        self._position = -1
        self._first: dict[tuple[object, ...], int] = {}

    def __call__(self, result: CaseResult, number: int) -> Plain:
        """Return the number of the first row that says the same, where it is another one."""
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


def _json_in_page(data: Any) -> str:
    """Write JSON that no text in it can end the element of."""
    text = visible(_ENCODER.encode(data).decode())
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


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


def trace_tree(trace: Trace) -> Plain:
    """Return turns with their runs nested, and what was not recorded; empty fields are left out."""
    dispatches = {d.id: d for turn in trace.turns for d in turn.dispatches}
    costs = dispatch_costs(trace)
    return _told(
        id=trace.id,
        turns=[_turn(trace, turn, dispatches, costs) for turn in trace.turns],
        gaps=list(gaps(trace)),
        state=_json(trace.state),
    )


def text_of(content: Content | None) -> str | None:
    """Return text, or data as JSON, and what is attached; cut to ``MOST`` characters."""
    if content is None:
        return None
    text = content.text if content.text is not None else _json(content.data)
    attached = ", ".join(f"[{part.mime or part.type}]" for part in content.parts or ())
    return cut("\n".join(part for part in (text, attached) if part))


def cut(text: str) -> str:
    """Cut a text that is too long for a page, and say so."""
    if len(text) <= MOST:
        return text
    return f"{text[:MOST]}\n… {len(text) - MOST:,} more characters"


def _json(value: Any) -> str | None:
    if value is None:
        return None
    return cut(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _told(**fields: Any) -> Plain:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _tree_seconds(started: float | None, ended: float | None) -> float | None:
    return None if started is None or ended is None else round(ended - started, 3)


def _turn(
    trace: Trace, turn: Turn, dispatches: dict[str, Dispatch], costs: Mapping[str, float]
) -> Plain:
    placed: set[str] = set()
    runs = [_run(node, dispatches, placed, costs) for node in turn_tree(trace, turn)]
    loose = [_dispatch(d, costs) for d in turn.dispatches if d.id not in placed]
    return _told(
        id=turn.id,
        input=text_of(turn.input),
        input_unknown=not known(trace, turn, "input") or None,
        output=text_of(turn.output),
        status=turn.status,
        error=turn.error,
        seconds=_tree_seconds(turn.started, turn.ended),
        runs=runs,
        loose=loose,
    )


def _run(
    node: TreeNode,
    dispatches: dict[str, Dispatch],
    placed: set[str],
    costs: Mapping[str, float],
) -> Plain:
    run = node.run
    children = {id_: child for child in node.children for id_ in child.run.started_by}
    shown: set[str] = set()
    steps = []
    for step in run.steps:
        if isinstance(step, ToolCall) and step.dispatch in dispatches:
            continue
        plain = _step(step, dispatches, costs)
        if isinstance(step, HandedOff):
            placed.add(step.dispatch)
            child = children.get(step.dispatch)
            if child is not None and child.run.id not in shown:
                shown.add(child.run.id)
                plain["run"] = _run(child, dispatches, placed, costs)
        steps.append(plain)
    rest = [_run(c, dispatches, placed, costs) for c in node.children if c.run.id not in shown]
    placed.update(d.id for d in node.started_by)
    return _told(
        **_of_run(run),
        arrivals=[_dispatch(d, costs) for d in node.started_by if d.kind in ("sequence", "return")],
        input=_given(run, node.started_by),
        steps=steps,
        runs=rest,
    )


def _of_run(run: AgentRun) -> Plain:
    return {
        "id": run.id,
        "agent": run.agent,
        "node": run.node if run.node != run.agent else None,
        "inside": " > ".join(run.inside),
        "model": run.model,
        "tokens": tokens_line(run.usage) if run.usage else None,
        "seconds": _tree_seconds(run.started, run.ended),
        "status": run.status,
        "error": run.error,
        "unknown": run.unknown,
    }


def _given(run: AgentRun, started_by: list[Dispatch]) -> str | None:
    """Return what a run was given where that is not what its sender said."""
    if run.input is None or run.input in [d.prompt for d in started_by]:
        return None
    return text_of(run.input) if started_by else None


def _step(step: Step, dispatches: dict[str, Dispatch], costs: Mapping[str, float]) -> Plain:
    if isinstance(step, Said):
        text = text_of(step.content) or "(nothing)"
        return _told(type="said", id=step.id, text=text, thought=step.thought or None)
    if isinstance(step, ToolCall):
        return _call(step)
    dispatch = dispatches.get(step.dispatch)
    if dispatch is None:
        return {"type": "lost", "id": step.id, "dispatch": step.dispatch}
    if isinstance(step, GotBack):
        return _told(
            type="back",
            id=step.id,
            dispatch=dispatch.id,
            agent=dispatch.to_agent,
            text=text_of(dispatch.result),
            status=dispatch.status,
            error=dispatch.error,
        )
    return {"type": "dispatch", "id": step.id, "dispatch": _dispatch(dispatch, costs)}


def _call(call: ToolCall) -> Plain:
    return _told(
        type="call",
        id=call.id,
        name=call.name,
        arguments=_json(call.arguments),
        result=text_of(call.result),
        status=call.status,
        refused_by=call.refused_by,
        error=call.error,
        seconds=_tree_seconds(call.at, call.ended),
        unknown=call.unknown,
    )


def _dispatch(dispatch: Dispatch, costs: Mapping[str, float]) -> Plain:
    tools = dispatch.tools_allowed
    return _told(
        id=dispatch.id,
        kind=dispatch.kind,
        mode=dispatch.mode if dispatch.mode != "foreground" else None,
        basis=dispatch.basis if dispatch.basis != "stated" else None,
        sender=dispatch.from_agent,
        to=dispatch.to_agent,
        to_kind=dispatch.to_kind if dispatch.to_kind != "agent" else None,
        call=dispatch.call,
        prompt=text_of(dispatch.prompt),
        description=dispatch.description,
        context=_json(dispatch.context) if dispatch.context else None,
        group=dispatch.group,
        tools=", ".join(tools) if isinstance(tools, list) else tools,
        cost=dollars(costs[dispatch.id]) if dispatch.id in costs else None,
        continues=dispatch.continues,
        status=dispatch.status,
        error=dispatch.error,
        seconds=_tree_seconds(dispatch.started, dispatch.ended),
        unknown=dispatch.unknown,
    )


_RANK = {"error": 0, "failed": 1, "skipped": 2, "passed": 3}
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
        if name not in worst or _RANK[status] < _RANK[worst[name]]:
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
        "input": _first_input(trace),
        "reason": _reason(result),
        "scores": [[tables.evaluators[n], STATUSES.index(s)] for n, s in worst.items()],
        "agents": [tables.agents[name] for name in dict.fromkeys(runs)],
        "tags": [tables.tags[tag] for tag in dict.fromkeys(result.tags)],
        "routing": [[_number(tables, one) for one in pair] for pair in result.routing],
        "seconds": None if seconds is None else round(seconds, 3),
        "tokens": spent.tokens if spent else None,
    }


def case_view(result: CaseResult, trace_or_why: FoundTrace, mean_needed: float | None) -> Plain:
    """Return all that the page shows of a case."""
    scores = [score_view(score) for score in result.scores]
    view: Plain = {
        "scores": sorted(scores, key=lambda score: _RANK[score["status"]]),
        "error": result.error,
        "where": None if result.where is None else str(result.where),
        "recorded": None if result.recorded is None else msgspec.structs.asdict(result.recorded),
        "spent": case_line(result.efficiency) if result.efficiency else "",
    }
    if mean_needed is not None and result.mean is not None:
        view["mean"] = [result.mean, mean_needed]
    if trace_or_why.trace is not None:
        view["trace"] = trace_tree(trace_or_why.trace)
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


def _first_input(trace: Trace | None) -> str:
    turn = trace.turns[0] if trace is not None and trace.turns else None
    return one_line(text_of(turn.input) or "", 160) if turn else ""


def _reason(result: CaseResult) -> str:
    if result.error:
        return one_line(result.error, 200)
    for score in result.scores:
        if score.status == result.status != "passed":
            return one_line(f"{score.evaluator}: {score.reason}", 200)
    return ""


def _number(tables: Tables, name: str | None) -> int | None:
    return None if name is None else tables.agents[name]
