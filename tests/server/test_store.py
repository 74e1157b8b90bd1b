"""The store refuses what does not name its project, and keeps bodies by day."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Table, delete, insert, select, update

from baton.server.bodies import BodyGone, FileBodies, get_one
from baton.server.schema import INBOX, INDEX, conversation, dispatch, label
from baton.server.store import EVERY_PROJECT, NoProject, open_store, refuse_without_project

TABLES = [
    table
    for metadata in (INDEX, INBOX)
    for table in metadata.tables.values()
    if "project" in table.c
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_no_table_of_a_project_is_read_or_changed_without_naming_it(table: Table) -> None:
    value = {next(iter(table.c)).name: None}
    for statement in (select(table), delete(table), update(table).values(value)):
        with pytest.raises(NoProject, match=f"`{table.name}`"):
            refuse_without_project(statement)
        refuse_without_project(statement.where(table.c.project == 1))


def test_each_table_of_a_join_names_its_project() -> None:
    other = dispatch.alias("other")
    with pytest.raises(NoProject, match="`other`"):
        refuse_without_project(select(dispatch, other).where(dispatch.c.project == 1))
    tied = select(dispatch).join(other, other.c.project == dispatch.c.project)
    refuse_without_project(tied.where(dispatch.c.project == 1))


def test_a_subquery_names_its_project() -> None:
    inner = select(conversation.c.id).where(conversation.c.verdict == "failed")
    outer = select(dispatch).where(dispatch.c.project == 1, dispatch.c.conversation.in_(inner))
    with pytest.raises(NoProject, match="`conversation`"):
        refuse_without_project(outer)


def test_rows_copied_from_another_table_name_its_project() -> None:
    rows = select(conversation.c.project, conversation.c.id)
    with pytest.raises(NoProject, match="`conversation`"):
        refuse_without_project(insert(label).from_select(["project", "conversation"], rows))


def test_the_database_itself_refuses(tmp_path: Path) -> None:
    store = open_store(tmp_path / "server")
    with store.read() as connection:
        with pytest.raises(NoProject):
            connection.execute(select(conversation))
        assert connection.execute(select(conversation), execution_options=EVERY_PROJECT).all() == []
    store.close()


def test_bodies_are_kept_by_day_and_dropped_with_it(tmp_path: Path) -> None:
    bodies = FileBodies(tmp_path)
    old, new = bodies.put("2026-11-21", [b"old" * 100])[0], bodies.put("2026-11-22", [b"new"])[0]
    assert [segment.day for segment in bodies.segments()] == ["2026-11-21", "2026-11-22"]
    assert bodies.get([old, new]) == {old: b"old" * 100, new: b"new"}
    bodies.drop("2026-11-21")
    assert bodies.get([old, new]) == {new: b"new"}
    with pytest.raises(BodyGone, match="2026-11-21 was deleted by retention"):
        get_one(bodies, old)
    assert not list(tmp_path.glob("2026-11-21*"))
    bodies.close()
