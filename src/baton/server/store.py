"""The store of the server: inbox, index and bodies, in SQLite files or in PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, insert, select, text
from sqlalchemy.exc import IntegrityError

from baton.model import InputError

from . import bodies as segments
from .bodies import Bodies, FileBodies, PartitionBodies
from .database import (
    READS,
    TooLong,
    Unavailable,
    assume_many_rows,
    available,
    break_off,
    lift_limit,
    limit_statements,
    open_postgresql,
    open_sqlite,
)
from .migrations import bring_up_to_date
from .schema import (
    INBOX,
    INDEX,
    conversation,
    dispatch,
    project,
    rollup,
    rollup_day,
    run,
    score,
)

DEFAULT = "default"
"""The project of requests that name none."""


class Store:
    """The three parts of a store.

    ``index`` and ``inbox`` are engines; with PostgreSQL they are the same. A statement that does
    not name the project of a table is refused (``NoProject``), unless its execution options are
    ``EVERY_PROJECT``.
    """

    def __init__(self, index: Engine, inbox: Engine, bodies: Bodies) -> None:
        self.index = index
        self.inbox = inbox
        self.bodies = bodies
        self._reading = index.execution_options(**READS)
        self._reading_inbox = inbox.execution_options(**READS)
        self._projects: dict[str, int] = {}
        self.patience: float | None = None
        """Maximum seconds of a query; ``None`` for background work."""
        self._asking: set[Any] = set()
        self._lock = threading.Lock()
        self._is_over = False
        self.keys_changed = 0
        """How often API keys were created or revoked with this store, for invalidating caches."""

    @property
    def is_postgresql(self) -> bool:
        """Whether several workers may write at once."""
        return self.index.dialect.name == "postgresql"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read the index in one transaction: all statements see the same state.

        Raises:
            Unavailable: the database is not available now.
            TooLong: it took longer than ``patience``, or ``break_off`` was called.
        """
        with available(), self._reading.begin() as connection, self._limited(connection):
            yield connection

    @contextmanager
    def _limited(self, connection: Connection) -> Iterator[None]:
        if self.patience is None:
            yield
            return
        driver = connection.connection.driver_connection
        with self._lock:
            if self._is_over:
                raise TooLong("the server is stopping")
            self._asking.add(driver)
        try:
            limit_statements(connection, self.patience, lambda: self._is_over)
            yield
        finally:
            with self._lock:
                self._asking.discard(driver)
            lift_limit(connection)

    def break_off(self) -> None:
        """Cancel queries that are running in other threads, and accept no more."""
        with self._lock:
            self._is_over = True
            asking = list(self._asking)
        for driver in asking:
            break_off(driver)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Write to the index in one transaction.

        Raises:
            Unavailable: the database is locked, full or not available now.
        """
        with available(), self.index.begin() as connection:
            yield connection

    @contextmanager
    def write_inbox(self) -> Iterator[Connection]:
        """Write to the inbox in one transaction.

        Raises:
            Unavailable: the database is locked, full or not available now.
        """
        with available(), self.inbox.begin() as connection:
            yield connection

    @contextmanager
    def read_inbox(self) -> Iterator[Connection]:
        """Read the inbox without blocking writers.

        Raises:
            Unavailable: the database is not available now.
        """
        with available(), self._reading_inbox.begin() as connection, self._limited(connection):
            yield connection

    def project(self, name: str, *, create: bool = False) -> int:
        """Return the number of a project.

        Raises:
            InputError: there is none of this name.
        """
        if name in self._projects:
            return self._projects[name]
        number = self._number(name)
        if number is None and create:
            try:
                with self.write() as connection:
                    row = {"name": name, "created": time.time()}
                    connection.execute(insert(project).values(row))
            except IntegrityError:  # another process created it meanwhile
                pass
            number = self._number(name)
        if number is None:
            raise InputError(f"there is no project `{name}`")
        self._projects[name] = number
        return number

    def projects(self) -> dict[str, int]:
        """Return the number of each project, by name."""
        with self.read() as connection:
            return {row.name: row.id for row in connection.execute(select(project))}

    def shrink(self) -> None:
        """Return the space of deleted rows to the disk; PostgreSQL does this itself."""
        if self.is_postgresql:
            return
        for engine in (self.index, self.inbox):
            with available(), engine.connect() as connection:
                driver: Any = connection.connection.driver_connection
                # It frees a page at each step, and `execute` takes one step only.
                driver.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close all connections."""
        self.bodies.close()
        self.index.dispose()
        self.inbox.dispose()

    def _number(self, name: str) -> int | None:
        with self.read() as connection:
            query = select(project.c.id).where(project.c.name == name)
            return connection.execute(query).scalar()


def open_store(where: Path | str) -> Store:
    """Open a store (a folder, or `postgresql://...`), and create its missing parts.

    Raises:
        InputError: the address is not one of PostgreSQL.
        Unavailable: the database is not available now.
    """
    if isinstance(where, str) and "://" in where:
        return _open_postgresql(where)
    folder = Path(where)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return _open_folder(folder)
    except Unavailable as error:
        raise Unavailable(f"{folder}: {error}") from error.__cause__


def _open_folder(folder: Path) -> Store:
    index, inbox = (open_sqlite(folder / name) for name in ("index.db", "inbox.db"))
    with available():
        with index.begin() as connection:
            bring_up_to_date(connection, INDEX, "index")
            # Only the tables of lists; tables with work are mostly empty.
            assume_many_rows(connection, (conversation, run, dispatch, score, rollup, rollup_day))
        index.dispose()  # connections read statistics when they are opened
        with inbox.begin() as connection:
            bring_up_to_date(connection, INBOX, "inbox")
    store = Store(index, inbox, FileBodies(folder / "segments"))
    store.project(DEFAULT, create=True)
    return store


OLDEST = 15
"""The first version of PostgreSQL that the store is tested with."""


def check_version(version: tuple[Any, ...] | None) -> None:
    """Raise InputError for a PostgreSQL that is too old."""
    if version is not None and version[0] < OLDEST:
        shown = ".".join(str(part) for part in version)
        raise InputError(f"the store needs PostgreSQL {OLDEST} or later; this is {shown}")


def _open_postgresql(url: str) -> Store:
    engine = open_postgresql(url)
    with available(), engine.begin() as connection:
        check_version(connection.dialect.server_version_info)
        # Two processes that start at the same time would create the same table twice.
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('baton schema'))"))
        bring_up_to_date(connection, INDEX, "index")
        bring_up_to_date(connection, INBOX, "inbox")
        for statement in segments.TABLES:
            connection.execute(text(statement))
    store = Store(engine, engine, PartitionBodies(engine))
    store.project(DEFAULT, create=True)
    return store
