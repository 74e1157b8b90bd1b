"""Databases of the server: opening them, the statements they refuse, and their errors."""

from __future__ import annotations

import logging
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Connection,
    Delete,
    Engine,
    Insert,
    Table,
    Update,
    create_engine,
    event,
    insert,
)
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import (
    BinaryExpression,
    BooleanClauseList,
    ClauseElement,
    ColumnClause,
    UnaryExpression,
)
from sqlalchemy.sql.selectable import Alias, SelectBase

from baton.model import BatonError, InputError
from baton.plugins.origin import install, requirement

LOG = logging.getLogger("baton.server")
EVERY_PROJECT = {"every_project": True}
"""Execution options of a statement about all projects, such as taking work."""
READS = {"reads": True}
"""Execution options of a connection that writes nothing: SQLite needs no lock for it."""
BUSY = 5.0
"""Seconds to wait for another writer of a SQLite file."""


class NoProject(BatonError):  # noqa: N818 - says what is wrong
    """A statement reads or changes rows without naming the project."""


class Unavailable(BatonError):  # noqa: N818 - says what is wrong
    """The store cannot be read or written now: it is locked, full, or unreachable. Try again."""


def sqlite_name(error: Unavailable) -> str:
    """Return SQLite's name for the reason, such as ``SQLITE_FULL``; empty if it is another one."""
    cause = error.__cause__
    return getattr(cause.orig if isinstance(cause, DBAPIError) else cause, "sqlite_errorname", "")


class TooLong(Unavailable):
    """A query was cancelled: it took too long, or the server is stopping."""


class Unfit(BatonError):  # noqa: N818 - says what is wrong
    """A value that the database cannot store or compare: it would be refused again."""


@contextmanager
def available() -> Iterator[None]:
    """Turn the errors of a database that is locked, full or gone into ``Unavailable``.

    Errors about a value become ``Unfit``: an integer of more than 64 bits, a zero character in
    PostgreSQL, a text that is too long for an index.
    """
    try:
        yield
    except IntegrityError:
        raise
    except OverflowError as error:
        if "SQLite" not in str(error):
            raise
        raise Unfit("an integer is too large for the store") from error
    except (DBAPIError, sqlite3.OperationalError) as error:
        message = str(error.orig if isinstance(error, DBAPIError) else error).strip()
        reason = message.splitlines()[0] if message else "no connection"
        if _was_broken_off(error):
            raise TooLong("the query took too long, and was cancelled") from error
        if isinstance(error, DataError) or _passes_limit(error):
            raise Unfit(f"the store cannot hold or compare a value: {reason}") from error
        raise Unavailable(f"the store is not available: {reason}") from error
    except Exception as error:
        # COPY bypasses SQLAlchemy, so it raises the driver's own errors.
        driver = sys.modules.get("psycopg")
        if driver is None or not isinstance(error, driver.Error):
            raise
        if isinstance(error, driver.DataError):
            raise Unfit(f"the store cannot hold a value: {error}") from error
        raise Unavailable(f"the store is not available: {error}") from error


