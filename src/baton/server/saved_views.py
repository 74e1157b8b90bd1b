"""Saved views: named filters of a page, for everyone who can read the project."""

from __future__ import annotations

import time
from typing import NamedTuple

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from baton.model import InputError

from .access import Caller
from .schema import saved_view
from .store import Store

_NAME = 60
"""Characters of a name."""
_MOST = 200
"""Views of a page."""


class SavedView(NamedTuple):
    """A view: ``query`` is that of the address, without the project."""

    id: int
    name: str
    query: str
    by: str
    at: float


def views_of(store: Store, project: int, page: str) -> list[SavedView]:
    """Return the views of a page, by name."""
    table = saved_view.c
    query = select(table.id, table.name, table.query, table.by, table.at)
    query = query.where(table.project == project, table.page == page).order_by(table.name)
    with store.read() as connection:
        return [SavedView(*row) for row in connection.execute(query)]


def save_view(
    store: Store, caller: Caller, page: str, name: str, query: str, *, replace: bool = False
) -> None:
    """Save a view.

    Raises:
        InputError: the name is empty or too long; there is one of this name, and it is not to be
            replaced; there are too many.
    """
    name = name.strip()
    if not name or len(name) > _NAME:
        raise InputError(f"the name of a view has 1 to {_NAME} characters")
    table = saved_view.c
    row = {"query": query, "by": caller.name, "at": time.time()}
    same = (table.project == caller.project) & (table.page == page) & (table.name == name)
    with store.write() as connection:
        if replace and connection.execute(update(saved_view).where(same).values(row)).rowcount:
            return
        of_page = select(table.id).where(table.project == caller.project, table.page == page)
        if len(connection.execute(of_page).all()) >= _MOST:
            raise InputError(f"there are {_MOST} views of this page: delete one first")
        row |= {"project": caller.project, "page": page, "name": name}
        try:
            connection.execute(insert(saved_view).values(row))
        except IntegrityError:
            raise InputError(
                f"a view `{name}` already exists: delete it first, or choose another name"
            ) from None


def delete_view(store: Store, project: int, id_: int) -> None:
    """Delete a view; if it no longer exists, nothing happens."""
    table = saved_view.c
    with store.write() as connection:
        connection.execute(delete(saved_view).where(table.project == project, table.id == id_))
