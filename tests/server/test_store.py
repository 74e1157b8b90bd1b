"""The store refuses what does not name its project, and keeps bodies by day."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    MetaData,
    Table,
    and_,
    delete,
    insert,
    inspect,
    not_,
    or_,
    select,
    text,
    union_all,
    update,
)

from baton.model import InputError
from baton.server.bodies import BodyGone, FileBodies, get_one
from baton.server.database import (
    EVERY_PROJECT,
    NoProject,
    TooLong,
    Unavailable,
    add_rows,
    refuse_without_project,
)
from baton.server.migrations import HEAD
from baton.server.schema import INBOX, INDEX, conversation, dispatch, judging, label, score
from baton.server.store import Store, open_store
from baton.testing.build import run, trace, turn

from .conftest import Opening
from .postgres import Postgres
from .seeding import START, add_conversation, add_sum, assert_days_follow

# The index that is over an expression cannot be compared.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index"),
    pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based"),
]

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


def test_a_project_that_only_some_rows_have_to_be_of_is_not_named() -> None:
    mine, failed = conversation.c.project == 1, conversation.c.verdict == "failed"
    itself = conversation.c.project == conversation.c.project
    for condition in (or_(mine, failed), not_(mine), itself, and_(failed, or_(mine, failed))):
        with pytest.raises(NoProject, match="`conversation`"):
            refuse_without_project(select(conversation).where(condition))
    refuse_without_project(select(conversation).where(mine, or_(failed, failed)))
    inner = select(dispatch.c.id).where(dispatch.c.project == 1).exists()
    refuse_without_project(select(conversation).where(mine, or_(failed, inner)))


def test_a_subquery_names_its_project() -> None:
    inner = select(conversation.c.id).where(conversation.c.verdict == "failed")
    outer = select(dispatch).where(dispatch.c.project == 1, dispatch.c.conversation.in_(inner))
    with pytest.raises(NoProject, match="`conversation`"):
        refuse_without_project(outer)


def test_rows_copied_from_another_table_name_its_project() -> None:
    rows = select(conversation.c.project, conversation.c.id)
    with pytest.raises(NoProject, match="`conversation`"):
        refuse_without_project(insert(label).from_select(["project", "conversation"], rows))


def test_the_database_itself_refuses(store: Store) -> None:
    with store.read() as connection:
        with pytest.raises(NoProject):
            connection.execute(select(conversation))
        with pytest.raises(NoProject):
            connection.execute(union_all(select(conversation.c.id), select(dispatch.c.turn)))
        assert connection.execute(select(conversation), execution_options=EVERY_PROJECT).all() == []


def test_rows_that_are_added_together_may_leave_out_different_columns(store: Store) -> None:
    row = {"project": 1, "conversation": 1, "version": 1, "state": "waiting", "attempts": 0}
    times = {"due": 1.0, "created": 1.0}
    rows = [{**row, **times, "rule": "a"}, {**row, **times, "rule": "b", "error": "it is down"}]
    with store.write() as connection:
        add_rows(connection, judging, rows)
    with store.read() as connection:
        query = select(judging.c.rule, judging.c.error).where(judging.c.project == 1)
        assert connection.execute(query).all() == [("a", None), ("b", "it is down")]


def test_a_store_is_opened_again_with_what_it_holds(tmp_path: Path, opening: Opening) -> None:
    store = opening(tmp_path)
    number = store.project("support", create=True)
    store.close()
    again = opening(tmp_path)
    assert again.projects() == {"default": 1, "support": number}


@pytest.mark.heavy  # it waits for five seconds
def test_a_store_that_another_writes_to_is_unavailable_for_now(tmp_path: Path) -> None:
    store, other = open_store(tmp_path), open_store(tmp_path)
    with store.write(), pytest.raises(Unavailable, match="database is locked"), other.write():
        pass
    assert other.project("support", create=True) == 2
    store.close()
    other.close()


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


def test_a_connection_is_opened_while_another_one_writes(tmp_path: Path, opening: Opening) -> None:
    store = opening(tmp_path)
    store.index.dispose()
    with store.write() as connection:
        connection.execute(text("UPDATE project SET created = 1"))
        started = time.monotonic()
        assert store.projects() == {"default": 1}
        assert time.monotonic() - started < 4  # another one waits for 5 s
    store.close()
    again = opening(tmp_path)
    with again.read() as connection:
        assert connection.execute(text("PRAGMA auto_vacuum")).scalar() == 2


def test_a_store_of_a_later_version_is_refused(tmp_path: Path, opening: Opening) -> None:
    store = opening(tmp_path)
    with store.write() as connection:
        connection.execute(text("UPDATE index_revision SET version_num = '9999'"))
    store.close()
    with pytest.raises(InputError, match="the store has revision 9999"):
        open_store(tmp_path)


def make_first_index(folder: Path) -> None:
    """Make the index of a store as the first revision had it, with a conversation and its score."""
    file = sqlite3.connect(folder / "index.db")
    file.executescript((Path(__file__).parent / "data" / "index_0001.sql").read_text())
    file.close()


def test_a_store_of_an_earlier_version_is_brought_up_to_date(
    tmp_path: Path, opening: Opening
) -> None:
    make_first_index(tmp_path)
    store = opening(tmp_path)
    with store.read() as connection:
        assert connection.execute(text("SELECT * FROM index_revision")).scalar() == HEAD
        known = connection.execute(text("SELECT idx FROM sqlite_stat1")).scalars().all()
        (row,) = connection.execute(select(score).where(score.c.project == 1)).mappings()
    assert (row["rule"], row["status"], row["rescore"]) == ("all", "passed", None)
    assert "run_by_version" in known
    assert_days_follow(store)
    assert differences(store, "index", INDEX) == []


@pytest.mark.heavy
def test_a_store_of_an_earlier_version_in_postgresql_is_brought_up_to_date(
    postgres: Postgres, opening: Opening
) -> None:
    address = postgres.database()
    store = opening(address)
    # In the evening, so that a cast that rounds would make it the next day.
    add_conversation(
        store, trace(turn("hi", run("desk")), id="c1"), at=START + 64_800, cost_usd=1.5
    )
    add_sum(store, int(START // 3600), "refunds")
    added = {"conversation": ["named_rules"], "judging": ["rescore"]}
    added["dispatch"] = ["model", "untold"]
    added["score"] = ["made_by", "rescore", "replaced_by"]
    with store.write() as connection:
        for table, columns in added.items():
            for column in columns:
                connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {column}"))
        for table in ("rescore", "rollup_day", "conversation_sum", "being_read"):
            connection.execute(text(f"DROP TABLE {table}"))
        connection.execute(text("UPDATE index_revision SET version_num = '0001'"))
        connection.execute(text("UPDATE inbox_revision SET version_num = '0001'"))
    store.close()
    again = opening(address)
    with again.read() as connection:
        there = {each["name"] for each in inspect(connection).get_columns("score")}
        assert there == {column.name for column in score.c}
        assert inspect(connection).has_table("rescore")
        assert connection.execute(text("SELECT * FROM inbox_revision")).scalar() == HEAD
    assert_days_follow(again)


def differences(store: Store, part: str, tables: MetaData) -> Any:
    """Return where the tables of a part are not those of the schema."""
    engine = store.index if part == "index" else store.inbox
    with engine.connect() as connection:
        options = {"version_table": f"{part}_revision"}
        return compare_metadata(MigrationContext.configure(connection, opts=options), tables)


@pytest.mark.parametrize(("part", "tables"), [("index", INDEX), ("inbox", INBOX)])
def test_the_tables_of_a_store_are_those_of_the_schema(
    store: Store, part: str, tables: MetaData
) -> None:
    assert differences(store, part, tables) == []


def test_the_last_revision_is_the_one_that_new_stores_have() -> None:
    config = Config()
    config.set_main_option("script_location", "baton.server:migrations")
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
LONG = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 2000000) SELECT count(*) FROM c"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.heavy)])
def either(request: pytest.FixtureRequest) -> Store:
    name = "store" if request.param == "sqlite" else "postgres_store"
    opened: Store = request.getfixturevalue(name)
    return opened


def test_a_question_that_takes_too_long_is_broken_off(either: Store) -> None:
    either.patience = 0.2
    began = time.monotonic()
    with pytest.raises(TooLong, match="took too long"), either.read() as connection:
        connection.execute(text(ENDLESS))
    assert time.monotonic() - began < 30
    with either.read() as connection:
        assert connection.execute(text("SELECT 1")).scalar() == 1
    either.patience = None  # as where work is done
    with either.read() as connection:
        assert connection.execute(text(LONG)).scalar() == 2_000_000


def test_a_server_that_stops_breaks_off_what_is_asked(either: Store) -> None:
    either.patience = 60.0
    broken: list[float] = []

    def ask() -> None:
        try:
            with either.read() as connection:
                connection.execute(text(ENDLESS))
        except TooLong:
            broken.append(time.monotonic())

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.3)
    stopped = time.monotonic()
    either.break_off()
    asking.join(30)
    assert broken
    assert broken[0] - stopped < 30  # and not the minute that it may take
    with pytest.raises(TooLong, match="stopping"), either.read():
        pass
