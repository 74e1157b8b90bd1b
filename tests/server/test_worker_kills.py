"""A kill at any moment loses and doubles nothing that was accepted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import func, select

from baton.model import Trace
from baton.server.conversations import Bounds, record_of, reread, unread
from baton.server.database import Unavailable
from baton.server.inbox import Inbox
from baton.server.schema import being_read, conversation, inbox_read, run, trace
from baton.server.store import Store, open_store
from baton.server.worker import Worker, no_rules

from .otlp import send, work
from .test_conversations import AT, body, only, rows, span

QUIET = Bounds(quiet=1.0)


class Killed(BaseException):
    """Stands for a kill: nothing after it is done."""


class Dying:
    """A store that is killed at the n-th time something is committed, before or after it is."""

    def __init__(self, store: Store, count: int, *, after: bool) -> None:
        self._store = store
        self._left = count
        self._after = after
        self.bodies: Any = _Bodies(self)
        self.is_postgresql = store.is_postgresql
        self.read, self.read_inbox = store.read, store.read_inbox
        self.project, self.projects = store.project, store.projects

    @contextmanager
    def commit(self, how: Callable[[], Any]) -> Iterator[Any]:
        self._left -= 1
        with how() as connection:
            yield connection
            if self._left == 0 and not self._after:
                raise Killed
        if self._left == 0:
            raise Killed

    def write(self) -> Any:
        return self.commit(self._store.write)

    def write_inbox(self) -> Any:
        return self.commit(self._store.write_inbox)

    def put(self, *arguments: Any) -> Any:
        self._left -= 1
        places = self._store.bodies.put(*arguments)
        if self._left == 0:
            raise Killed
        return places


class _Bodies:
    def __init__(self, dying: Dying) -> None:
        self._dying = dying
        self.put = dying.put

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dying._store.bodies, name)


@pytest.mark.heavy
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("count", [*range(1, 6), 9, *range(16, 22), 27, 28, 29])
def test_a_kill_at_any_commit_loses_and_doubles_nothing(
    store: Store, count: int, after: bool
) -> None:
    bodies = [body(span(1, 2 + n, 1, agent=f"a{n}")) for n in range(3)]
    send(store, 1, [*bodies, body(span(1, 1, agent="desk", seconds=5))], AT)
    dying: Any = Dying(store, count, after=after)

    def until_killed() -> None:  # four commits a body, and then those of reading
        work(Worker(dying, QUIET), AT + 2)
        send(store, 1, [body(span(2, 1, agent="desk"))], AT)
        work(Worker(dying, QUIET), AT + 2)

    with pytest.raises(Killed):
        until_killed()
    worker = Worker(store, QUIET)
    work(worker, AT + 3)
    work(worker, AT + 9)  # what a kill interrupted is read later
    (row,) = [row for row in rows(store, trace) if row["trace_id"] == f"{1:032x}"]
    assert row["spans"] == 4
    found = {each["key"]: each for each in rows(store, conversation)}
    first = found[f"{1:032x}"]
    assert (first["version"], first["runs"], first["spans"]) == (1, 4, 4)
    assert Inbox(store).depth().waiting == 0
    assert len([each for each in rows(store, run) if each["conversation"] == first["id"]]) == 4


def test_what_was_read_before_a_kill_is_known_until_the_inbox_says_so(store: Store) -> None:
    send(store, 1, [body(span(1, 1, agent="desk"))], AT)
    dying: Any = Dying(store, 4, after=False)  # that it is begun, bodies, index, inbox
    with pytest.raises(Killed):
        Worker(dying, QUIET).take_in(AT)
    assert len(rows(store, inbox_read)) == 1
    assert Inbox(store).depth().waiting == 1
    worker = Worker(store, QUIET)
    assert worker.take_in(AT) == 0
    assert Inbox(store).depth().waiting == 0
    assert not rows(store, inbox_read)
    work(worker, AT + 2)
    assert only(store)["spans"] == 1


def die(worker: Worker, at: float) -> None:
    """Let a worker read what waits, until it is killed while it reads a body alone."""
    with pytest.raises(Killed):
        work(worker, at)


def test_a_body_that_ends_the_worker_each_time_is_given_up(store: Store) -> None:
    bodies = [body(span(n, 1, agent="desk")) for n in (1, 2)]
    send(store, 1, bodies[:1], AT)
    die(Worker(cast("Any", Dying(store, 2, after=False)), QUIET), AT)
    send(store, 1, bodies[1:], AT)
    for _ in range(3):
        worker = Worker(store, QUIET)
        work(worker, AT)  # what else waits
        assert Inbox(store).depth().waiting == 1
        worker.store = cast("Any", Dying(store, 2, after=False))
        die(worker, AT + 10)
    assert not Inbox(store).problems(1)
    worker = Worker(store, QUIET)
    work(worker, AT + 20)
    work(worker, AT + 30)
    (problem,) = Inbox(store).problems(1)
    assert "crashed 4 times" in problem.error
    assert only(store)["key"] == f"{2:032x}"
    Inbox(store).reread(1)
    work(Worker(store, QUIET), AT + 31)
    assert len(rows(store, conversation)) == 2


def test_kills_while_workers_start_are_not_the_fault_of_what_they_read(store: Store) -> None:
    send(store, 1, [body(span(n, 1, agent="desk")) for n in range(1, 4)], AT)
    for number in range(30):
        worker = Worker(cast("Any", Dying(store, 2, after=False)), QUIET)
        if number < 3:
            die(worker, AT)  # one body after the other is under suspicion, and passed over
        else:
            assert worker.take_in(AT) == 0
    worker = Worker(store, QUIET)
    work(worker, AT)
    work(worker, AT + 9)
    assert not Inbox(store).problems(1)
    assert len(rows(store, conversation)) == 3


def test_a_store_that_is_away_for_a_while_is_not_the_fault_of_a_body(store: Store) -> None:
    send(store, 1, [body(span(1, 1, agent="desk"))], AT)
    worker = Worker(store, QUIET)

    def away() -> Any:
        raise Unavailable("the disk is full")

    store_away: Any = Dying(store, 0, after=False)
    store_away.write = away
    worker.store = store_away
    for number in range(10):
        with pytest.raises(Unavailable):
            worker.take_in(AT + number)
    worker.store = store
    work(worker, AT + 20)
    assert only(store)["key"] == f"{1:032x}"


class Deadly:
    """Scores a conversation of one agent as too little memory does: the process ends."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.tries = 0

    def __call__(self, project: int, record: Trace, told: Any, state: Any) -> Any:
        if any(run.agent == self.agent for turn in record.turns for run in turn.runs):
            self.tries += 1
            raise Killed
        return no_rules(project, record, told, state)


