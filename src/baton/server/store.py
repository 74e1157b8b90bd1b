"""The store of the server: inbox, index and bodies, in SQLite files or in PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Delete,
    Engine,
    Insert,
    Select,
    Table,
    Update,
    create_engine,
    event,
    insert,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.elements import BinaryExpression, ClauseElement, ColumnClause
from sqlalchemy.sql.selectable import Alias

from baton.model import BatonError, InputError
from baton.plugins.origin import install, requirement

from . import bodies as segments
from .bodies import Bodies, FileBodies, PartitionBodies
from .schema import INBOX, INDEX, project

DEFAULT = "default"
"""The project of what names none."""
EVERY_PROJECT = {"every_project": True}
"""Execution options of a statement that is about all projects, such as taking work."""
_BUSY = 5.0
"""Seconds to wait for another writer of a SQLite file."""


class NoProject(BatonError):  # noqa: N818 - says what is wrong
    """A statement reads or changes rows without saying of which project."""


class Unavailable(BatonError):  # noqa: N818 - says what is wrong
    """The store cannot be read or written now: it is locked, full, or not there. Try again."""


class Store:
    """The three parts of a store.

    ``index`` and ``inbox`` are engines; with PostgreSQL they are one. A statement on a table with
    a project that does not name it is refused (``NoProject``), unless its execution options are
    ``EVERY_PROJECT``.
    """

    def __init__(self, index: Engine, inbox: Engine, bodies: Bodies) -> None:
        self.index = index
        self.inbox = inbox
        self.bodies = bodies
        self._reading = index.execution_options(reads=True)
        self._projects: dict[str, int] = {}

    @property
    def is_postgresql(self) -> bool:
        """Whether several workers may write at once."""
        return self.index.dialect.name == "postgresql"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read the index, all statements of one moment.

        Raises:
            Unavailable: the database is not there now.
        """
        with available(), self._reading.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Write to the index; committed at the end, or not at all.

        Raises:
            Unavailable: the database is locked, full or not there now.
        """
        with available(), self.index.begin() as connection:
            yield connection

    @contextmanager
    def write_inbox(self) -> Iterator[Connection]:
        """Write to the inbox; committed at the end, or not at all.

        Raises:
            Unavailable: the database is locked, full or not there now.
        """
        with available(), self.inbox.begin() as connection:
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
            except IntegrityError:  # another process made it meanwhile
                pass
            number = self._number(name)
        if number is None:
            raise InputError(f"there is no project `{name}`")
        self._projects[name] = number
        return number

    def projects(self) -> dict[str, int]:
        """Return the number of each project, by name."""
        with self.read() as connection:
            return dict(connection.execute(select(project.c.name, project.c.id)).tuples().all())

    def close(self) -> None:
        """Close all connections."""
        self.bodies.close()
        self.index.dispose()
        self.inbox.dispose()

    def _number(self, name: str) -> int | None:
        with self.read() as connection:
            query = select(project.c.id).where(project.c.name == name)
            return connection.execute(query).scalar()


@contextmanager
def available() -> Iterator[None]:
    """Turn what a database says when it is locked, full or gone into ``Unavailable``."""
    try:
        yield
    except IntegrityError:
        raise
    except DBAPIError as error:
        reason = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else "gone"
        raise Unavailable(f"the store is not available: {reason}") from error


def open_store(where: Path | str) -> Store:
    """Open a store, and make what of it is not there: a folder, or `postgresql://...`.

    Raises:
        InputError: the address is not one of PostgreSQL.
        Unavailable: the database is not there now.
    """
    if isinstance(where, str) and "://" in where:
        return _open_postgresql(where)
    folder = Path(where)
    folder.mkdir(parents=True, exist_ok=True)
    index, inbox = (_sqlite(folder / name) for name in ("index.db", "inbox.db"))
    with available():
        INDEX.create_all(index)
        INBOX.create_all(inbox)
    store = Store(index, inbox, FileBodies(folder / "segments"))
    store.project(DEFAULT, create=True)
    return store


def _open_postgresql(url: str) -> Store:
    scheme, _, rest = url.partition("://")
    if scheme not in ("postgresql", "postgres"):
        raise InputError(f"the store is a folder or postgresql://..., not {scheme}://")
    try:
        engine = create_engine(f"postgresql+psycopg://{rest}", pool_pre_ping=True, pool_size=4)
    except ModuleNotFoundError:
        raise InputError(f"PostgreSQL needs a library: {install(requirement('server'))}") from None
    _guard(engine)
    with available(), engine.begin() as connection:
        # Two processes that start together would make the same table twice.
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('baton schema'))"))
        INDEX.create_all(connection)
        INBOX.create_all(connection)
        for statement in segments.TABLES:
            connection.execute(text(statement))
    store = Store(engine, engine, PartitionBodies(engine))
    store.project(DEFAULT, create=True)
    return store


def _sqlite(file: Path) -> Engine:
    engine = create_engine(f"sqlite:///{file}", connect_args={"timeout": _BUSY})

    @event.listens_for(engine, "connect")
    def _(connection: Any, _: object) -> None:
        # The driver would begin a transaction only before the first change, after reads that it
        # is based on; SQLite would then refuse to write if another process wrote meanwhile.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        reads = connection.get_execution_options().get("reads", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    _guard(engine)
    return engine


class _Use(NamedTuple):
    """A table in a statement, maybe under another name."""

    name: str
    table: Table


def _guard(engine: Engine) -> None:
    """Refuse statements that do not name the project of what they read or change."""

    @event.listens_for(engine, "before_execute")
    def _(
        connection: Connection, statement: object, _: object, __: object, options: dict[str, Any]
    ) -> None:
        every = options.get("every_project") or connection.get_execution_options().get(
            "every_project"
        )
        if not every and isinstance(statement, Select | Update | Delete | Insert):
            refuse_without_project(statement)


def refuse_without_project(statement: ClauseElement) -> None:
    """Raise ``NoProject`` if a table of a statement has a project that the statement leaves open.

    A project is named by ``table.c.project == NUMBER``, or ``==`` the project of another table in
    the statement. An insert names it with its values, as the column may not be empty.
    """
    if isinstance(statement, Insert):
        if statement.select is not None:
            refuse_without_project(statement.select)
        return
    used: dict[str, Table] = {}
    named: set[str] = set()
    for element in visitors.iterate(statement):
        if isinstance(element, Alias) and isinstance(element.element, Table):
            used[element.name] = element.element
        elif isinstance(element, Table):
            used.setdefault(element.name, element)
        elif isinstance(element, BinaryExpression) and element.operator is operators.eq:
            for side in (element.left, element.right):
                if isinstance(side, ColumnClause) and side.name == "project":
                    named.add(getattr(side.table, "name", ""))
    for name, table in used.items():
        if "project" in table.c and table.name != "project" and name not in named:
            raise NoProject(f"a statement about `{name}` does not name its project")
