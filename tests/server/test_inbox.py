"""The inbox keeps each body once, gives it out until it was read, and keeps what was not."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from baton.server.database import Unavailable
from baton.server.inbox import Entry, GroupCommit, Inbox, entry_of
from baton.server.store import Store

from .stores import new_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = new_store(tmp_path / "server")
    yield opened
    opened.close()


def _entry(body: bytes, project: int = 1) -> Entry:
    return entry_of(project, "traces", "protobuf", body, received=1000.0)


def _take(inbox: Inbox, store: Store, limit: int = 1 << 20) -> list[bytes]:
    with store.read_inbox() as connection:
        return [item.body for item in inbox.take(connection, limit)]


def test_the_same_body_is_kept_once_for_each_project(store: Store) -> None:
    inbox = Inbox(store)
    assert inbox.put([_entry(b"a"), _entry(b"b"), _entry(b"a")]) == [True, True, False]
    assert inbox.put([_entry(b"b"), _entry(b"a", project=2), _entry(b"c")]) == [False, True, True]
    assert sorted(_take(inbox, store)) == [b"a", b"a", b"b", b"c"]
    assert inbox.put([]) == []


def test_what_is_taken_is_bounded_and_at_least_one(store: Store) -> None:
    inbox = Inbox(store)
    bodies = [bytes([number]) * 1000 for number in range(100)]
    for body in bodies:
        inbox.put([_entry(body)])
    assert _take(inbox, store, 10) == bodies[:1]
    assert _take(inbox, store, 40_000) == bodies[:40]
    assert _take(inbox, store) == bodies


def test_what_was_read_is_not_given_out_again_and_what_failed_waits_for_reread(
    store: Store,
) -> None:
    inbox = Inbox(store)
    for body in (b"a", b"b", b"c"):
        inbox.put([_entry(body)])
    with store.write_inbox() as connection:
        first, second, third = inbox.take(connection, 1 << 20)
        inbox.done(connection, [first.id])
        inbox.fail(connection, second.id, "no\0 trace", "0.1")
    assert _take(inbox, store) == [b"c"]
    assert inbox.depth() == (1, 1000.0)
    (problem,) = inbox.problems(1)
    assert (problem.id, problem.error, problem.reader) == (second.id, "no\ufffd trace", "0.1")
    assert inbox.problems(2) == []
    assert (inbox.reread(2), inbox.reread(1, [first.id, third.id]), inbox.reread(1)) == (0, 0, 1)
    with store.read_inbox() as connection:
        assert [item.attempts for item in inbox.take(connection, 1 << 20)] == [1, 0]


def test_pruned_bodies_are_gone_and_still_known(store: Store, tmp_path: Path) -> None:
    inbox = Inbox(store)
    generator = [number.to_bytes(2, "big") * 2 for number in range(3)]
    inbox.put([_entry(body) for body in generator])
    with store.write_inbox() as connection:
        items = inbox.take(connection, 1 << 20)
        inbox.done(connection, [items[0].id])
        inbox.fail(connection, items[1].id, "unreadable")
    assert inbox.prune(500.0) == 0
    assert inbox.prune(2000.0) == 1
    assert inbox.put([_entry(generator[0])]) == [False]
    assert inbox.reread() == 1
    assert sorted(_take(inbox, store)) == sorted(generator[1:])
    inbox.prune(2000.0, forget_before=2000.0)
    assert inbox.put([_entry(generator[0])]) == [True]


def test_the_file_shrinks_by_what_is_pruned(store: Store, tmp_path: Path) -> None:
    inbox = Inbox(store)
    noise = random.Random(1)
    inbox.put([_entry(noise.randbytes(100_000)) for _ in range(40)])
    with store.write_inbox() as connection:
        inbox.done(connection, [item.id for item in inbox.take(connection, 1 << 30)])
    inbox.prune(2000.0)
    with store.inbox.connect() as connection:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("BEGIN")
    assert (tmp_path / "server" / "inbox.db").stat().st_size < 200_000


def test_requests_that_wait_share_a_commit_and_each_hears_of_its_own(store: Store) -> None:
    inbox = Inbox(store)
    group = GroupCommit(inbox)

    def send(number: int) -> list[bool]:
        return group.put([_entry(b"%d" % (number // 2))]).result(60)

    with ThreadPoolExecutor(8) as pool:
        answers = [kept for (kept,) in pool.map(send, range(200))]
    group.close()
    assert sum(answers) == 100
    assert len(_take(inbox, store)) == 100
    with pytest.raises(Unavailable, match="stopping"):
        group.put([_entry(b"late")])


class Counted(Inbox):
    """An inbox that tells how many bodies each transaction had."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.sizes: list[int] = []

    def put(self, entries: Sequence[Entry]) -> list[bool]:
        self.sizes.append(len(entries))
        return super().put(entries)


def test_a_commit_waits_a_little_for_the_requests_in_flight_and_not_for_ever(store: Store) -> None:
    inbox = Counted(store)
    group = GroupCommit(inbox, coming=lambda: 3, gather=30)
    futures = [group.put([_entry(b"%d" % number)]) for number in range(3)]
    assert [future.result(60) for future in futures] == [[True]] * 3
    assert inbox.sizes == [3]
    group.close()
    group = GroupCommit(inbox, coming=lambda: 3)
    # The others are given up, or their bodies never arrive.
    assert group.put([_entry(b"alone")]).result(60) == [True]
    assert inbox.sizes == [3, 1]
    group.close()


def test_closing_commits_what_waits(store: Store) -> None:
    group = GroupCommit(Inbox(store))
    futures = [group.put([_entry(b"%d" % number)]) for number in range(50)]
    group.close()
    assert all(future.result(0) == [True] for future in futures)


@pytest.mark.heavy
def test_a_locked_store_is_unavailable_and_comes_back(store: Store) -> None:
    group = GroupCommit(Inbox(store), most_waiting=1)
    with store.write_inbox():
        first = group.put([_entry(b"a")])
        while group.waiting:
            threading.Event().wait(0.01)
        second = group.put([_entry(b"b")])
        with pytest.raises(Unavailable, match="too many"):
            group.put([_entry(b"c")])
        with pytest.raises(Unavailable, match="locked"):
            first.result(60)
    assert second.result(60) == [True]
    group.close()


@pytest.mark.heavy
def test_workers_of_postgresql_take_different_bodies(postgres_store: Store) -> None:
    inbox = Inbox(postgres_store)
    bodies = [bytes([number]) * 100 for number in range(100)]
    assert inbox.put([_entry(body) for body in bodies]) == [True] * 100
    assert inbox.put([_entry(bodies[0]), _entry(b"\0")]) == [False, True]
    with postgres_store.write_inbox() as one, postgres_store.write_inbox() as two:
        first, second = inbox.take(one, 1000), inbox.take(two, 1000)
        assert [len(first), len(second)] == [10, 10]
        assert not {item.id for item in first} & {item.id for item in second}
        inbox.done(one, [item.id for item in first])
        inbox.fail(two, second[0].id, "no\0 trace")
    assert inbox.depth().waiting == 90
    assert [problem.error for problem in inbox.problems(1)] == ["no\ufffd trace"]
    assert (inbox.reread(1), inbox.prune(2000.0)) == (1, 10)