def is_killed(store: Store, deadly: Deadly, at: float) -> bool:
    """Let a new worker read what is due, and what another one ended with; tell if it ended."""
    worker = Worker(store, QUIET, deadly)
    try:
        work(worker, at)
        work(worker, at + 6)
    except Killed:
        return True
    return False


def test_a_conversation_that_ends_the_worker_each_time_is_given_up(store: Store) -> None:
    check_given_up(store)


def check_given_up(store: Store) -> None:
    """A conversation that ends four workers is given up, until it is to be read again."""
    deadly = Deadly("poison")
    agents = ["desk", "poison", *(f"a{n}" for n in range(4))]
    send(store, 1, [body(span(n, 1, agent=agent)) for n, agent in enumerate(agents, 1)], AT)
    ended = [is_killed(store, deadly, AT + 10 * n) for n in range(1, 7)]
    assert ended == [True, True, True, True, False, False]
    assert deadly.tries == 4
    (problem,) = unread(store, 1)
    assert (problem.trace_id, "crashed 4 times" in problem.error) == (f"{2:032x}", True)
    assert {row["key"] for row in rows(store, conversation)} == {
        f"{n:032x}" for n in (1, 3, 4, 5, 6)
    }
    # More spans of it, and of a trace that belongs to it, end no other worker.
    send(store, 1, [body(span(2, 2, 1, agent="b"))], AT + 100)
    send(store, 1, [body(span(9, 1, agent="c", links=[2]))], AT + 101)
    assert not any(is_killed(store, deadly, AT + at) for at in (110, 120))
    assert {each.trace_id for each in unread(store, 1)} == {f"{2:032x}", f"{9:032x}"}
    # After an update it may be read.
    deadly.agent = "nobody"
    with store.write() as connection:
        assert reread(connection, AT + 130) == 2
    assert not is_killed(store, deadly, AT + 140)
    assert not unread(store, 1)
    assert not rows(store, being_read)
    assert len(rows(store, conversation)) == 6


