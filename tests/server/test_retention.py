"""Retention deletes whole days, by age and by bytes, and says so."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from baton.server.bodies import Place
from baton.server.retention import Deleted, Retention, retain
from baton.server.rows import Sums
from baton.server.schema import (
    chunk,
    conversation,
    conversation_trace,
    dispatch,
    label,
    score,
    tie,
    trace,
)
from baton.server.store import Store
from baton.session.server_client import connect

from .seeding import assert_days_follow
from .serving import api

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
DAY = 86_400


def arrive(store: Store, name: str, place: Place, first: Place | None = None) -> None:
    """Put a conversation into the store: its record at ``place``, its spans there or at ``first``."""
    at = datetime.strptime(place.day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    nothing: dict[Any, dict[str, Any]] = {
        conversation: {
            "key": name, "version": 1, "state": "complete", "source": "otlp", "agents": "[]",
            "seen": at, "read": at, "status": "completed", "turns": 1, "runs": 1, "dispatches": 1,
            "spans": 1, "day": place.day, "place": place.number, "failed": 0, "gone": False,
        },
        trace: {
            "trace_id": name, "first_seen": at, "last_seen": at, "spans": 1, "logs": 0,
            "root": True, "changed": False, "due": at,
        },
        tie: {"trace_id": name, "other": f"label:{name}"},
    }  # fmt: skip
    with store.write() as connection:
        for table, row in nothing.items():
            connection.execute(insert(table).values(project=1, **row))
        sums = Sums()
        sums.conversation({**dict.fromkeys(conversation.c.keys()), **nothing[conversation]}, 1)
        sums.write(connection, 1)
        id_ = connection.scalar(
            select(conversation.c.id).where(conversation.c.project == 1, conversation.c.key == name)
        )
        for each in {place, first or place}:
            row = {"day": each.day, "place": each.number, "spans": 1, "bytes": 1}
            connection.execute(insert(chunk).values(project=1, trace_id=name, **row))
        of = {"project": 1, "conversation": id_}
        connection.execute(insert(conversation_trace).values(trace_id=name, **of))
        made = {
            "id": "d1", "turn": 0, "to_agent": "refunds", "kind": "delegate", "mode": "foreground",
            "basis": "stated", "status": "completed", "depth": 1,
        }  # fmt: skip
        connection.execute(insert(dispatch).values(**of, **made))
        verdict = {
            "version": 1, "rule": "r", "evaluator": "e", "type": "e", "evaluator_version": "1",
            "unit": "dispatch", "subject": "[]", "status": "failed", "details": "{}",
            "evidence": "[]", "at": at,
        }  # fmt: skip
        connection.execute(insert(score).values(**of, **verdict))
        said = {"subject": "d1", "rubric": "r", "value": "1", "by": "ann", "origin": "api"}
        connection.execute(insert(label).values(at=at, **of, **said))


def keys(store: Store) -> dict[str, bool]:
    """Return the conversations, each with whether some of it is gone."""
    query = select(conversation.c.key, conversation.c.gone).where(conversation.c.project == 1)
    with store.read() as connection:
        return {row.key: row.gone for row in connection.execute(query)}


def three_days(store: Store) -> None:
    """Put a conversation into each of three days."""
    for day in ("2026-11-01", "2026-11-20", "2026-11-22"):
        arrive(store, day, store.bodies.put(day, [os.urandom(100_000)])[0])


def test_days_beyond_the_age_are_deleted(store: Store) -> None:
    three_days(store)
    (deleted,) = retain(store, Retention(days=14), NOW)
    assert deleted._replace(bytes=0) == Deleted("2026-11-01", "age", 1, 0)
    assert deleted.bytes > 100_000
    assert keys(store) == {"2026-11-20": False, "2026-11-22": False}
    assert [segment.day for segment in store.bodies.segments()] == ["2026-11-20", "2026-11-22"]
    with store.read() as connection:
        for table in (dispatch, score, trace, tie, chunk):
            query = select(func.count()).select_from(table).where(table.c.project == 1)
            assert connection.scalar(query) == 2, table.name
        query = select(func.count()).select_from(label).where(label.c.project == 1)
        assert connection.scalar(query) == 3  # people's work stays
    assert_days_follow(store)


def test_the_oldest_days_are_deleted_until_the_bytes_fit(store: Store) -> None:
    three_days(store)
    days = [each.day for each in retain(store, Retention(days=None, bytes=150_000), NOW)]
    assert days == ["2026-11-01", "2026-11-20"]
    assert keys(store) == {"2026-11-22": False}


def test_the_day_that_is_under_way_stays(store: Store) -> None:
    three_days(store)
    retain(store, Retention(days=1, bytes=1), NOW)
    assert keys(store) == {"2026-11-22": False}


def test_nothing_is_deleted_without_a_limit(store: Store) -> None:
    three_days(store)
    assert retain(store, Retention(days=None), NOW + 1000 * DAY) == []
    assert len(keys(store)) == 3


def test_a_conversation_of_several_days_stays_and_says_that_some_is_gone(store: Store) -> None:
    first = store.bodies.put("2026-11-01", [b"first"])[0]
    arrive(store, "long", store.bodies.put("2026-11-20", [b"last"])[0], first)
    retain(store, Retention(days=14), NOW)
    assert keys(store) == {"long": True}


def test_the_disk_shrinks(store: Store, tmp_path: Path) -> None:
    place = store.bodies.put("2026-11-01", [os.urandom(3_000_000)])[0]
    for number in range(100):
        arrive(store, f"{number:05}" * 500, place)
    store.shrink()

    def size() -> int:
        return sum(file.stat().st_size for file in tmp_path.rglob("*.db*"))

    before = size()
    retain(store, Retention(days=14), NOW)
    assert size() < before - 3_000_000
    index = tmp_path / "server" / "index.db"
    assert index.stat().st_size < 500_000  # labels stay


@pytest.mark.heavy
def test_postgresql_does_the_same(postgres_store: Store) -> None:
    three_days(postgres_store)
    assert [each.day for each in retain(postgres_store, Retention(days=14), NOW)] == ["2026-11-01"]
    assert keys(postgres_store) == {"2026-11-20": False, "2026-11-22": False}


def test_the_api_tells_what_was_deleted(store: Store) -> None:
    three_days(store)
    retain(store, Retention(days=14), NOW)
    with api(store) as url:
        (told,) = connect(url).deletions()
    assert (told.day, told.why, told.conversations) == ("2026-11-01", "age", 1)
