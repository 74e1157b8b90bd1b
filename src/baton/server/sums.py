"""Edges and trends, from the hourly sums."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, func, select

from baton.model import InputError
from baton.session.server_rows import Counts, Edge, Interval, Point
from baton.stats.intervals import Estimate, share

from .paging import at_of
from .rows import FIGURES
from .schema import rollup
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
    """Return who dispatched to whom, the commonest first, with scores by evaluator.

    Only those from and to an ``agent``, if one is named.

    From the hourly sums, so that the hours of both ends count as a whole. Scores of runs are there
    under the agent that ran, without a sender; where nobody dispatched to it, with no dispatches.
    """
    query = (
        select(rollup.c.from_agent, rollup.c.to_agent, rollup.c.evaluator, *_SUMS)
        # Scores about a conversation or a turn are sums without a receiver: they are of no edge.
        .where(rollup.c.project == project, rollup.c.to_agent != "", *_hours(since, until))
        .group_by(rollup.c.from_agent, rollup.c.to_agent, rollup.c.evaluator)
        .order_by(rollup.c.evaluator)
    )
    if agent is not None:
        query = query.where((rollup.c.from_agent == agent) | (rollup.c.to_agent == agent))
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
                    cost_usd=0.0,
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
            edge.cost_usd, edge.seconds = row["cost_usd"], _mean(row["seconds"], row["count"])
    return sorted(made.values(), key=lambda edge: -edge.dispatches)


HOURS: dict[Interval, int] = {"hour": 1, "day": 24, "week": 168}
_POINTS = 10_000
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

    Of dispatches, where ``passed`` are those that completed; of an evaluator's scores, if one is
    named. Without ``since``, the last 100 steps; steps in which nothing happened are left out.

    Raises:
        InputError: more than 10,000 steps.
    """
    step = HOURS[interval]
    current = time.time() if now is None else now
    end = current if until is None else until
    begin = end - _DEFAULT_POINTS * step * _HOUR if since is None else since
    if (end - begin) / _HOUR / step > _POINTS:
        raise InputError(
            f"that is over {_POINTS:,} steps: choose a longer `interval` or later `since`"
        )
    place = ((rollup.c.hour - _FIRST_MONDAY) // step).label("place")
    version = rollup.c.agent_version.label("version") if by_version else None
    groups = [place] if version is None else [place, version]
    query = select(*groups, *_SUMS).where(
        rollup.c.project == project,
        rollup.c.evaluator == (evaluator or ""),
        *_hours(begin, until),
    )
    for column, name in ((rollup.c.from_agent, from_agent), (rollup.c.to_agent, to_agent)):
        if name is not None:
            query = query.where(column == name)
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
            cost_usd=row["cost_usd"],
            seconds=_mean(row["seconds"], row["count"]),
        )
        for row in rows
    ]


_SUMS = [func.sum(rollup.c[name]).label(name) for name in FIGURES]


def _hours(since: float | None, until: float | None) -> list[ColumnElement[bool]]:
    conditions = []
    if since is not None:
        conditions.append(rollup.c.hour >= int(since // _HOUR))
    if until is not None:
        conditions.append(rollup.c.hour <= int(until // _HOUR))
    return conditions


def _statuses(row: RowMapping) -> dict[str, Any]:
    counts = {name: int(row[name]) for name in ("passed", "failed", "errors", "skipped")}
    return {**counts, "mean": _mean(row["value_sum"], row["value_count"])}


def _rate(row: RowMapping) -> Estimate | None:
    return share(int(row["passed"]), int(row["passed"]) + int(row["failed"]))


def _mean(total: float, count: int) -> float | None:
    return float(total) / int(count) if count else None
