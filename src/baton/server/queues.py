"""The queues of a store: bodies to be read, traces to be scored, questions for judges, jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple, Protocol, TypeVar

from sqlalchemy import Table, func, select, update

from baton.runner.loop import run_anywhere

from .database import EVERY_PROJECT
from .inbox import Inbox
from .schema import delivery, inbox, job, judging, trace
from .store import Store

_P = TypeVar("_P")


class Queue(NamedTuple):
    """How many entries wait, and since when the first one has waited (seconds since the epoch)."""

    waiting: int
    oldest: float | None

    def age(self, now: float) -> float:
        """Return how many seconds the first one has waited."""
        return 0.0 if self.oldest is None else max(0.0, now - self.oldest)


class Queues(NamedTuple):
    """The queues of a store, over all projects. ``accepted`` counts all bodies ever stored."""

    accepted: int
    bodies: Queue
    traces: Queue
    judging: Queue
    jobs: Queue
    deliveries: Queue


def queues_of(store: Store, now: float) -> Queues:
    """Read the state of all queues."""
    waiting = Inbox(store).depth()
    queries = (
        select(func.count(), func.min(trace.c.due)).where(trace.c.changed, trace.c.due <= now),
        select(func.count(), func.min(judging.c.created)).where(judging.c.state != "done"),
        select(func.count(), func.min(job.c.created)).where(job.c.state == "waiting"),
        select(func.count(), func.min(delivery.c.due)).where(
            delivery.c.delivered.is_(None), delivery.c.due <= now
        ),
    )
    with store.read() as connection:
        traces, judges, jobs, deliveries = (
            Queue(*connection.execute(each, execution_options=EVERY_PROJECT).one())
            for each in queries
        )
    with store.read_inbox() as connection:
        newest = connection.execute(select(func.max(inbox.c.id)), execution_options=EVERY_PROJECT)
        accepted = newest.scalar() or 0
    return Queues(accepted, Queue(*waiting), traces, judges, jobs, deliveries)


class Taken(Protocol):
    """A piece of work that is reserved for a worker until `due`."""

    @property
    def id(self) -> int:
        """Its row."""

    @property
    def project(self) -> int:
        """Its project."""

    @property
    def due(self) -> float:
        """When others may take it (seconds since the epoch)."""


def change_taken(store: Store, table: Table, taken: Taken, **values: Any) -> bool:
    """Change the row of a piece of work; return whether that was still possible.

    It is not possible if the work was stopped in the meantime, or another worker took it after its
    time was up.
    """
    change = update(table).where(
        table.c.project == taken.project,
        table.c.id == taken.id,
        table.c.due == taken.due,
        table.c.state.in_(("waiting", "running")),
    )
    with store.write() as connection:
        return connection.execute(change.values(**values)).rowcount == 1


def deliver_all(parcels: Iterable[_P], deliver: Callable[[_P], Awaitable[bool]]) -> int:
    """Deliver messages at the same time, and return how many of them arrived.

    All of them end before the first error is raised, so that no result is lost.
    """

    async def every() -> list[bool | BaseException]:
        return await asyncio.gather(*map(deliver, parcels), return_exceptions=True)

    ended = run_anywhere(every())
    for result in ended:
        if isinstance(result, BaseException):
            raise result
    return sum(map(bool, ended))
