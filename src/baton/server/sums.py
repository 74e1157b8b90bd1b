"""Edges and trends, from the sums by hour and by day."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    RowMapping,
    Select,
    Subquery,
    Table,
    func,
    select,
    union_all,
)
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from baton.model import InputError
from baton.session.server_rows import Counts, Edge, Interval, Point
from baton.stats.intervals import Estimate, share

from .paging import at_of
from .rows import FIGURES
from .schema import rollup, rollup_day
from .store import Store

_HOUR = 3600


def edges(
    store: Store,
    project: int,
    *,
    since: float | None = None,
    until: float | None = None,
    agent: str | None = None,
) -> list[Edge]:
    """Return who dispatched to whom, the most frequent first, with scores by evaluator.

    If an ``agent`` is named, only its own edges are returned. The figures come from the hourly
    sums, so the first and the last hour count in full. Scores of runs are listed under the agent
    that ran, without a sender; without dispatches, if no agent dispatched to it.
    """

    def chosen(table: Table) -> list[ColumnElement[bool]]:
        # Scores about a conversation or a turn are sums without a receiver: they belong to no edge.
        conditions = [table.c.to_agent != ""]
        if agent is not None:
            conditions.append((table.c.from_agent == agent) | (table.c.to_agent == agent))
        return conditions

    of = _hours(project, since, until, chosen).c
    query = (
        select(of.from_agent, of.to_agent, of.evaluator, *_sums(of))
        .group_by(of.from_agent, of.to_agent, of.evaluator)
        .order_by(of.evaluator)
    )
    made: dict[tuple[str, str], Edge] = {}
    with store.read() as connection:
        for row in connection.execute(query).mappings():
            ends = row["from_agent"], row["to_agent"]
            edge = made.setdefault(
                ends,
                Edge(
                    from_agent=ends[0] or None,
                    to_agent=ends[1],
                    dispatches=0,
                    completed=0,
                    failed=0,
                    input_tokens=0,
                    output_tokens=0,
                    cost_usd=None,
                    seconds=None,
                    evaluators=[],
                ),
            )
            if row["evaluator"]:
                edge.evaluators.append(
                    Counts(evaluator=row["evaluator"], **_statuses(row), pass_rate=_rate(row))
                )
                continue
            edge.dispatches, edge.completed = int(row["count"]), int(row["passed"])
            edge.failed = int(row["failed"])
            edge.input_tokens, edge.output_tokens = (
                int(row["input_tokens"]),
                int(row["output_tokens"]),
            )
            edge.cost_usd, edge.seconds = _cost(row), _mean(row["seconds"], row["count"])
    return sorted(made.values(), key=lambda edge: -edge.dispatches)


HOURS: dict[Interval, int] = {"hour": 1, "day": 24, "week": 168}
_MOST_STEPS = 10_000
"""Maximum steps of an answer: more than a year by hour. Beyond it the request is refused before the
store is read."""
_DEFAULT_POINTS = 100
_FIRST_MONDAY = 96
"""Hours from the epoch, a Thursday, to the first Monday: weeks begin on Mondays."""


def trends(
    store: Store,
    project: int,
    *,
    interval: Interval = "day",
    evaluator: str | None = None,
    from_agent: str | None = None,
    to_agent: str | None = None,
    by_version: bool = False,
    since: float | None = None,
    until: float | None = None,
    now: float | None = None,
) -> list[Point]:
    """Return sums of each hour, day or week (UTC; weeks begin on Mondays), the oldest first.

    They are sums of dispatches, where ``passed`` counts the completed ones; or of an evaluator's
    scores, if one is named. Without ``since``, the last 100 steps are returned; steps in which
    nothing happened are left out.

    Raises:
        InputError: more than 10,000 steps.
    """
    step = HOURS[interval]
    current = time.time() if now is None else now
    end = current if until is None else until
    begin = end - _DEFAULT_POINTS * step * _HOUR if since is None else since
    if (end - begin) / _HOUR / step > _MOST_STEPS:
        raise InputError(
            f"that is over {_MOST_STEPS:,} steps: choose a longer `interval` or later `since`"
        )

    def chosen(table: Table) -> list[ColumnElement[bool]]:
        names = {"evaluator": evaluator or "", "from_agent": from_agent, "to_agent": to_agent}
        return [table.c[name] == value for name, value in names.items() if value is not None]

    of = _hours(project, begin, end, chosen, by_day=interval != "hour").c
    place = ((of.hour - _FIRST_MONDAY) // step).label("place")
    version = of.agent_version.label("version") if by_version else None
    groups = [place] if version is None else [place, version]
    query = select(*groups, *_sums(of))
    with store.read() as connection:
        rows = connection.execute(query.group_by(*groups).order_by(*groups)).mappings().all()
    return [
        Point(
            at=at_of((row["place"] * step + _FIRST_MONDAY) * _HOUR) or datetime.now(UTC),
            agent_version=(row["version"] or None) if by_version else None,
            count=int(row["count"]),
            **_statuses(row),
            pass_rate=_rate(row),
            input_tokens=int(row["input_tokens"]),
            output_tokens=int(row["output_tokens"]),
            cost_usd=_cost(row),
            seconds=_mean(row["seconds"], row["count"]),
        )
        for row in rows
    ]


def _sums(of: ReadOnlyColumnCollection[str, Any]) -> list[ColumnElement[Any]]:
    return [func.sum(of[name]).label(name) for name in FIGURES]


def _hours(
    project: int,
    since: float | None,
    until: float | None,
    chosen: Callable[[Table], list[ColumnElement[bool]]],
    *,
    by_day: bool = True,
) -> Subquery:
    """Return the sums of a time range, each with its first hour.

    Whole days are one row each, unless ``by_day`` says otherwise; hours are read for the parts of
    days at both ends. ``chosen`` gives further conditions about a table of sums.
    """
    first = None if since is None else int(since // _HOUR)
    end = None if until is None else int(until // _HOUR) + 1
    day, last = None if first is None else -(-first // 24), None if end is None else end // 24

    def part(
        table: Table, times: Column[int], step: int, low: int | None, high: int | None
    ) -> Select[Any]:
        hour = (times * step).label("hour")
        names = [table.c[name] for name in (*_NAMES, *FIGURES)]
        bounds = [] if low is None else [times >= low]
        bounds += [] if high is None else [times < high]
        return select(hour, *names).where(table.c.project == project, *bounds, *chosen(table))

    hours, days = rollup.c.hour, rollup_day.c.day
    if not by_day or (day is not None and last is not None and day >= last):
        return part(rollup, hours, 1, first, end).subquery()
    parts = [part(rollup_day, days, 24, day, last)]
    if day is not None and first != day * 24:
        parts.append(part(rollup, hours, 1, first, day * 24))
    if last is not None and end != last * 24:
        parts.append(part(rollup, hours, 1, last * 24, end))
    return (parts[0] if len(parts) == 1 else union_all(*parts)).subquery()


_NAMES = ("from_agent", "to_agent", "agent_version", "evaluator")


def _statuses(row: RowMapping) -> dict[str, Any]:
    counts = {name: int(row[name]) for name in ("passed", "failed", "errors", "skipped")}
    return {**counts, "mean": _mean(row["value_sum"], row["value_count"])}


def _rate(row: RowMapping) -> Estimate | None:
    return share(int(row["passed"]), int(row["passed"]) + int(row["failed"]))


def _cost(row: RowMapping) -> float | None:
    """Return the sum of the known costs; ``None`` if none is known, which is not a cost of 0."""
    return float(row["cost_usd"]) if row["cost_known"] > 0 else None


def _mean(total: float, count: int) -> float | None:
    return float(total) / int(count) if count else None
