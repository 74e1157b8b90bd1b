"""Workers on PostgreSQL: the same records, and several of them do nothing twice."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import select

from baton.server.inbox import Inbox
from baton.server.schema import conversation, conversation_trace, run, trace
from baton.server.store import Store, open_store
from baton.server.worker import Worker

from .conftest import Opening
from .otlp import recordings, send, work
from .postgres import Postgres
from .test_conversations import (
    AT,
    QUIET,
    body,
    rows,
    scored,
    span,
    stored_sums,
    sums,
)
from .test_worker import check_recordings
from .test_worker_kills import check_given_up, check_kills

pytestmark = pytest.mark.heavy


def test_recordings_give_the_records_of_their_files(postgres_store: Store) -> None:
    check_recordings(postgres_store, recordings()[::25])


def test_two_workers_do_nothing_twice(postgres: Postgres, opening: Opening) -> None:
    url = postgres.database()
    store = opening(url)
    bodies = []
    for number in range(300):
        session = f"s{number // 2}"  # two traces a session
        bodies.append(body(span(number + 1, 1, agent="desk", session__id=session)))
        bodies.append(body(span(number + 1, 2, 1, agent="billing")))
    send(store, 1, bodies, AT)
    problems: list[BaseException] = []

    def drain() -> None:
        own = open_store(url)
        try:
            for _ in range(3):
                work(Worker(own, QUIET, scored), AT + 100)
        except BaseException as error:
            problems.append(error)
            raise
        finally:
            own.close()

    threads = [threading.Thread(target=drain) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    work(Worker(store, QUIET, scored), AT + 200)
    assert Inbox(store).depth().waiting == 0
    found = rows(store, conversation)
    assert len(found) == 150
    assert {(row["spans"], row["runs"], row["dispatches"]) for row in found} == {(4, 4, 2)}
    assert len(rows(store, run)) == 600
    assert len(rows(store, conversation_trace)) == 300
    assert {row["spans"] for row in rows(store, trace)} == {2}
    assert stored_sums(store) == sums(store)


def test_a_trace_that_another_worker_has_is_passed_over(postgres_store: Store) -> None:
    store = postgres_store
    worker = Worker(store, QUIET)
    send(store, 1, [body(span(n, 1, agent="desk", session__id=f"s{n % 2}")) for n in (1, 2, 3)], AT)
    while worker.take_in(AT):
        pass
    locked = select(trace).where(trace.c.project == 1, trace.c.trace_id == f"{1:032x}")
    with store.write() as connection:
        assert connection.execute(locked.with_for_update()).all()
        worker.read_due(AT + 2)
        assert [row["key"] for row in rows(store, conversation)] == ["s0"]
    worker.read_due(AT + 2)
    assert sorted(row["key"] for row in rows(store, conversation)) == ["s0", "s1"]


def test_names_that_a_database_cannot_hold_do_not_stop_it(postgres_store: Store) -> None:
    store = postgres_store
    worker = Worker(store, QUIET)
    bad = span(1, 1, agent="a\0" * 5000, session__id="s\0" + "x" * 50_000, service__name="\0")
    send(store, 1, [body(bad, span(2, 1, agent="fine"))], AT)
    work(worker, AT + 2)
    assert len(rows(store, conversation)) == 2
    assert {row["error"] for row in rows(store, trace)} == {None}


def test_a_conversation_that_ends_the_worker_each_time_is_given_up(postgres_store: Store) -> None:
    check_given_up(postgres_store)


def test_workers_that_are_killed_lose_and_double_nothing(postgres: Postgres) -> None:
    check_kills(postgres.database(), 2, 8)
