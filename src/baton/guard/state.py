"""The state of trees: counts and usage of the dispatches of one request.

It is in memory, in an SQLite file that processes share and that survives a restart, or on a server
(``server_state``). Texts are not stored: only a hash of each task.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from baton.formats.own_files import make_folder
from baton.model import InputError, Problem

from .decide_event import Decision, Event, Seen, decide, failed_decision
from .policy import Policy

# The version of these tables. A file with another one is refused, not converted: it only has
# counters, which may as well start again.
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
"""Totals are stored, since counting 20,000 dispatches for each decision takes minutes. A key of
``counts`` is the hash of a parent (its dispatches, and those without an answer) or of a task."""
_FORGOTTEN = 7 * 86_400
"""Seconds after which an inactive tree is deleted: no request takes a week."""
_LOST = 3_600
"""Seconds after which a dispatch without an answer no longer counts as running: its process is
likely gone, and would block others for ever.
"""
_OPEN_BEFORE = "tree = ? and parent = ? and ended is null and began <= ?"
_TRIES = 100
"""The most attempts: each one fails only if others have reached another limit meanwhile, and rules
have few limits.
"""
_WAIT = 5.0
"""Seconds to wait for another process's write."""
_LIMITS = {
    "max_dispatches": "dispatches",
    "max_per_parent": "of_parent",
    "max_fan_out": "running",
    "max_same_task": "same",
    "max_tokens": "tokens",
    "max_cost_usd": "cost_usd",
    "max_seconds": "seconds",
}
"""The rules' limits on a tree, and the fields of ``Seen`` that they are compared with."""
_TOLD: tuple[Literal["tokens", "cost_usd", "seconds"], ...] = ("tokens", "cost_usd", "seconds")
_OF_TOOLS = ("max_tokens", "max_cost_usd", "max_seconds")
"""The limits that also apply to tools."""
_NOTHING = Seen(tokens=0, cost_usd=0.0, seconds=0.0)
"""The counts for most decisions: a tree that is below all limits."""
_Id = Annotated[str, msgspec.Meta(max_length=1000)]


class Spent(NamedTuple):
    """A tree's counts so far: dispatches, and tokens, US dollars and seconds if reported."""

    dispatches: int
    tokens: int | None
    cost_usd: float | None
    seconds: float | None


