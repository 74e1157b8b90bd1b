"""What a person does with the store of a server, which may run meanwhile.

API keys, reading again what could not be read, and applying a rule to stored conversations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from baton.model import InputError, Problem
from baton.session.server_rows import Rescore

from . import access, conversations
from .access import Key
from .inbox import Inbox
from .settings import Settings
from .store import Store, open_store

if TYPE_CHECKING:
    from .rescoring import Counts, RescoreRequest


@contextmanager
def opened(settings: Settings, *, new: bool = False) -> Iterator[Store]:
    """Open the existing store of a server, or create a ``new`` one; it is closed at the end.

    Raises:
        InputError: there is no store.
        Unavailable: the database is not available now.
    """
    where = settings.store
    if not new and isinstance(where, Path) and not (where / "inbox.db").exists():
        raise InputError(Problem(path="--folder", message=f"there is no store in {where}"))
    store = open_store(where)
    try:
        yield store
    finally:
        store.close()


def create_key(settings: Settings, name: str, rights: Iterable[str], project: str) -> str:
    """Make a key of a project, which is created if it does not exist; return its text.

    The text is not stored and cannot be shown again.

    Raises:
        InputError: there is no such right, or the project has a valid key of this name.
        Unavailable: the database is not available now.
    """
    with opened(settings, new=True) as store:
        store.project(project, create=True)
        return access.create_key(store, project, name, rights)


def list_keys(settings: Settings, project: str | None = None) -> list[Key]:
    """Return the keys of a project, or of all projects, including revoked ones.

    Raises:
        InputError: there is no store, or no such project.
        Unavailable: the database is not available now.
    """
    with opened(settings) as store:
        return access.list_keys(store, project)


def revoke_key(settings: Settings, name: str, project: str) -> None:
    """Revoke a key permanently. A running server refuses it within a few seconds.

    Raises:
        InputError: there is no store, or the project has no valid key of this name.
        Unavailable: the database is not available now.
    """
    with opened(settings) as store:
        access.revoke_key(store, project, name)


class Reread(NamedTuple):
    """How many bodies of the inbox and how many traces will be read again."""

    bodies: int
    traces: int


def reread(settings: Settings, project: str | None = None, bodies: Sequence[int] = ()) -> Reread:
    """Have what could not be read be read again, such as after an update of Baton.

    Args:
        settings: the settings of the server.
        project: only what belongs to this project.
        bodies: only these bodies of the inbox, by their numbers, and no traces.

    Raises:
        InputError: there is no store, or no such project.
        Unavailable: the database is not available now.
    """
    with opened(settings) as store:
        number = None if project is None else store.project(project)
        found, traces = Inbox(store).reread(number, bodies or None), 0
        if not bodies:
            with store.write() as connection:
                traces = conversations.reread(connection, time.time(), number)
    return Reread(found, traces)


def rescore(
    settings: Settings,
    request: RescoreRequest,
    *,
    project: str | None = None,
    backend: str | None = None,
    workers: int | None = None,
    tell: Callable[[Counts], None] = lambda _: None,
) -> Iterator[tuple[str, Rescore]]:
    """Apply a rule to stored conversations in this process; yield each project when it is done.

    A request that was interrupted continues when it is made again.

    Args:
        settings: the settings of the server, with the rule.
        request: the rule, and which conversations.
        project: only this project; by default every project of the rule.
        backend: ``local`` or ``ray``, instead of the one in the settings.
        workers: the number of processes or Ray workers.
        tell: called with the counts while the work goes on.

    Raises:
        InputError: there is no store, rule or project, the filter is wrong, or another rescore is
            running.
        Unavailable: the database is not available for a long time.
    """
    from .rescores import projects_of, rescore_here  # they load the evaluators

    spec = settings.rescore_backend
    if backend is not None and backend != spec["type"]:
        spec = {"type": backend, **({"workers": 1} if backend == "local" else {})}
    if workers is not None:
        spec = {**spec, "workers": workers}
    with opened(settings) as store:
        for name in projects_of(store, settings, request, project):
            yield name, rescore_here(store, settings, store.project(name), request, spec, tell)
