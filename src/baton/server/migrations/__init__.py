"""Changes of the tables, for stores that an earlier version made.

A new store is created from :mod:`baton.server.schema`. An existing store is upgraded, revision by
revision, when a server opens it. A change of the schema is a new file in ``versions/`` with
``revision`` counted up, and :data:`HEAD` beside it.
"""

from __future__ import annotations

from sqlalchemy import Connection, MetaData, inspect, text

from baton.model import InputError

HEAD = "0010"
"""The revision of the tables of :mod:`baton.server.schema`."""


def bring_up_to_date(connection: Connection, tables: MetaData, part: str) -> None:
    """Create the tables of a part of the store (``index``, ``inbox``), or upgrade them.

    Raises:
        InputError: a later version of Baton made them.
    """
    stamp = f"{part}_revision"
    if not inspect(connection).has_table(stamp):
        tables.create_all(connection)
        connection.execute(text(f"CREATE TABLE {stamp} (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text(f"INSERT INTO {stamp} VALUES ('{HEAD}')"))  # noqa: S608
        return
    there = connection.execute(text(f"SELECT version_num FROM {stamp}")).scalar()  # noqa: S608
    if there == HEAD:
        return
    if there is not None and there > HEAD:
        raise InputError(f"the store has revision {there}, this version of Baton knows {HEAD}")
    _upgrade(connection, part)


def _upgrade(connection: Connection, part: str) -> None:
    from alembic import (
        command,
    )  # takes as long as everything else at the start, and is seldom needed
    from alembic.config import Config

    config = Config(attributes={"connection": connection, "part": part})
    config.set_main_option("script_location", "baton.server:migrations")
    command.upgrade(config, "head")
