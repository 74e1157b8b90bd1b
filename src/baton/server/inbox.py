"""The inbox: received bodies, committed before the sender gets the confirmation."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from itertools import chain
from typing import Any, Literal, NamedTuple

import zstandard
from sqlalchemy import ColumnElement, Connection, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from baton import __version__

from .database import EVERY_PROJECT, Unavailable
from .schema import inbox
from .store import Store

_LEVEL = 2
"""The compression level of zstd. Level 1 takes a fifth more space for requests with many spans, and
saves a microsecond per span; levels above 2 take longer and gain little."""

Kind = Literal["traces", "logs", "recording"]


class Entry(NamedTuple):
    """A body to be put into the inbox; made by ``entry_of``."""

    project: int
    kind: Kind
    form: str
    name: str | None
    sha256: bytes
    received: float
    size: int
    packed: bytes


class Item(NamedTuple):
    """A body of the inbox, unpacked, to be read.

    ``form`` is ``protobuf``, ``json``, or the media type of a recording; ``name`` is the name of
    its file. ``attempts`` counts how often reading it failed.
    """

    id: int
    project: int
    kind: str
    form: str
    name: str | None
    body: bytes
    received: float
    attempts: int


class Waiting(NamedTuple):
    """A waiting body: ``begun`` counts processes that died while they read only this one."""

    id: int
    begun: int


class ProblemItem(NamedTuple):
    """An unreadable body: it stays in the inbox, with the reason."""

    id: int
    project: int
    kind: str
    form: str
    name: str | None
    size: int
    received: float
    attempts: int
    error: str
    reader: str


class Depth(NamedTuple):
    """How many bodies wait to be read, and when the oldest of them arrived."""

    waiting: int
    oldest: float | None


def entry_of(
    project: int,
    kind: Kind,
    form: str,
    body: bytes,
    *,
    name: str | None = None,
    received: float | None = None,
) -> Entry:
    """Make an entry of an unpacked body: its hash, and its compressed bytes."""
    return Entry(
        project=project,
        kind=kind,
        form=form,
        name=name,
        sha256=hashlib.sha256(body).digest(),
        received=time.time() if received is None else received,
        size=len(body),
        packed=_CODEC.pack(body),
    )


class _Codec(threading.local):
    """Compressors of this thread; they may not be shared."""

    def __init__(self) -> None:
        self.pack = zstandard.ZstdCompressor(level=_LEVEL).compress
        self.unpack = zstandard.ZstdDecompressor().decompress


_CODEC = _Codec()


class Inbox:
    """The inbox of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        insert = postgresql.insert if store.is_postgresql else sqlite.insert
        self._insert: Any = (
            insert(inbox).on_conflict_do_nothing().returning(inbox.c.project, inbox.c.sha256)
        )

    def put(self, entries: Sequence[Entry]) -> list[bool]:
        """Store bodies, committed on return. ``False`` means that a body was already stored.

        Raises:
            Unavailable: the database is locked, full or unreachable now; nothing was stored.
        """
        by_key: dict[tuple[int, bytes], Entry] = {}
        for entry in entries:
            by_key.setdefault((entry.project, entry.sha256), entry)
        rows = [
            {
                "project": entry.project,
                "sha256": entry.sha256,
                "received": entry.received,
                "kind": entry.kind,
                "form": entry.form,
                "name": entry.name,
                "size": entry.size,
                "body": entry.packed,
                "state": "new",
                "attempts": 0,
            }
            for entry in by_key.values()
        ]
        if not rows:
            return []
        with self._store.write_inbox() as connection:
            kept = {(row[0], bytes(row[1])) for row in connection.execute(self._insert, rows)}
        return [
            (entry.project, entry.sha256) in kept and by_key[(entry.project, entry.sha256)] is entry
            for entry in entries
        ]

    def take(self, connection: Connection, limit_bytes: int) -> list[Item]:
        """Return the oldest waiting bodies, as found by :meth:`waiting`."""
        return self.get(connection, [each.id for each in self.waiting(connection, limit_bytes)])

    def waiting(
        self,
        connection: Connection,
        limit_bytes: int,
        *,
        suspects: bool = True,
        mine: Collection[int] = (),
    ) -> list[Waiting]:
        """Find the oldest waiting bodies: about ``limit_bytes`` of them, at least one.

        ``suspects`` are bodies during which a process died: one is returned alone, or skipped.
        Those that are ``mine`` were begun by this process, which is still alive. With PostgreSQL
        bodies are locked until the transaction of ``connection`` ends, and those locked by others
        are skipped.
        """
        rows: list[Waiting] = []
        size, last = 0, 0
        # Bodies that another worker has begun are not locked either, as it is about to take them.
        which = () if suspects else ((inbox.c.begun == 0) | inbox.c.id.in_(mine),)
        page_size = min(_PAGE, limit_bytes)
        while size < limit_bytes:
            query = (
                select(inbox.c.id, inbox.c.size, inbox.c.begun)
                .where(inbox.c.state == "new", inbox.c.id > last, *which)
                .order_by(inbox.c.id)
                .limit(page_size)
                .with_for_update(skip_locked=True)
            )
            page = connection.execute(query, execution_options=EVERY_PROJECT).all()
            for last, bytes_, begun in page:
                if begun and last not in mine:
                    return rows or [Waiting(last, begun)]
                if not rows or size + bytes_ <= limit_bytes:
                    rows.append(Waiting(last, 0))
                size += bytes_
            if len(page) < page_size:
                break
        return rows

    def get(self, connection: Connection, ids: Sequence[int]) -> list[Item]:
        """Return those of the bodies that still wait and are not locked by another worker."""
        query = (
            select(
                inbox.c.id,
                inbox.c.project,
                inbox.c.kind,
                inbox.c.form,
                inbox.c.name,
                inbox.c.body,
                inbox.c.received,
                inbox.c.attempts,
            )
            .where(inbox.c.id.in_(ids), inbox.c.state == "new")
            .order_by(inbox.c.id)
            .with_for_update(skip_locked=True)
        )
        rows = connection.execute(query, execution_options=EVERY_PROJECT)
        return [Item(*row[:5], _CODEC.unpack(row[5]), *row[6:]) for row in rows]

    def begin(self, connection: Connection, id_: int) -> None:
        """Record that a body is read alone, until it is done."""
        change = update(inbox).where(inbox.c.id == id_).values(begun=inbox.c.begun + 1)
        connection.execute(change, execution_options=EVERY_PROJECT)

    def done(self, connection: Connection, ids: Iterable[int]) -> None:
        """Record that bodies were read."""
        read = {"state": "done", "begun": 0, "error": None, "reader": __version__}
        for some in _slices(ids):
            self._update(connection, inbox.c.id.in_(some), **read)

    def fail(self, connection: Connection, id_: int, error: str, reader: str = __version__) -> None:
        """Record that a body cannot be read, and why; it stays, for ``reread``."""
        self._update(
            connection,
            inbox.c.id == id_,
            state="failed",
            begun=0,
            attempts=inbox.c.attempts + 1,
            # PostgreSQL keeps no zero byte in a text.
            error=error.replace("\0", "\ufffd"),
            reader=reader,
        )

    def problems(self, project: int | None = None, *, limit: int = 1000) -> list[ProblemItem]:
        """List unreadable bodies, the newest first; of all projects if none is named."""
        query = (
            select(
                inbox.c.id,
                inbox.c.project,
                inbox.c.kind,
                inbox.c.form,
                inbox.c.name,
                inbox.c.size,
                inbox.c.received,
                inbox.c.attempts,
                inbox.c.error,
                inbox.c.reader,
            )
            .where(inbox.c.state == "failed", *_of(project))
            .order_by(inbox.c.id.desc())
            .limit(limit)
        )
        with self._store.read_inbox() as connection:
            rows = connection.execute(query, execution_options=EVERY_PROJECT).all()
        return [ProblemItem._make(row) for row in rows]

    def unreadable(self) -> int:
        """Return how many bodies of all projects could not be read."""
        query = select(func.count()).where(inbox.c.state == "failed")
        with self._store.read_inbox() as connection:
            count = connection.execute(query, execution_options=EVERY_PROJECT).scalar()
        return count or 0

    def reread(self, project: int | None = None, ids: Iterable[int] | None = None) -> int:
        """Have failed bodies read again, all or those with some ids; return how many."""
        slices: Iterable[list[int] | None] = [None] if ids is None else _slices(ids)
        count = 0
        with self._store.write_inbox() as connection:
            for some in slices:
                which = [] if some is None else [inbox.c.id.in_(some)]
                failed = inbox.c.state == "failed"
                count += self._update(connection, failed, *_of(project), *which, state="new")
        return count

    def prune(self, older_than: float, *, forget_before: float = 0.0) -> int:
        """Delete bodies that were read and arrived before ``older_than``; return how many.

        Their hashes stay until ``forget_before``, so that bodies that are sent again are
        recognised. Unreadable bodies stay.
        """
        read = inbox.c.state == "done"
        with self._store.write_inbox() as connection:
            old = (read, inbox.c.received < older_than, inbox.c.body.is_not(None))
            count = self._update(connection, *old, body=None)
            forgotten = delete(inbox).where(read, inbox.c.received < forget_before)
            connection.execute(forgotten, execution_options=EVERY_PROJECT)
        if not self._store.is_postgresql:
            # Pages that are free now are returned to the disk, some at a time.
            with self._store.write_inbox() as connection:
                # Each step of this statement frees one page; only a script takes all steps.
                driver: Any = connection.connection.driver_connection
                driver.executescript(f"PRAGMA incremental_vacuum({_FREE_PAGES})")
        return count

    def depth(self) -> Depth:
        """Return how many bodies wait to be read, and since when."""
        query = select(func.count(), func.min(inbox.c.id)).where(inbox.c.state == "new")
        oldest = select(inbox.c.received)
        with self._store.read_inbox() as connection:
            count, first = connection.execute(query, execution_options=EVERY_PROJECT).one()
            since = connection.execute(
                oldest.where(inbox.c.id == first), execution_options=EVERY_PROJECT
            ).scalar()
        return Depth(count, since)

    def _update(self, connection: Connection, *which: ColumnElement[bool], **values: Any) -> int:
        change = update(inbox).where(*which).values(values)
        return connection.execute(change, execution_options=EVERY_PROJECT).rowcount


