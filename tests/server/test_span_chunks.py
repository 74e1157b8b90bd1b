"""Bodies of the inbox are read into chunks by trace; what cannot be read is listed, not lost."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError, ProgrammingError

from baton.server.conversations import Bounds
from baton.server.database import Unavailable, Unfit
from baton.server.inbox import Inbox, entry_of
from baton.server.retention import Retention
from baton.server.schema import chunk, conversation, inbox, trace
from baton.server.settings import LimitSettings, Settings
from baton.server.store import Store
from baton.server.worker import Task, Worker, bounds_of, is_passing, loop, run, tasks_of

from .conftest import Opening
from .otlp import send, work
from .test_conversations import AT, body, only, rows, span

QUIET = Bounds(quiet=1.0)


@pytest.fixture
def worker(store: Store) -> Worker:
    return Worker(store, QUIET)


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("protobuf", b"\xff\xff\xff\xff"),
        ("protobuf", b"\x0a\x7f"),
        ("json", b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": 7}]}]}]}'),
        ("json", b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "no ids"}]}]}]}'),
        ("json", b"[" * 100_000),
        ("json", b"\xff"),
    ],
    ids=["no protobuf", "cut protobuf", "wrong type", "no ids", "deep", "no text"],
)
def test_a_body_that_cannot_be_read_is_listed_and_the_others_go_on(
    store: Store, worker: Worker, form: str, content: bytes
) -> None:
    send(store, 1, [content], AT, form)
    send(store, 1, [body(span(1, 1, agent="desk"))], AT)
    work(worker, AT + 2)
    assert only(store)["runs"] == 1
    (problem,) = Inbox(store).problems(1)
    assert problem.error
    assert Inbox(store).depth().waiting == 0


def test_what_is_whole_in_a_broken_body_is_kept_and_the_body_is_listed(
    store: Store, worker: Worker
) -> None:
    whole = body(span(1, 1, agent="desk"), span(2, 1, agent="billing"))
    send(store, 1, [whole[:-40]], AT)
    work(worker, AT + 2)
    (row,) = rows(store, conversation)
    assert row["agents"] == '["desk"]'
    assert Inbox(store).depth().waiting == 0


def test_a_body_that_is_read_again_doubles_nothing(store: Store, worker: Worker) -> None:
    broken = b'{"resourceSpans": [' + msgspec.json.encode(span(1, 1, agent="desk"))
    broken += b', {"scopeSpans": [{"spans": [{"traceId": 7}]}]}]}'
    send(store, 1, [broken], AT)
    work(worker, AT + 2)
    first = only(store)
    assert Inbox(store).problems(1)
    assert Inbox(store).reread(1) == 1
    work(worker, AT + 100)
    assert only(store) == first
    assert Inbox(store).problems(1)


def test_errors_hold_no_secrets(store: Store, worker: Worker) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 20
    content = {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": secret, "traceId": 7}]}]}]}
    send(store, 1, [msgspec.json.encode(content), f'{{"{secret}'.encode()], AT)
    work(worker, AT + 2)
    problems = Inbox(store).problems(1)
    assert len(problems) == 2
    assert not [each for each in problems if secret in each.error]


def test_logs_that_are_about_no_conversation_are_no_fault(store: Store, worker: Worker) -> None:
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}]}]}]}
    Inbox(store).put([entry_of(1, "logs", "json", msgspec.json.encode(logs), received=AT)])
    work(worker, AT + 2)
    assert not Inbox(store).problems(1)
    assert not rows(store, trace)


def test_a_trace_of_many_large_spans_lies_in_several_chunks(store: Store, worker: Worker) -> None:
    groups = [
        span(1, 1 + n, 1 if n else None, agent=f"a{n}", note="x" * 1_000_000) for n in range(12)
    ]
    send(store, 1, [body(*groups)], AT)
    work(worker, AT + 2)
    sizes = [row["bytes"] for row in rows(store, chunk)]
    assert len(sizes) >= 3
    assert max(sizes) < 5 << 20
    assert (only(store)["spans"], only(store)["runs"]) == (12, 12)


def test_an_error_of_the_database_about_a_body_fails_that_body_only(
    store: Store, worker: Worker
) -> None:
    """No column holds a project of this size: whatever the reason, the next ones are read."""
    poison = entry_of(2**40, "traces", "json", body(span(1, 1, agent="bad")), received=AT)
    fine = [
        entry_of(1, "traces", "json", body(span(n, 1, agent="fine")), received=AT) for n in (2, 3)
    ]
    Inbox(store).put([fine[0], poison, fine[1]])
    with store.write() as connection:
        # A real database may refuse a row for reasons that nobody thought of.
        connection.exec_driver_sql(
            "CREATE TRIGGER refuses BEFORE INSERT ON trace WHEN NEW.project > 1000"
            " BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
    work(worker, AT + 2)
    assert len(rows(store, conversation)) == 2
    (problem,) = Inbox(store).problems(2**40)
    assert "refused" in problem.error


def test_errors_about_the_store_pass_and_those_about_data_do_not() -> None:
    def unavailable(kind: Any) -> Unavailable:
        error = Unavailable("gone")
        error.__cause__ = kind("", {}, Exception("said"))
        return error

    assert is_passing(unavailable(OperationalError))
    assert not is_passing(unavailable(ProgrammingError))
    assert not is_passing(Unfit("an integer is too large for the store"))
    assert not is_passing(ValueError("a bug"))


def test_a_task_that_fails_is_tried_again_and_keeps_up_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []
    stop = threading.Event()

    def fails(_: float) -> bool:
        done.append("fails")
        raise Unavailable("the store is locked")

    def works(_: float) -> bool:
        done.append("works")
        if len(done) > 20:
            stop.set()
        return False

    with caplog.at_level(logging.WARNING):
        loop([Task("one", 0.01, fails), Task("two", 0.01, works)], stop)
    assert 1 <= done.count("fails") <= 3
    assert "the store is locked" in caplog.text


def test_a_worker_prunes_what_was_read_and_deletes_what_is_old(
    tmp_path: Path, opening: Opening
) -> None:
    settings = Settings(
        folder=str(tmp_path / "server"), quiet=1.0, keep_inbox=60, retention=Retention(days=2)
    )
    store = opening(settings.store)
    worker = Worker(store, bounds_of(settings))
    send(store, 1, [body(span(1, 1, agent="desk")), b"no spans"], AT)
    work(worker, AT + 2)
    tasks = {task.name: task for task in tasks_of(worker, settings)}
    tasks["pruning the inbox"].run(AT + 100)
    kept = {row["state"]: row["body"] for row in inbox_rows(store)}
    assert kept["done"] is None
    assert kept["failed"]
    tasks["retention"].run(AT + 10 * 86_400)
    assert not rows(store, conversation)
    assert [task.failures for task in tasks.values()] == [0] * len(tasks)


def inbox_rows(store: Store) -> list[dict[str, Any]]:
    with store.read_inbox() as connection:
        query = select(inbox).where(inbox.c.project == 1)
        return [dict(row) for row in connection.execute(query).mappings()]


def test_a_worker_runs_until_it_is_told_to_stop(tmp_path: Path, opening: Opening) -> None:
    settings = Settings(
        folder=str(tmp_path / "server"), quiet=0.1, limits=LimitSettings(conversation_spans=100)
    )
    store = opening(settings.store)
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(settings, stop))
    thread.start()
    send(store, 1, [body(span(1, 1, agent="desk"))], time.time())
    until = time.time() + 60
    while not rows(store, conversation) and time.time() < until:
        time.sleep(0.05)
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert only(store)["state"] == "complete"