def test_kills_and_a_store_that_is_away_are_not_the_fault_of_conversations(store: Store) -> None:
    send(store, 1, [body(span(n, 1, agent="desk")) for n in range(1, 4)], AT)
    worker = Worker(store, QUIET)
    while worker.take_in(AT):
        pass
    for _ in range(6):  # workers that do not live for long
        dying: Any = Dying(store, 2, after=False)
        fresh = Worker(dying, QUIET)
        if rows(store, being_read):
            assert fresh.read_due(AT + 2) == 0
        else:
            with pytest.raises(Killed):
                fresh.read_due(AT + 2)
    away: Any = Dying(store, 0, after=False)

    def refuse(*_: Any) -> Any:
        raise Unavailable("the disk is full")

    away.bodies = _Bodies(away)
    away.bodies.put = refuse
    worker.store = away
    for number in range(10):
        with pytest.raises(Unavailable):
            worker.read_due(AT + 10 + number)
    worker.store = store
    work(worker, AT + 30)
    assert len(rows(store, conversation)) == 3
    assert not unread(store, 1)
    assert not rows(store, being_read)


_WORKER = """
import sys, threading
from baton.server.settings import Settings
from baton.server.worker import run
where = sys.argv[1]
place = {"db": where} if "://" in where else {"folder": where}
run(Settings(quiet=0.05, **place), threading.Event())
"""


def check_kills(where: Path | str, workers: int, kills: int) -> None:
    """Kill workers at random moments under load; every span is there once."""
    store = open_store(where)
    try:
        kill_some(store, where, workers, kills)
    finally:
        store.close()


def kill_some(store: Store, where: Path | str, workers: int, kills: int) -> None:
    order = random.Random(7)
    sent = 0
    running: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", _WORKER, str(where)])

    try:
        running = [start() for _ in range(workers)]
        for _ in range(kills):
            # Traces of three spans, each span in its own request.
            groups = []
            for number in range(sent, sent + 20):
                groups.append(span(number + 1, 1, agent="desk"))
                groups += [span(number + 1, 2 + n, 1, agent=f"a{n}") for n in range(2)]
            sent += 20
            order.shuffle(groups)
            send(store, 1, [body(group) for group in groups], time.time() - 1)
            time.sleep(order.uniform(0.2, 1.2))
            victim = running.pop(0)
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
            running.append(start())
        until = time.time() + 120
        while time.time() < until:
            with store.read() as connection:
                which = (conversation.c.project == 1) & (conversation.c.spans == 3)
                query = select(func.count()).select_from(conversation).where(which)
                if connection.execute(query).scalar_one() == sent:
                    break
            time.sleep(0.2)
    finally:
        for process in running:
            process.kill()
            process.wait()
    found = rows(store, conversation)
    assert sorted(row["key"] for row in found) == sorted(f"{n + 1:032x}" for n in range(sent))
    assert {(row["spans"], row["runs"]) for row in found} == {(3, 3)}
    assert len(rows(store, run)) == 3 * sent
    assert {row["spans"] for row in rows(store, trace)} == {3}
    assert len(record_of(store, 1, found[0]["id"]).turns[0].runs) == 3
    assert Inbox(store).depth().waiting == 0
    assert not Inbox(store).problems(1)


@pytest.mark.heavy
def test_a_worker_that_is_killed_again_and_again_loses_and_doubles_nothing(tmp_path: Path) -> None:
    check_kills(tmp_path / "server", 1, 8)
