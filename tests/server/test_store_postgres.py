"""The store in a real PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from baton.server.database import NoProject, Unavailable, add_rows
from baton.server.schema import conversation, inbox_read
from baton.server.store import Store

from .conftest import Opening
from .postgres import Postgres

pytestmark = pytest.mark.heavy


def test_bodies_lie_in_a_partition_a_day(postgres_store: Store) -> None:
    bodies = postgres_store.bodies
    old = bodies.put("2026-11-21", [b"a" * 100, b""])
    new = bodies.put("2026-11-22", [b"c"])
    assert bodies.get([*old, *new]) == dict(zip([*old, *new], [b"a" * 100, b"", b"c"], strict=True))
    assert [segment.day for segment in bodies.segments()] == ["2026-11-21", "2026-11-22"]
    bodies.drop("2026-11-21")
    assert list(bodies.get([*old, *new])) == new


def test_a_statement_without_a_project_is_refused(postgres_store: Store) -> None:
    with postgres_store.read() as connection, pytest.raises(NoProject):
        connection.execute(select(conversation))


def test_several_processes_may_open_it_at_once(postgres: Postgres, opening: Opening) -> None:
    url = postgres.database()
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(lambda _: opening(url), range(4)))
    assert [store.projects() for store in stores] == [{"default": 1}] * 4
    with ThreadPoolExecutor(4) as threads:
        put = [threads.submit(store.bodies.put, "2026-11-22", [b"x"]) for store in stores]
    assert len({place for each in put for place in each.result()}) == 4


def test_a_server_that_is_gone_is_unavailable_and_comes_back(
    postgres: Postgres, opening: Opening
) -> None:
    store = opening(postgres.database())
    postgres.stop()
    try:
        with pytest.raises(Unavailable, match="the store is not available"):
            store.projects()
        with pytest.raises(Unavailable):
            store.bodies.put("2026-11-22", [b"x"])
    finally:
        postgres.start()
    assert store.projects() == {"default": 1}


def test_a_connection_that_breaks_while_rows_are_added_is_unavailable(
    postgres: Postgres, opening: Opening
) -> None:
    store = opening(postgres.database())
    rows = [{"project": 1, "id": number} for number in range(3)]

    def break_and_add() -> None:
        with store.write() as broken:
            pid = broken.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            with store.write() as other:
                other.exec_driver_sql(f"SELECT pg_terminate_backend({pid}, 5000)")
            add_rows(broken, inbox_read, rows)

    with pytest.raises(Unavailable, match="the store is not available"):
        break_and_add()
    with store.write() as connection:
        add_rows(connection, inbox_read, rows)
    with store.read() as connection:
        read = select(inbox_read.c.id).where(inbox_read.c.project == 1)
        assert sorted(connection.scalars(read)) == [0, 1, 2]
