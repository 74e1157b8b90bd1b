"""Rows of a store without what makes them, for tests of what reads them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from sqlalchemy import Table, func, insert, select

from baton.model import Trace
from baton.server.bodies import day_of
from baton.server.rows import FIGURES, Sums, add_up
from baton.server.schema import (
    conversation,
    conversation_sum,
    dispatch,
    rollup,
    rollup_day,
    run,
    score,
)
from baton.server.store import Store

START = 1_767_225_600.0
"""2026-01-01T00:00:00Z"""


def add_conversation(
    store: Store, trace: Trace, *, at: float = START, project: int = 1, **values: Any
) -> int:
    """Keep a trace with its rows, and return its number."""
    day = day_of(at)
    place = store.bodies.put(day, [msgspec.msgpack.encode(trace)])[0]
    runs = [(n, each) for n, turn in enumerate(trace.turns) for each in turn.runs]
    made = [(n, each) for n, turn in enumerate(trace.turns) for each in turn.dispatches]
    agents = list(dict.fromkeys(each.agent for _, each in runs))
    row = {
        "project": project,
        "key": trace.id,
        "version": 1,
        "state": "complete",
        "source": trace.source.format,
        "agents": msgspec.json.encode(agents).decode(),
        "started": at,
        "ended": at + 2,
        "seen": at + 3,
        "read": at + 4,
        "status": trace.turns[-1].status,
        "turns": len(trace.turns),
        "runs": len(runs),
        "dispatches": len(made),
        "spans": 7,
        "day": day,
        "place": place.number,
        **values,
    }
    with store.write() as connection:
        number = connection.execute(insert(conversation).values(row)).inserted_primary_key
        assert number is not None
        id_ = int(number[0])
        sums = Sums()
        sums.conversation({**dict.fromkeys(conversation.c.keys()), **row}, 1)
        sums.write(connection, project)
        common = {"project": project, "conversation": id_, "started": at, "ended": at + 1}
        for n, each in runs:
            said = {"id": each.id, "turn": n, "agent": each.agent, "status": each.status}
            connection.execute(insert(run).values({**common, **said, "tool_calls": 0}))
        for n, work in made:
            said = {
                "id": work.id,
                "turn": n,
                "from_agent": work.from_agent,
                "to_agent": work.to_agent,
                "kind": work.kind,
                "mode": work.mode,
                "basis": work.basis,
                "status": work.status,
                "depth": work.depth,
            }
            verdict = values.get("verdict")
            connection.execute(insert(dispatch).values({**common, **said, "verdict": verdict}))
    return id_


def add_score(store: Store, conversation_id: int, *, project: int = 1, **values: Any) -> None:
    row = {
        "project": project,
        "conversation": conversation_id,
        "version": 1,
        "rule": "all",
        "evaluator": "dispatch_scope",
        "type": "dispatch_scope",
        "evaluator_version": "1",
        "unit": "dispatch",
        "subject": '["d1"]',
        "dispatch": "d1",
        "status": "passed",
        "value": 1.0,
        "details": "{}",
        "evidence": "[]",
        "at": START,
        **values,
    }
    with store.write() as connection:
        connection.execute(insert(score).values(row))


def add_sum(store: Store, hour: int, to: str, evaluator: str = "", **values: Any) -> None:
    row = {
        "project": 1,
        "hour": hour,
        "from_agent": "desk",
        "to_agent": to,
        "agent_version": "",
        "evaluator": evaluator,
        "count": 10,
        "passed": 8,
        "failed": 2,
        "errors": 0,
        "skipped": 0,
        "value_sum": 8.0,
        "value_count": 10,
        "input_tokens": 100,
        "output_tokens": 10,
        "cost_usd": 0.5,
        "cost_known": 10,
        "seconds": 20.0,
        **values,
    }
    with store.write() as connection:
        connection.execute(insert(rollup).values(row))
        add_up(
            connection,
            rollup_day,
            ("project", "day", *EDGE),
            [{"day": hour // 24, **row_without(row, "hour")}],
        )


def row_without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def add_days(store: Store, project: int = 1) -> None:
    """Add up by day what was put into a store row by row."""
    sums = Sums()
    edge = [rollup.c[name] for name in EDGE]
    day = (rollup.c.hour // 24).label("day")
    figures = [func.sum(rollup.c[name]).label(name) for name in FIGURES]
    by_day = select(rollup.c.project, day, *edge, *figures).where(rollup.c.project == project)
    by_day = by_day.group_by(rollup.c.project, day, *edge)
    with store.write() as connection:
        query = select(conversation).where(conversation.c.project == project)
        for row in connection.execute(query).mappings():
            sums.conversation(row, 1)
        sums.write(connection, project)
        names = [column.name for column in by_day.selected_columns]
        connection.execute(insert(rollup_day).from_select(names, by_day))


def assert_days_follow(store: Store, project: int = 1) -> None:
    """Hold the sums of days and of conversations against the rows that they are of."""

    def rows(table: Table) -> list[dict[str, Any]]:
        query = select(table).where(table.c.project == project)
        with store.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    of_days: dict[Any, dict[str, float]] = {}
    for row in rows(rollup):
        key = row["hour"] // 24, *(row[name] for name in EDGE)
        into = of_days.setdefault(key, dict.fromkeys(FIGURES, 0))
        for name in FIGURES:
            into[name] += row[name]
    kept = {(row["day"], *(row[name] for name in EDGE)): row for row in rows(rollup_day)}
    assert set(kept) == set(of_days)
    for key, figures in of_days.items():
        assert {name: kept[key][name] for name in FIGURES} == pytest.approx(figures), key
    of: dict[int, list[dict[str, Any]]] = {}
    for row in rows(conversation):
        day = -1 if row["started"] is None else int(row["started"] // 86_400)
        of.setdefault(day, []).append(row)
    stored = {row["day"]: row for row in rows(conversation_sum)}
    assert set(stored) == set(of)
    for day, listed in of.items():
        statuses = Counter(row["verdict"] for row in listed)
        assert {name: stored[day][name] for name in ("count", "opened", "dispatches")} == {
            "count": len(listed),
            "opened": sum(row["state"] == "open" for row in listed),
            "dispatches": sum(row["dispatches"] for row in listed),
        }
        found = [stored[day][name] for name in ("passed", "failed", "errors")]
        assert found == [statuses[word] for word in ("passed", "failed", "error")]
        for name, known in (("input_tokens", "input_known"), ("cost_usd", "cost_known")):
            values = [row[name] for row in listed if row[name] is not None]
            assert stored[day][known] == len(values)
            assert stored[day][name] == pytest.approx(sum(values))


EDGE = ("from_agent", "to_agent", "agent_version", "evaluator")
