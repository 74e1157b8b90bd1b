"""Manages requested rescores: those of the API, which a worker runs, and of the command line.

A store runs one rescore at a time. An interrupted one continues where it stopped: the server
restarts it itself, the command line when the command is repeated.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, TextClause, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from baton.formats.own_files import lock_file
from baton.model import InputError
from baton.session.server_rows import Rescore

from .database import EVERY_PROJECT, available
from .judging import WAITING
from .rescoring import Counts, RescoreRequest, run_rescore
from .schema import judging, rescore
from .separate_process import RequestedWork, SeparateProcess
from .settings import Settings
from .store import Store, open_store

LOG = logging.getLogger("baton.server")
_ATTEMPTS = 3
"""Maximum number of starts without progress; then the rescore has failed."""
_WRONG = 2
"""The exit code for errors that a retry cannot solve."""
_NICE = 10
"""The niceness of rescores: receiving, reading and answering get the processor first.

At 10, a process gets a tenth of what a normal one gets on a busy processor; at 15, a thirtieth, and
then a rescore by Ray takes minutes to start.
"""


def ask(
    store: Store, project: int, by: str | None, request: RescoreRequest, settings: Settings
) -> Rescore:
    """Store a request for a rescore; ``by`` is ``None`` if the caller runs it itself.

    Raises:
        InputError: there is no such rule, or the filter is wrong.
    """
    names = {number: name for name, number in store.projects().items()}
    rule = request.checked(settings, names[project])
    row = {
        "project": project,
        "created": time.time(),
        "by": by,
        "request": msgspec.json.encode(request).decode(),
        "made_by": rule.made_by,
        "state": "waiting",
        "attempts": 0,
        "counts": msgspec.json.encode(Counts()).decode(),
    }
    with store.write() as connection:
        number = connection.execute(insert(rescore).values(row).returning(rescore.c.id))
        made = number.scalar_one()
    return rescore_of(store, project, made)


def read_request(body: bytes) -> RescoreRequest:
    """Read a request; raises InputError if it is invalid."""
    try:
        return msgspec.json.decode(body, type=RescoreRequest)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InputError(f"not a request for a rescore: {error}") from None


def rescore_of(store: Store, project: int, number: int) -> Rescore:
    """Return a rescore; raises KeyError if there is none of this number."""
    for one in rescores_of(store, project, number=number):
        return one
    raise KeyError(number)


def rescores_of(
    store: Store, project: int, limit: int = 200, number: int | None = None
) -> list[Rescore]:
    """Return rescores, the latest first, with the number of questions that wait for a judge."""
    query = select(rescore).where(rescore.c.project == project)
    if number is not None:
        query = query.where(rescore.c.id == number)
    waits = select(judging.c.rescore, func.count()).where(
        judging.c.project == project,
        judging.c.state.in_(WAITING),
        judging.c.rescore.is_not(None),
    )
    with store.read() as connection:
        rows = connection.execute(query.order_by(rescore.c.id.desc()).limit(limit)).mappings()
        listed = [dict(row) for row in rows]
        waiting = {
            int(each): int(count)
            for each, count in connection.execute(waits.group_by(judging.c.rescore))
        }
    return [_shown(row, waiting.get(row["id"], 0)) for row in listed]


def _shown(row: Mapping[str, Any], waiting: int) -> Rescore:
    request = msgspec.json.decode(row["request"], type=RescoreRequest)
    counts = msgspec.json.decode(row["counts"], type=Counts)
    return Rescore(
        id=row["id"],
        created=datetime.fromtimestamp(row["created"], UTC),
        by=row["by"],
        state=row["state"],
        error=row["error"],
        ended=None if row["ended"] is None else datetime.fromtimestamp(row["ended"], UTC),
        waiting=waiting,
        **msgspec.structs.asdict(request),
        **msgspec.structs.asdict(counts),
    )


@contextmanager
def alone(store: Store, settings: Settings) -> Iterator[bool]:
    """Become the only process that rescores in a store, if possible; return whether it worked.

    Unfinished rescores are marked as stopped, because their process was killed.
    """
    with ExitStack() as opened:
        if store.is_postgresql:
            lock = text("SELECT pg_try_advisory_lock(hashtext('baton rescore'))")
            with available():
                connection = opened.enter_context(store.index.connect())
                connection.execution_options(isolation_level="AUTOCOMMIT")
                is_alone = bool(connection.execute(lock).scalar())
            # The lock belongs to the connection, and would go back into the pool with it.
            opened.callback(connection.invalidate)
            unlock = text("SELECT pg_advisory_unlock(hashtext('baton rescore'))")
            opened.callback(_tried, connection, unlock)
        else:
            file = opened.enter_context((Path(settings.folder) / "rescore.lock").open("ab"))
            is_alone = lock_file(file)
        if is_alone:
            with store.write() as connection_:
                stopped = update(rescore).where(rescore.c.state == "running")
                connection_.execute(
                    stopped.values(state="stopped"), execution_options=EVERY_PROJECT
                )
        yield is_alone


def _tried(connection: Connection, statement: TextClause) -> None:
    """Execute a statement; a database that is gone has forgotten the lock."""
    with suppress(DBAPIError):
        connection.execute(statement)


def projects_of(
    store: Store, settings: Settings, request: RescoreRequest, project: str | None
) -> list[str]:
    """Return the named project, or all projects of the rule.

    Raises:
        InputError: there is no such rule or project, or the filter is wrong.
    """
    if project is not None:
        store.project(project)
        request.checked(settings, project)
        return [project]
    rule = settings.live_rules.named(request.rule)
    own = None if rule is None else rule.spec.project
    names = [own] if own is not None else list(store.projects())
    for name in names:
        store.project(name)
        request.checked(settings, name)
    return names


def stand_back() -> None:
    """Lower the priority of this process from now on."""
    os.nice(_NICE)


def rescore_here(
    store: Store,
    settings: Settings,
    project: int,
    request: RescoreRequest,
    backend: Mapping[str, Any],
    tell: Callable[[Counts], None],
) -> Rescore:
    """Rescore now, in this process; an identical request that was stopped continues.

    Raises:
        InputError: there is no such rule, the filter is wrong, or another rescore is running.
        Unavailable: the store is not available for a long time; call this again to continue.
    """
    with alone(store, settings) as is_alone:
        if not is_alone:
            raise InputError("another rescore of this store is running: try again later")
        same = select(rescore.c.id).where(
            rescore.c.project == project,
            rescore.c.by.is_(None),
            rescore.c.request == msgspec.json.encode(request).decode(),
            rescore.c.state.in_(("waiting", "stopped")),
        )
        with store.read() as connection:
            number = connection.execute(same.order_by(rescore.c.id.desc()).limit(1)).scalar()
        if number is None:
            number = ask(store, project, None, request, settings).id
        _set(store, number, state="running")
        try:
            run_rescore(store, settings, number, backend, tell)
        except BaseException:
            _set(store, number, state="stopped")
            raise
    return rescore_of(store, project, number)


def _set(store: Store, number: int, **values: Any) -> None:
    change = update(rescore).where(rescore.c.id == number).values(**values)
    with store.write() as connection:
        connection.execute(change, execution_options=EVERY_PROJECT)


class _Task(NamedTuple):
    """The input of the process of a rescore."""

    settings: Settings
    number: int


class _Running(NamedTuple):
    """A rescore in its process, and the lock to release at the end."""

    number: int
    process: SeparateProcess
    holding: ExitStack


class Rescores(RequestedWork[_Running]):
    """Runs the API's requests."""

    def _begin(self, now: float) -> _Running | None:
        waiting = select(rescore.c.id, rescore.c.attempts).where(
            rescore.c.by.is_not(None), rescore.c.state.in_(("waiting", "running", "stopped"))
        )
        with self._store.read() as connection:
            row = connection.execute(
                waiting.order_by(rescore.c.id).limit(1), execution_options=EVERY_PROJECT
            ).one_or_none()
        if row is None:
            return None
        with ExitStack() as holding:
            if not holding.enter_context(alone(self._store, self._settings)):
                return None
            if row.attempts >= _ATTEMPTS:
                message = (
                    f"it crashed {_ATTEMPTS} times at the same place, maybe due to lack of memory"
                )
                _set(self._store, row.id, state="failed", error=message, ended=now)
                return None
            _set(self._store, row.id, state="running", attempts=row.attempts + 1)
            process = SeparateProcess(
                _rescore, lambda _: _Task(self._settings, row.id), "the rescore"
            )
            return _Running(row.id, process, holding.pop_all())

    def _end(self, one: _Running, answer: dict[str, Any], now: float) -> None:
        error = answer.get("error")
        with one.holding:
            if answer.get("exit_code") == _WRONG:
                _set(self._store, one.number, state="failed", error=error, ended=now)
            elif error is not None:  # it will be tried again
                LOG.warning("rescore %d: %s", one.number, error)

    def _put_back(self, one: _Running) -> None:
        begun = update(rescore).where(rescore.c.id == one.number, rescore.c.state == "running")
        with one.holding, self._store.write() as connection:
            waits = begun.values(state="waiting", attempts=0)
            connection.execute(waits, execution_options=EVERY_PROJECT)


def _rescore(task: _Task) -> dict[str, Any]:
    """Do a rescore; this runs in its own process."""
    stand_back()
    store = open_store(task.settings.store)
    try:
        run_rescore(store, task.settings, task.number, task.settings.rescore_backend)
    finally:
        store.close()
    return {}
