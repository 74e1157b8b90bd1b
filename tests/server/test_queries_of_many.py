"""Lists take no longer where an agent is in most of very many conversations."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import insert
from tests.clock import cpu_limit

from baton.model.filter import filter_of
from baton.server.queries import CONVERSATION_FIELDS, conversations
from baton.server.schema import conversation, dispatch, run
from baton.server.store import Store

_COUNT, _RUNS = 2_000, 8


@pytest.fixture
def many(store: Store) -> Store:
    """Conversations in which a desk asks one agent again and again."""
    of_project = {"project": 1}
    rows: list[dict[str, Any]] = []
    for n in range(_COUNT):
        times = {"started": float(n), "ended": n + 1.0, "seen": n + 1.0, "read": n + 2.0}
        counts = {"turns": 1, "runs": _RUNS, "dispatches": _RUNS, "spans": 9}
        said = {"source": "otlp", "agents": "[]", "status": "completed", "state": "complete"}
        place = {"day": "2026-01-01", "place": n}
        rows.append({"id": n, "key": f"c{n}", "version": 1, **times, **counts, **said, **place})
    works = [
        {"conversation": n, "id": f"x{k}", "turn": 0, "status": "completed", "started": float(n)}
        for n in range(_COUNT)
        for k in range(_RUNS)
    ]
    edge = {"from_agent": "desk", "to_agent": "refunds", "kind": "delegate", "depth": 1}
    how = {"mode": "foreground", "basis": "stated"}
    with store.write() as connection:
        connection.execute(insert(conversation), [{**of_project, **row} for row in rows])
        ran = {"agent": "refunds", "tool_calls": 0}
        connection.execute(insert(run), [{**of_project, **row, **ran} for row in works])
        connection.execute(
            insert(dispatch), [{**of_project, **row, **edge, **how} for row in works]
        )
    return store


@pytest.mark.parametrize("words", ["agent:refunds", "to:refunds", "from:desk to:refunds"])
def test_an_agent_of_most_conversations_is_found_at_once(many: Store, words: str) -> None:
    chosen = filter_of(words, CONVERSATION_FIELDS)
    with cpu_limit(0.3):
        page = conversations(many, 1, chosen)
    assert [each.id for each in page.items] == list(range(_COUNT - 1, _COUNT - 51, -1))
