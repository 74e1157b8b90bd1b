"""Rows of a store without what makes them, for tests of what reads them."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import insert

from baton.model import Trace
from baton.server.bodies import day_of
from baton.server.schema import conversation, dispatch, rollup, run, score
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
        "seconds": 20.0,
        **values,
    }
    with store.write() as connection:
        connection.execute(insert(rollup).values(row))