def add_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows to a table: with COPY in PostgreSQL, which takes a third of the time of INSERT.

    SQLite gets them directly through its driver: SQLAlchemy needs longer to examine each value than
    SQLite to write it. Columns that a row leaves out get their default, or are empty.
    """
    if not rows:
        return
    # The database assigns auto-incremented numbers.
    columns = [column for column in table.c if column.autoincrement is not True]
    defaults = [(column.name, getattr(column.default, "arg", None)) for column in columns]
    values = _values(rows, defaults)
    if connection.dialect.name != "postgresql":
        keys = [column.name for column in columns]
        statement = insert(table).compile(dialect=connection.dialect, column_keys=keys)
        connection.exec_driver_sql(str(statement), values)
        return
    names = ", ".join(f'"{column.name}"' for column in columns)
    driver: Any = connection.connection.driver_connection
    with (
        driver.cursor() as cursor,
        cursor.copy(f'COPY "{table.name}" ({names}) FROM STDIN') as copy,
    ):
        for row in values:
            copy.write_row(row)


def _values(rows: Sequence[Mapping[str, Any]], defaults: Sequence[tuple[str, Any]]) -> list[Any]:
    """Return the values of rows in the order of the columns."""
    if len(defaults) > 1:
        try:
            return list(map(itemgetter(*(name for name, _ in defaults)), rows))
        except KeyError:  # a row leaves a column out
            pass
    return [tuple([row.get(name, default) for name, default in defaults]) for row in rows]


_LOG_EVERY = 1.0
"""Seconds between two log lines about an unavailable store, as it affects each request."""
_logged = 0.0
"""When the last such line was logged, on the monotonic clock."""


def without_reason(error: Unavailable) -> str:
    """Log why the store is not available, and return what a client may know about it.

    SQLite's messages are about its file: it is locked, or the disk is full. The driver of
    PostgreSQL names hosts, ports and users.
    """
    cause = error.__cause__
    if isinstance(cause.orig if isinstance(cause, DBAPIError) else cause, sqlite3.Error):
        return str(error)
    global _logged  # noqa: PLW0603 - one log for the process
    now = time.monotonic()
    if now - _logged > _LOG_EVERY:
        _logged = now
        LOG.warning("%s", error)
    return "the store is not available now"


def _was_broken_off(error: DBAPIError | sqlite3.OperationalError) -> bool:
    """Return whether a statement was ended by a time limit or cancelled from outside."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(cause, "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_INTERRUPT or getattr(cause, "sqlstate", None) == "57014"


_STEPS = 50_000
"""SQLite instructions between two checks of the clock: about a millisecond."""


def limit_statements(connection: Connection, seconds: float, is_over: Callable[[], bool]) -> None:
    """Cancel statements of a transaction that take longer, or when ``is_over`` returns true.

    The limit of SQLite counts from now on, that of PostgreSQL for each statement.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {int(seconds * 1000)}")
        return
    until = time.monotonic() + seconds
    driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(lambda: is_over() or time.monotonic() > until, _STEPS)


def lift_limit(connection: Connection) -> None:
    """Remove the limit for further transactions of a connection; PostgreSQL does so by itself."""
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(None, 0)


def break_off(driver: Any) -> None:
    """Cancel the statement that another thread is running on a connection, if there is one."""
    if isinstance(driver, sqlite3.Connection):
        driver.interrupt()
    else:
        with suppress(Exception):  # the server is gone, and the statement with it
            driver.cancel_safe(timeout=_CANCEL)


_CANCEL = 2.0
"""Seconds for PostgreSQL to receive a request to cancel a statement."""


def _passes_limit(error: DBAPIError | sqlite3.OperationalError) -> bool:
    """Return whether a limit of PostgreSQL is exceeded, such as the size of an index row.

    Its driver reports that as an operational error, like a lost connection.
    """
    state = getattr(error.orig, "sqlstate", None) if isinstance(error, DBAPIError) else None
    return state is not None and state.startswith("54")


def open_sqlite(file: Path) -> Engine:
    """Open a file, and create it if it does not exist; commits are durable when they return."""
    engine = create_engine(f"sqlite:///{file}", connect_args={"timeout": BUSY})

    @event.listens_for(engine, "connect")
    def _(connection: Any, _: object) -> None:
        # The driver would begin a transaction only before the first change, after the reads that it
        # is based on; SQLite would then refuse to write if another process wrote in between.
        connection.isolation_level = None
        # Set before the first table, so that free pages can be returned to the disk. Later it would
        # only wait for other writers, and write the same again.
        if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        reads = connection.get_execution_options().get("reads", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    guard(engine)
    return engine


# The assumed rows of a table. They only have to be in proportion: a project has many of them
# (400,000), a conversation few (10). Of other columns, a fiftieth of all rows has the same value.
_ROWS_OF_TABLE = 1_000_000
_LEFT = {"project": 400_000, "conversation": 10, "key": 1, "id": 1, "started": 10, "at": 10}
_LEFT_OF_OTHERS = 20_000


def assume_many_rows(connection: Connection, tables: Iterable[Table]) -> None:
    """Tell SQLite how many rows to expect for each value of an index, if it has no statistics.

    Without statistics it expects ten rows for a project, and would read all of them instead of
    looking one up by its number. `ANALYZE` could only count existing rows: at the start, none.
    """
    ask = connection.exec_driver_sql
    known: set[str] = set()  # indexes that a later version added are reported as well
    if ask("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1'").first() is None:
        ask("ANALYZE")
    else:
        known |= set(ask("SELECT idx FROM sqlite_stat1 WHERE idx IS NOT NULL").scalars())
    for table in tables:
        for _, index, unique, *_ in ask(f"PRAGMA index_list({table.name})").all():
            if index in known:
                continue
            left = [_ROWS_OF_TABLE]
            for _, _, column in ask(f"PRAGMA index_info({index})").all():
                left.append(min(left[-1], _LEFT.get(column, _LEFT_OF_OTHERS)))
            left[-1] = 1 if unique else left[-1]
            stated = " ".join(map(str, left))
            ask("INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", (table.name, index, stated))


def open_postgresql(url: str) -> Engine:
    """Open ``postgresql://...``; nothing is connected yet.

    Raises:
        InputError: the address is not one of PostgreSQL, or its library is not installed.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in ("postgresql", "postgres"):
        raise InputError(f"the store is a folder or postgresql://..., not {scheme}://")
    try:
        engine = create_engine(f"postgresql+psycopg://{rest}", pool_pre_ping=True, pool_size=4)
    except (ArgumentError, ValueError):  # their messages repeat the address, with its password
        raise InputError("write the database as postgresql://USER@HOST:PORT/NAME") from None
    except ModuleNotFoundError:
        raise InputError(f"PostgreSQL needs a library: {install(requirement('server'))}") from None
    guard(engine)
    return engine


