"""Agents: their dispatches, and each agent with its versions, scores and worst dispatches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from difflib import SequenceMatcher
from shlex import quote as shell_word
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from starlette.responses import Response
from starlette.routing import BaseRoute

from baton.model import AgentCard, InputError
from baton.model.visible import visible_line
from baton.reports.html.page import in_element
from baton.server import agents, sums
from baton.server.access import Denied
from baton.server.store import DEFAULT
from baton.session.server_rows import AgentRow, AgentVersion, Edge

from .frame import NavItem, View, Visit, Web
from .rendering import hue_of

NAV = NavItem("Agents", "/agents", "a")
_PERIODS = {"1": "day", "7": "week", "30": "30 days", "90": "90 days", "all": "all time"}
_PERIOD = "30"
_DRAWN = 60
"""Maximum agents in the graph: a layout of 100 takes 120 ms, of 300 almost a second."""
_MATRIX = 24
"""Agents on each side of the matrix."""
_DAY = 86400.0


def routes(web: Web) -> list[BaseRoute]:
    """Return the routes of these pages."""
    return [
        web.page(NAV.path, _list),
        web.data("/data/agents/axes", _axes),
        web.page(f"{NAV.path}/{{name:path}}", _one),
    ]


class _Link(NamedTuple):
    """An edge for the graph and the matrix; rates are those of the chosen evaluators."""

    sender: str | None
    to: str
    dispatches: int
    failed_dispatches: int
    passed: int
    failed: int
    cost_usd: float | None
    seconds: float | None


class _Period(NamedTuple):
    """The time that is examined; ``since`` is in seconds since the epoch, ``None`` for all."""

    key: str
    since: float | None

    @property
    def choices(self) -> list[tuple[str, str, bool]]:
        """The choices: value, name, and whether it is selected."""
        return [(key, name, key == self.key) for key, name in _PERIODS.items()]


def _period(visit: Visit) -> _Period:
    """Read the period.

    Raises:
        InputError: it is not one of those that can be chosen.
    """
    key = visit.query("days") or _PERIOD
    if key not in _PERIODS:
        raise InputError(f"`days` is one of {', '.join(_PERIODS)}, not `{key[:50]}`")
    return _Period(key, None if key == "all" else time.time() - float(key) * _DAY)


def _list(visit: Visit) -> View:
    store, project, period = visit.state.store, visit.caller.project, _period(visit)
    edges = sums.edges(store, project, since=period.since)
    rows = agents.agents(store, project, since=period.since, between=edges)
    evaluators = sorted({each.evaluator for edge in edges for each in edge.evaluators})
    chosen = visit.query("evaluator")
    # Scores of whole runs are sums as well, without a dispatch.
    links = [_link_of(edge, chosen) for edge in edges if edge.dispatches]
    context = {
        "rows": rows,
        "period": period,
        "evaluators": evaluators,
        "evaluator": chosen,
        "matrix": _matrix(links),
        "graph": _graph(visit, rows, links),
        "drawn": min(len(rows), _DRAWN),
        "agent_link": lambda other: _agent_link(visit, other),
        "conversations": lambda link: _conversations(visit, link),
    }
    return View("agents.html", context, "Agents")


def _link_of(edge: Edge, evaluator: str | None) -> _Link:
    counts = [each for each in edge.evaluators if evaluator in (None, each.evaluator)]
    return _Link(
        edge.from_agent,
        edge.to_agent,
        edge.dispatches,
        edge.failed,
        sum(each.passed for each in counts),
        sum(each.failed for each in counts),
        edge.cost_usd,
        edge.seconds,
    )


def _graph(visit: Visit, rows: Sequence[AgentRow], links: Sequence[_Link]) -> str:
    """Return the data that the script draws, as JSON; with many agents, only the busiest."""
    drawn = {row.name for row in rows[:_DRAWN]}
    shown = [link for link in links if link.to in drawn and link.sender in {None, *drawn}]
    graph = {
        "agents": [
            {
                "name": row.name,
                "hue": hue_of(row.name),
                "runs": row.runs,
                "href": _agent_link(visit, row.name),
            }
            for row in rows[:_DRAWN]
        ],
        "edges": [
            {
                "from": link.sender,
                "to": link.to,
                "count": link.dispatches,
                "passed": link.passed,
                "failed": link.failed,
                "cost": link.cost_usd,
                "href": _conversations(visit, link),
            }
            for link in shown
        ],
    }
    return in_element(msgspec.json.encode(graph).decode())


def _agent_link(visit: Visit, name: str) -> str:
    """Return the page of an agent, for the time that is examined."""
    return visit.link(f"{NAV.path}/{quote(name, safe='')}", days=visit.query("days"))


def _conversations(visit: Visit, link: _Link) -> str:
    """Return the address of the conversations with such a dispatch in this time."""
    words = [f"to:{_word(link.to)}"]
    if link.sender is not None:
        words.insert(0, f"from:{_word(link.sender)}")
    period = _period(visit)
    since = None if period.key == "all" else f"{period.key}d"
    return visit.link("/conversations", filter=" ".join(words), since=since)


def _word(text: str) -> str:
    """Write a name as a filter takes it."""
    plain = text.replace('"', "?")
    return f'"{plain}"' if any(mark in plain for mark in " ,!:") else plain


class _Cell(NamedTuple):
    """A cell of the matrix; ``heat`` from 0 to 9 is its share of the busiest."""

    link: _Link | None
    heat: int


class _Row(NamedTuple):
    sender: str | None
    cells: list[_Cell]


class _Matrix(NamedTuple):
    """The matrix of hand-offs, with receivers in columns; ``left`` agents are not shown."""

    columns: list[str]
    rows: list[_Row]
    left: int


def _matrix(links: Sequence[_Link]) -> _Matrix:
    received: dict[str, int] = {}
    sent: dict[str | None, int] = {}
    for link in links:
        received[link.to] = received.get(link.to, 0) + link.dispatches
        sent[link.sender] = sent.get(link.sender, 0) + link.dispatches
    columns = sorted(received, key=lambda name: (-received[name], name))
    senders = sorted(sent, key=lambda name: (-sent[name], name or ""))
    by_ends = {(link.sender, link.to): link for link in links}
    most = max((link.dispatches for link in links), default=1)

    def cell(sender: str | None, to: str) -> _Cell:
        link = by_ends.get((sender, to))
        heat = 0 if link is None else round(9 * (link.dispatches / most) ** 0.5)
        return _Cell(link, heat)

    rows = [
        _Row(sender, [cell(sender, to) for to in columns[:_MATRIX]]) for sender in senders[:_MATRIX]
    ]
    left = max(0, len(columns) - _MATRIX) + max(0, len(senders) - _MATRIX)
    return _Matrix(columns[:_MATRIX], rows, left)


def _one(visit: Visit) -> View:
    store, project = visit.state.store, visit.caller.project
    name, period = visit.path["name"], _period(visit)
    edges = sums.edges(store, project, since=period.since, agent=name)
    rows = agents.agents(store, project, since=period.since, name=name, between=edges)
    row = rows[0] if rows else None
    made = agents.versions(store, project, name)
    if row is None and not made:
        advice = "the list of agents has all of them; choose a longer time there"
        raise Denied(404, f"no agent is called `{visible_line(name)[:200]}` here", advice)
    context = {
        "name": name,
        "row": row,
        "period": period,
        "receives": [
            _link_of(edge, None) for edge in edges if edge.to_agent == name and edge.dispatches
        ],
        "sends": [_link_of(edge, None) for edge in edges if edge.from_agent == name],
        "evaluators": [
            {
                "name": evaluator,
                "passed": sum(c.passed for c in counts),
                "failed": sum(c.failed for c in counts),
                "errors": sum(c.errors for c in counts),
            }
            for evaluator, counts in sorted(_by_evaluator(edges, name).items())
        ],
        "worst": agents.worst_dispatches(store, project, name),
        "versions": _with_changes(made),
        "filter": f"agent:{_word(name)}",
        "source": _source(visit, name),
        "conversations": lambda link: _conversations(visit, link),
        "agent_link": lambda other: _agent_link(visit, other),
    }
    return View("agent.html", context, visible_line(name))


def _by_evaluator(edges: Sequence[Edge], name: str) -> dict[str, list[Any]]:
    counts: dict[str, list[Any]] = {}
    for edge in edges:
        for each in edge.evaluators if edge.to_agent == name else ():
            counts.setdefault(each.evaluator, []).append(each)
    return counts


def _source(visit: Visit, name: str) -> str:
    """Return the command that shows the conversations with an agent."""
    project = "" if visit.project == DEFAULT else f"/{visit.project}"
    host = visit.request.url.netloc
    asked = urlencode({"agent": name})
    return f"baton show {shell_word(f'server://{host}{project}?{asked}')}"


class Change(NamedTuple):
    """A line of instructions: in both versions, or in one of them."""

    kind: Literal["same", "lost", "added", "gap"]
    text: str


class _Version(NamedTuple):
    """A version, and its differences from the previous one; empty for the oldest."""

    made: AgentVersion
    lines: list[Change]
    tools_added: list[str]
    tools_lost: list[str]
    changed: list[str]


def _with_changes(made: Sequence[AgentVersion]) -> list[_Version]:
    """Add the changes to each version; versions come the newest first."""
    listed = []
    for place, version in enumerate(made):
        before = made[place + 1] if place + 1 < len(made) else None
        new, old = version.card, before.card if before is not None else None
        if before is None or new is None or old is None:
            listed.append(_Version(version, [], [], [], []))
            continue
        lines = line_changes(old.instructions or "", new.instructions or "")
        added, lost = _tools(new) - _tools(old), _tools(old) - _tools(new)
        changed = [
            word
            for word, differs in (
                ("model", version.model != before.model),
                ("instructions", bool(lines)),
                ("tools", bool(added or lost)),
                ("description", new.description != old.description),
                ("stated version", version.version != before.version),
            )
            if differs
        ]
        listed.append(_Version(version, lines, sorted(added), sorted(lost), changed))
    return listed


def _tools(card: AgentCard) -> set[str]:
    if card.tools is None:
        return set()
    return {"all tools"} if card.tools == "all" else set(card.tools)


_AROUND = 2
"""The number of lines to show before and after a change."""
_MOST_LINES = 2000
"""Maximum lines to compare; longer instructions are shown as completely removed and added."""


def line_changes(before: str, after: str) -> list[Change]:
    """Return the lines that changed with some around them; nothing if none did."""
    if before == after:
        return []
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > _MOST_LINES:
        return [*(Change("lost", line) for line in old), *(Change("added", line) for line in new)]
    changes: list[Change] = []
    for group in SequenceMatcher(a=old, b=new, autojunk=False).get_grouped_opcodes(_AROUND):
        if changes:
            changes.append(Change("gap", ""))
        for kind, a1, a2, b1, b2 in group:
            if kind == "equal":
                changes += [Change("same", line) for line in old[a1:a2]]
            else:
                changes += [Change("lost", line) for line in old[a1:a2]]
                changes += [Change("added", line) for line in new[b1:b2]]
    return changes


def _axes(visit: Visit) -> Response:
    period = _period(visit)
    made = agents.axes(
        visit.state.store,
        visit.caller.project,
        visit.query("agent") or "",
        since=0.0 if period.since is None else period.since,
        interval="hour" if period.key == "1" else "week" if period.key == "all" else "day",
    )
    return visit.json(made)