class Dispatched(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dispatch for counting: its tree, its id, the run that makes it, a hash of its task."""

    tree: _Id
    id: _Id = ""
    parent: _Id = ""
    task: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{32})?$")] = ""


class Below(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The figures that a tree must be below for a decision to be still valid.

    ``reported`` are figures that must have been reported.
    """

    dispatches: float | None = None
    of_parent: float | None = None
    running: float | None = None
    same: float | None = None
    tokens: float | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    reported: tuple[Literal["tokens", "cost_usd", "seconds"], ...] = ()

    def holds(self, seen: Seen) -> bool:
        """Tell whether a tree is below all figures; unreported ones count as 0."""
        if any(getattr(seen, name) is None for name in self.reported):
            return False
        most = ((getattr(self, name), getattr(seen, name)) for name in _LIMITS.values())
        return all(limit is None or (had or 0) < limit for limit, had in most)


class StateError(Exception):
    """The state of trees on a server could not be read or written."""


FAILURES = (sqlite3.Error, StateError)
"""What the methods of a state raise if it cannot be read or written."""


class State(ABC):
    """The interface of the state of trees, wherever it is stored.

    Every method but :meth:`decide` raises one of ``FAILURES``.
    """

    is_remote = False
    """Whether it is on another machine, so that each request takes a round trip."""

    def decide(self, policy: Policy, event: Event) -> Decision:
        """Decide an event; a dispatch that is allowed counts from now on.

        Rules are evaluated here, with the texts of the event, while others continue. A dispatch is
        counted only if none of the checked limits is reached by then; this is one transaction. If
        the state cannot be read or written, `on_error` of the policy applies.
        """
        sent = dispatched(event)
        try:
            if event.on != "dispatch":
                needed = _needs_figures(policy, event)
                return decide(policy, self.seen(sent, event.at) if needed else _NOTHING, event)
            # Mostly nothing is near its limit: decide as if the tree were empty, and count if it is
            # below all limits. This takes one request to the state.
            seen = _NOTHING
            for _ in range(_TRIES):
                decision = decide(policy, seen, event)
                if seen is _NOTHING and (decision.broken or decision.failed):
                    seen = self.seen(sent, event.at)
                    decision = decide(policy, seen, event)
                if not decision.allowed:
                    return decision
                now = self.count(sent, event.at, _still(policy, seen))
                if now is None:
                    return decision
                seen = now
            why = "other agents keep dispatching"
        except FAILURES as error:
            why = str(error)
        return failed_decision(policy, f"the state of the tree: {why}", event.output)

    def add(self, event: Event) -> None:
        """Count a dispatch that a person agreed to."""
        self.count(dispatched(event), event.at, Below())

    def spent(self, tree: str) -> Spent:
        """Return a tree's counts so far."""
        seen = self.seen(Dispatched(tree=tree), time.time())
        return Spent(seen.dispatches, seen.tokens, seen.cost_usd, seen.seconds)

    @abstractmethod
    def seen(self, sent: Dispatched, at: float | None) -> Seen:
        """Return a tree's counts before a dispatch; seconds only when ``at`` is known."""

    @abstractmethod
    def count(self, sent: Dispatched, at: float | None, below: Below) -> Seen | None:
        """Count a dispatch if its tree is ``below`` all limits; else return the tree's counts."""

    @abstractmethod
    def begin(self, tree: str, at: float | None = None) -> None:
        """Record that a tree starts now, or at a time, unless it has started already."""

    @abstractmethod
    def end(self, tree: str, dispatch: str) -> bool:
        """Record that a dispatch has its answer, or failed; returns whether it was counted."""

    @abstractmethod
    def knows(self, tree: str, dispatch: str) -> bool:
        """Tell whether a dispatch was counted."""

    @abstractmethod
    def rename(self, tree: str, dispatch: str, name: str) -> None:
        """Give a dispatch another id."""

    @abstractmethod
    def use(self, tree: str, *, tokens: int | None = None, cost_usd: float | None = None) -> None:
        """Add usage of a tree; ``None`` does not change a figure."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open."""


class Store(State):
    """The state of trees, in a file or in memory; threads and processes may share it."""

    def __init__(self, file: Path | str | None = None, *, most_bytes: int | None = None) -> None:
        """Open the file, or create it; in memory without one.

        Args:
            file: the file.
            most_bytes: its largest size; beyond it an ``sqlite3.Error`` is raised.

        Raises:
            InputError: the file is not a guard's.
        """
        self._most = most_bytes
        self._forgot = time.time()
        self._file = None if file is None else str(file)
        self._lock = threading.RLock()
        self._process = os.getpid()
        if file is not None:
            make_folder(Path(file).resolve().parent)
        self._database = self._opened()

    def begin(self, tree: str, at: float | None = None) -> None:
        """Record that a tree starts now, or at a time, unless it has started already."""
        with self._writing() as database:
            self._touch(database, tree, time.time() if at is None else at)

    def end(self, tree: str, dispatch: str) -> bool:
        """Record that a dispatch has its answer, or failed; returns whether it was counted."""
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
            row = self._connection().execute(
                "select 1 from dispatches where tree = ? and id = ?", (tree, dispatch)
            )
            return row.fetchone() is not None

    def rename(self, tree: str, dispatch: str, name: str) -> None:
        """Give a dispatch another id."""
        with self._writing() as database:
            database.execute(
                "update or ignore dispatches set id = ? where tree = ? and id = ?",
                (name, tree, dispatch),
            )

    def use(self, tree: str, *, tokens: int | None = None, cost_usd: float | None = None) -> None:
        """Add usage of a tree; ``None`` does not change a figure."""
        with self._writing() as database:
            self._touch(database, tree, time.time())
            for name, value in (("tokens", tokens), ("cost_usd", cost_usd)):
                if value is not None:
                    database.execute(
                        f"update trees set {name} = coalesce({name}, 0) + ? where id = ?",  # noqa: S608
                        (value, tree),
                    )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def count(self, sent: Dispatched, at: float | None, below: Below) -> Seen | None:
        """Count a dispatch if its tree is ``below`` all limits; else return the tree's counts."""
        with self._writing() as database:
            seen = self.seen(sent, at)
            if not below.holds(seen):
                return seen
            self._add(database, sent, at)
        return None

    def seen(self, sent: Dispatched, at: float | None) -> Seen:
        """Return a tree's counts before a dispatch; seconds only when ``at`` is known."""
        now = at if at is not None else time.time()
        with self._lock:
            database = self._connection()
            tree = database.execute(
                "select began, dispatches, tokens, cost_usd from trees where id = ?", (sent.tree,)
            ).fetchone()
            if tree is None:
                return Seen(seconds=None if at is None else 0.0)
            keys = (
                _hash("parent", sent.parent),
                bytes.fromhex(sent.task),
                _hash("running", sent.parent),
            )
            counts = dict(
                database.execute(
                    "select key, number from counts where tree = ? and key in (?, ?, ?)",
                    (sent.tree, *keys),
                ).fetchall()
            )
            of_parent, same, running = (counts.get(key, 0) for key in keys)
            lost = database.execute(
                f"select count(*) from dispatches where {_OPEN_BEFORE}",  # noqa: S608
                (sent.tree, sent.parent, now - _LOST),
            ).fetchone()[0]
        began, dispatches, tokens, cost = tree
        seconds = None if at is None or began is None else max(0.0, at - began)
        return Seen(
            dispatches=dispatches,
            of_parent=of_parent,
            running=running - lost,
            same=same,
            tokens=tokens,
            cost_usd=cost,
            seconds=seconds,
        )

    def _add(self, database: sqlite3.Connection, sent: Dispatched, at: float | None) -> None:
        now = at if at is not None else time.time()
        self._touch(database, sent.tree, now)
        known = database.execute(
            "select parent, ended from dispatches where tree = ? and id = ?", (sent.tree, sent.id)
        ).fetchone()
        parent, begins = (sent.parent, True) if known is None else (known[0], known[1] is not None)
        database.execute(
            "insert or replace into dispatches values (?, ?, ?, ?, null)",
            (sent.tree, sent.id, parent, now),
        )
        if known is None:
            database.execute(
                "update trees set dispatches = dispatches + 1 where id = ?", (sent.tree,)
            )
            self._count(database, sent.tree, _hash("parent", parent), 1)
            self._count(database, sent.tree, bytes.fromhex(sent.task), 1)
        lost = database.execute(
            f"update dispatches set ended = began where {_OPEN_BEFORE}",  # noqa: S608
            (sent.tree, parent, now - _LOST),
        ).rowcount
        self._count(database, sent.tree, _hash("running", parent), begins - lost)

    def _count(self, database: sqlite3.Connection, tree: str, key: bytes, more: int) -> None:
        database.execute(
            "insert into counts values (?, ?, ?)"
            " on conflict (tree, key) do update set number = number + excluded.number",
            (tree, key, more),
        )

    def _touch(self, database: sqlite3.Connection, tree: str, now: float) -> None:
        if time.time() - self._forgot > _LOST:
            self._forget(database)
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
                if database.in_transaction:  # a full file has been rolled back already
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
            # If the machine crashes, one decision is lost, not the file.
            database.execute("pragma synchronous = normal")
            version = database.execute("pragma user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise InputError(
                    Problem(
                        file=self._file,
                        message=f"has version {version}; this Baton reads version {_VERSION}: name "
                        "another file, or delete this one, which resets all counters",
                    )
                )
            database.executescript(_SCHEMA)
            database.execute(f"pragma user_version = {_VERSION}")
            if self._most is not None:
                bytes_of_page = database.execute("pragma page_size").fetchone()[0]
                database.execute(f"pragma max_page_count = {self._most // bytes_of_page}")
            self._forget(database)
        except sqlite3.Error as error:
            message = f"is not a file with the state of guards: {error}"
            raise InputError(Problem(file=self._file, message=message)) from None
        return database

    def _forget(self, database: sqlite3.Connection) -> None:
        """Delete trees that have been inactive for long; a program may run longer than that."""
        self._forgot = time.time()
        old = (self._forgot - _FORGOTTEN,)
        for table in ("dispatches", "counts"):
            forgotten = "tree in (select id from trees where touched < ?)"
            database.execute(f"delete from {table} where {forgotten}", old)  # noqa: S608
        database.execute("delete from trees where touched < ?", old)


def is_server(store: State | Path | str | None) -> bool:
    """Tell whether this is the address of a server, not a file name."""
    return isinstance(store, str) and store.startswith(("http://", "https://"))


def open_state(store: State | Path | str | None, project: str | None = None) -> State:
    """Return the state: as given, on a server (in a project), in a file, or a new one.

    Raises:
        InputError: the file is not a guard's, or the address is not valid.
    """
    if isinstance(store, State):
        return store
    if isinstance(store, str) and is_server(store):
        from .server_state import ServerStore  # HTTP takes 100 ms to import

        return ServerStore(store, project=project)
    return Store(store)


def counts(policy: Policy) -> bool:
    """Tell whether a policy has a rule that needs a tree's counts."""
    return any(rule.kind in _LIMITS for rule in policy.rules)


def dispatched(event: Event) -> Dispatched:
    """Return the counted parts of an event."""
    return Dispatched(tree=event.tree, id=event.id, parent=event.parent, task=task_key(event).hex())


def _still(policy: Policy, seen: Seen) -> Below:
    """Return how long a decision is valid: up to the next unreached limit of each figure.

    Until then the decision is the same, since rules only compare figures with limits. A limit that
    is already reached does not matter: `warn` at 100 dispatches is not checked again for each.
    """
    nearest: dict[str, float] = {}
    for rule in policy.rules:
        for limit, field in _LIMITS.items():
            most = getattr(rule, limit)
            if most is not None and (getattr(seen, field) or 0) < most:
                nearest[field] = min(most, nearest.get(field, most))
    limits = tuple(name for name in _TOLD if name in nearest) if seen is _NOTHING else ()
    return Below(**nearest, reported=limits)


def _needs_figures(policy: Policy, event: Event) -> bool:
    """Tell whether a rule about this event needs its tree's counts."""
    return event.on != "output" and any(
        getattr(rule, limit) is not None
        and (not rule.places.fields & {"tool", "on"} or rule.places.meets(event.place))
        for rule in policy.rules
        for limit in _OF_TOOLS
    )


def task_key(event: Event) -> bytes:
    """Return a key that is equal for dispatches that give the same agent the same task.

    Case and spaces do not matter; only a model could recognise the same task in other words.
    """
    words = " ".join((event.prompt or "").casefold().split())
    return _hash("task", event.sender or "", event.to, words)


def _hash(*texts: str) -> bytes:
    text = "\0".join(texts)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