def guard(engine: Engine) -> None:
    """Refuse statements that do not name the project of the rows they read or change."""

    @event.listens_for(engine, "before_execute")
    def _(
        connection: Connection, statement: object, _: object, __: object, options: dict[str, Any]
    ) -> None:
        every = options.get("every_project") or connection.get_execution_options().get(
            "every_project"
        )
        if not every and isinstance(statement, SelectBase | Update | Delete | Insert):
            refuse_without_project(statement)


def refuse_without_project(statement: ClauseElement) -> None:
    """Raise ``NoProject`` if a table of a statement has a project that the statement leaves open.

    A statement names a project with ``table.c.project == NUMBER``, or ``==`` the project of another
    table in the statement. An insert names it in its values, as the column must not be empty.
    """
    if isinstance(statement, Insert):
        if statement.select is not None:
            refuse_without_project(statement.select)
        return
    used: dict[str, Table] = {}
    named: set[str] = set()
    for element, binds in _parts(statement):
        if isinstance(element, Alias) and isinstance(element.element, Table):
            used[element.name] = element.element
        elif isinstance(element, Table):
            used.setdefault(element.name, element)
        elif binds and isinstance(element, BinaryExpression) and element.operator is operators.eq:
            sides = (element.left, element.right)
            columns = [each for each in sides if isinstance(each, ColumnClause)]
            tables = {getattr(each.table, "name", ""): each.name for each in columns}
            if len(tables) == len(columns):  # a column equals itself in every project
                named.update(name for name, column in tables.items() if column == "project")
    for name, table in used.items():
        if "project" in table.c and table.name != "project" and name not in named:
            raise NoProject(f"a statement about `{name}` does not name its project")


def _parts(statement: Any) -> Iterator[tuple[Any, bool]]:
    """Yield the parts of a statement, each with whether a condition there holds for every row.

    A condition within `OR`, or a negated one, does not. A nested statement has its own conditions.
    """
    left = [(statement, True)]
    while left:
        element, binds = left.pop()
        binds = binds or isinstance(element, SelectBase)
        yield element, binds
        either = isinstance(element, BooleanClauseList) and element.operator is operators.or_
        negated = isinstance(element, UnaryExpression) and element.operator is operators.inv
        holds = binds and not either and not negated
        left += [(child, holds) for child in element.get_children()]