_PAGE = 32
"""Rows that are examined, and locked, at a time."""
_IDS = 500
"""Ids in a statement; SQLite has a limit of variables."""
_FREE_PAGES = 10_000
"""Maximum pages of 4 kB that one call returns to the disk: 40 MB, a fraction of a second."""


def _slices(ids: Iterable[int]) -> Iterable[list[int]]:
    listed = list(ids)
    return (listed[at : at + _IDS] for at in range(0, len(listed), _IDS))


def _of(project: int | None) -> list[ColumnElement[bool]]:
    return [] if project is None else [inbox.c.project == project]


_GATHER = 0.002
"""Seconds that a transaction waits for requests in flight. A transaction takes about a millisecond
of a core, regardless of its content; with eight senders it then holds eight small requests instead
of four."""


class GroupCommit:
    """Puts entries of many requests into the inbox, in one transaction for all that wait.

    A commit waits for the disk; while it does, more requests arrive, and share the next one.
    """

    def __init__(
        self,
        inbox: Inbox,
        *,
        most_waiting: int = 1000,
        coming: Callable[[], int] = lambda: 0,
        gather: float = _GATHER,
    ) -> None:
        """Start the thread that writes. More than ``most_waiting`` entries are refused.

        ``coming`` returns how many requests are in flight, including those that wait for the disk.
        A transaction waits up to ``gather`` seconds for the others, because it costs more than
        adding a request to it.
        """
        self._inbox = inbox
        self._coming = coming
        self._gather = gather
        self._most_waiting = most_waiting
        self._waiting: list[tuple[list[Entry], Future[list[bool]]]] = []
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._write, name="baton inbox", daemon=True)
        self._thread.start()

    def put(self, entries: Sequence[Entry]) -> Future[list[bool]]:
        """Give entries to the next transaction; the result is that of ``Inbox.put``.

        Raises:
            Unavailable: too many wait already, or this was closed.
        """
        future: Future[list[bool]] = Future()
        with self._changed:
            if self._closed:
                raise Unavailable("the server is stopping")
            if len(self._waiting) >= self._most_waiting:
                raise Unavailable("too many requests wait for the disk")
            self._waiting.append((list(entries), future))
            if len(self._waiting) == 1 or len(self._waiting) >= self._full():
                self._changed.notify()
        return future

    @property
    def waiting(self) -> int:
        """How many requests wait for the next transaction."""
        return len(self._waiting)

    def close(self, timeout: float | None = None) -> None:
        """Commit waiting requests, and stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout)

    def _full(self) -> int:
        """Return how many requests the next transaction has when all have arrived."""
        return min(self._coming(), _GROUP)

    def _write(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                if not self._closed and len(self._waiting) < self._full():
                    self._changed.wait(self._gather)
                group, self._waiting = self._waiting[:_GROUP], self._waiting[_GROUP:]
            # A request that was cancelled while it waited is not written.
            group = [each for each in group if each[1].set_running_or_notify_cancel()]
            try:
                kept = self._inbox.put(list(chain.from_iterable(entries for entries, _ in group)))
            except Exception as error:  # noqa: BLE001 - raised again where it is waited for
                for _, future in group:
                    future.set_exception(error)
                continue
            at = 0
            for entries, future in group:
                future.set_result(kept[at : at + len(entries)])
                at += len(entries)


_GROUP = 64
"""Maximum requests in one transaction, so that the first does not wait for all later ones."""
