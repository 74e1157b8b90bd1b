"""The state of trees: what the dispatches of one request have had so far.

It is in a file of SQLite that processes share and that survives a restart, or in memory. Texts are
not kept: of a task only a hash.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from baton.formats.own_files import make_folder
from baton.model import InputError, Problem

from .decide import Decision, Event, Seen, decide, failed_decision
from .policy import Policy

_VERSION = 2
_SCHEMA = """
create table if not exists trees (
    id text primary key, began real, touched real not null,
    dispatches integer not null default 0, tokens integer, cost_usd real
) without rowid;
create table if not exists dispatches (
    tree text not null, id text not null, parent text not null,
    began real not null, ended real,
    primary key (tree, id)
) without rowid;
create index if not exists running on dispatches (tree, parent, began) where ended is null;
create table if not exists counts (
    tree text not null, key blob not null, number integer not null,
    primary key (tree, key)
) without rowid;
"""
"""Sums are kept, since to count 20,000 dispatches for each decision takes minutes. A key of
``counts`` is the hash of a parent (its dispatches, and those without an answer) or of a task."""
_FORGOTTEN = 7 * 86_400
"""Seconds after which a tree that nothing happened in is deleted: nobody waits a week for one
request."""
_LOST = 3_600
"""Seconds after which a dispatch without an answer no longer counts as running: its process is
likely gone, and would keep others from starting for ever."""
_OPEN_BEFORE = "tree = ? and parent = ? and ended is null and began <= ?"
_TRIES = 8
_WAIT = 5.0
"""Seconds to wait for another process that writes."""


class Spent(NamedTuple):
    """What a tree has had so far: dispatches, and tokens, US dollars and seconds where told."""

    dispatches: int
    tokens: int | None
    cost_usd: float | None
    seconds: float | None


class Store:
    """The state of trees, in a file or in memory; threads and processes may share it."""

    def __init__(self, file: Path | str | None = None) -> None:
        """Open the file, which is made when it is not there; in memory without one.

        Raises:
            InputError: the file is not one of guards.
        """
        self._file = None if file is None else str(file)
        self._lock = threading.RLock()
        self._process = os.getpid()
        if file is not None:
            make_folder(Path(file).resolve().parent)
        self._database = self._opened()

    def decide(self, policy: Policy, event: Event) -> Decision:
        """Decide an event; a dispatch that is allowed counts from now on.

        When the state cannot be read or written, the policy says what happens.
        """
        try:
            return self._decide(policy, event)
        except sqlite3.Error as error:
            return failed_decision(policy, f"the state of the tree: {error}", event.output)

    def begin(self, tree: str, at: float | None = None) -> None:
        """Note that a tree begins now, or at a time, unless it has begun already."""
        with self._writing() as database:
            self._touch(database, tree, time.time() if at is None else at)

    def add(self, event: Event) -> None:
        """Count a dispatch that a person agreed to."""
        with self._writing() as database:
            self._add(database, event)

    def end(self, tree: str, dispatch: str) -> bool:
        """Note that a dispatch has its answer, or failed; tells whether it was counted."""
        with self._writing() as database:
            known = database.execute(
                "select parent, ended from dispatches where tree = ? and id = ?", (tree, dispatch)
            ).fetchone()
            if known is None:
                return False
            parent, ended = known
            if ended is None:
                database.execute(
                    "update dispatches set ended = ? where tree = ? and id = ?",
                    (time.time(), tree, dispatch),
                )
                self._count(database, tree, _hash("running", parent), -1)
            return True

    def knows(self, tree: str, dispatch: str) -> bool:
        """Tell whether a dispatch was counted."""
        with self._lock:
            found = self._connection().execute(
                "select 1 from dispatches where tree = ? and id = ?", (tree, dispatch)
            )
            return found.fetchone() is not None

    def rename(self, tree: str, dispatch: str, name: str) -> None:
        """Give a dispatch another id, by which others will know it."""
        with self._writing() as database:
            database.execute(
                "update or ignore dispatches set id = ? where tree = ? and id = ?",
                (name, tree, dispatch),
            )

    def use(self, tree: str, *, tokens: int | None = None, cost_usd: float | None = None) -> None:
        """Add what a tree has used; ``None`` leaves a figure as it is."""
        with self._writing() as database:
            self._touch(database, tree, time.time())
            for name, value in (("tokens", tokens), ("cost_usd", cost_usd)):
                if value is not None:
                    database.execute(
                        f"update trees set {name} = coalesce({name}, 0) + ? where id = ?",  # noqa: S608
                        (value, tree),
                    )

    def spent(self, tree: str) -> Spent:
        """Return what a tree has had so far."""
        seen = self._seen(Event(on="tool", tree=tree, at=time.time()))
        return Spent(seen.dispatches, seen.tokens, seen.cost_usd, seen.seconds)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _decide(self, policy: Policy, event: Event) -> Decision:
        for _ in range(_TRIES):
            # Rules may search long texts: nobody else has to wait for that.
            seen = self._seen(event)
            decision = decide(policy, seen, event)
            if event.on != "dispatch" or not decision.allowed:
                return decision
            with self._writing() as database:
                if self._seen(event) == seen:
                    self._add(database, event)
                    return decision
        with self._writing() as database:
            decision = decide(policy, self._seen(event), event)
            if decision.allowed:
                self._add(database, event)
            return decision

    def _seen(self, event: Event) -> Seen:
        now = event.at if event.at is not None else time.time()
        with self._lock:
            database = self._connection()
            tree = database.execute(
                "select began, dispatches, tokens, cost_usd from trees where id = ?", (event.tree,)
            ).fetchone()
            if tree is None:
                return Seen(seconds=None if event.at is None else 0.0)
            keys = _hash("parent", event.parent), task_key(event), _hash("running", event.parent)
            counts = dict(
                database.execute(
                    "select key, number from counts where tree = ? and key in (?, ?, ?)",
                    (event.tree, *keys),
                ).fetchall()
            )
            of_parent, same, running = (counts.get(key, 0) for key in keys)
            lost = database.execute(
                f"select count(*) from dispatches where {_OPEN_BEFORE}",  # noqa: S608
                (event.tree, event.parent, now - _LOST),
            ).fetchone()[0]
        began, dispatches, tokens, cost = tree
        seconds = None if event.at is None or began is None else max(0.0, event.at - began)
        return Seen(
            dispatches=dispatches,
            of_parent=of_parent,
            running=running - lost,
            same=same,
            tokens=tokens,
            cost_usd=cost,
            seconds=seconds,
        )

    def _add(self, database: sqlite3.Connection, event: Event) -> None:
        now = event.at if event.at is not None else time.time()
        self._touch(database, event.tree, now)
        known = database.execute(
            "select parent, ended from dispatches where tree = ? and id = ?", (event.tree, event.id)
        ).fetchone()
        parent, begins = (event.parent, True) if known is None else (known[0], known[1] is not None)
        database.execute(
            "insert or replace into dispatches values (?, ?, ?, ?, null)",
            (event.tree, event.id, parent, now),
        )
        if known is None:
            database.execute(
                "update trees set dispatches = dispatches + 1 where id = ?", (event.tree,)
            )
            self._count(database, event.tree, _hash("parent", parent), 1)
            self._count(database, event.tree, task_key(event), 1)
        lost = database.execute(
            f"update dispatches set ended = began where {_OPEN_BEFORE}",  # noqa: S608
            (event.tree, parent, now - _LOST),
        ).rowcount
        self._count(database, event.tree, _hash("running", parent), begins - lost)

    def _count(self, database: sqlite3.Connection, tree: str, key: bytes, more: int) -> None:
        database.execute(
            "insert into counts values (?, ?, ?)"
            " on conflict (tree, key) do update set number = number + excluded.number",
            (tree, key, more),
        )

    def _touch(self, database: sqlite3.Connection, tree: str, now: float) -> None:
        database.execute(
            "insert into trees (id, began, touched) values (?, ?, ?)"
            " on conflict (id) do update set touched = excluded.touched",
            (tree, now, now),
        )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            database = self._connection()
            database.execute("begin immediate")
            try:
                yield database
            except BaseException:
                database.execute("rollback")
                raise
            database.execute("commit")

    def _connection(self) -> sqlite3.Connection:
        # A connection does not survive a fork.
        if self._file is not None and self._process != os.getpid():
            self._process = os.getpid()
            self._database = self._opened()
        return self._database

    def _opened(self) -> sqlite3.Connection:
        try:
            database = sqlite3.connect(
                self._file or ":memory:",
                timeout=_WAIT,
                isolation_level=None,
                check_same_thread=False,
            )
            database.execute("pragma journal_mode = wal")
            # What is lost when the machine stops is one decision, not the file.
            database.execute("pragma synchronous = normal")
            version = database.execute("pragma user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise InputError(
                    Problem(
                        file=self._file,
                        message=f"has version {version}; this Baton reads version {_VERSION}: name "
                        "another file, or delete this one, which forgets what requests have had",
                    )
                )
            database.executescript(_SCHEMA)
            database.execute(f"pragma user_version = {_VERSION}")
            old = (time.time() - _FORGOTTEN,)
            for table in ("dispatches", "counts"):
                forgotten = "tree in (select id from trees where touched < ?)"
                database.execute(f"delete from {table} where {forgotten}", old)  # noqa: S608
            database.execute("delete from trees where touched < ?", old)
        except sqlite3.Error as error:
            message = f"is not a file with the state of guards: {error}"
            raise InputError(Problem(file=self._file, message=message)) from None
        return database


def task_key(event: Event) -> bytes:
    """Return what two dispatches have in common that give the same agent the same task.

    Case and spaces do not matter; what is another task in other words, only a model could tell.
    """
    words = " ".join((event.prompt or "").casefold().split())
    return _hash("task", event.sender or "", event.to, words)


def _hash(*texts: str) -> bytes:
    text = "\0".join(texts)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
