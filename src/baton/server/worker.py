"""The worker: turns the inbox into records, rows and scores, and runs other periodic tasks."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import Connection, delete, exists, select
from sqlalchemy.exc import (
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
)

from baton.model import InputError, Trace
from baton.runner.costs import fill_costs

from . import completeness, conversations, rows, span_chunks
from .bodies import Place, day_of
from .conversations import DEFAULT, Bounds, Component, Outcome, Recorded
from .database import EVERY_PROJECT, Unavailable, add_rows
from .fix_proofs import Proofs
from .inbox import Inbox, Item
from .issue_work import follow_cases
from .issues import index_issues
from .jobs import Jobs
from .rescores import Rescores
from .retention import retain
from .rows import Reading, Row, State, narrow, slices
from .schema import conversation, conversation_trace, inbox_read
from .settings import LimitSettings, Settings
from .store import DEFAULT as UNTAGGED
from .store import Store, open_store
from .uploads import UploadLimits, opened
from .worker_jobs import Live

LOG = logging.getLogger("baton.server")

_TAKE_BYTES = 8 << 20
"""Unpacked bytes of the inbox that are read together; they need five times as much memory."""
_FIRST_SINGLE = 10
"""Bodies that a new worker reads one by one, in case one of them crashed the worker before."""
_SETTLED = 5.0
"""Seconds after which a worker reads a body that another worker crashed with.

A worker may be killed for any reason, most often while it starts: then the body that it was reading
is not to blame. A worker that has lived this long is not killed repeatedly, and has read the other
waiting bodies. So only a body that kills each worker at the moment of reading is given up.
"""
_MOST_BEGUN = 4
"""A body is given up after it crashed this many workers, all but one older than `_SETTLED`."""
_ENDED = f"the worker crashed {_MOST_BEGUN} times while it read this, maybe due to lack of memory"
"""Also for conversations: the first worker read it with others, the next three read it alone."""
_TAKE_CONVERSATIONS, _TAKE_LOCKED = 400, 100
"""Conversations that are read together, because each commit waits for the disk. With PostgreSQL
fewer, because they are locked and other workers need some as well."""
_ENDING = 5.0
"""Seconds to wait for running judges and messages when the worker ends."""
_READ_SPANS = 10_000
"""Spans to read before writing: about a second, so that the worker stops quickly."""


Scorer = Callable[[int, Trace, Recorded | None, State], tuple[Sequence[Row], Sequence[str]]]
"""Scores a record of a project: returns rows, and the rules whose judges have to be asked.

Arguments: the project, the record, what its spans say (``None`` for an upload), and its state.
"""


def no_rules(
    project: int,  # noqa: ARG001 - a Scorer
    record: Trace,  # noqa: ARG001
    recorded: Recorded | None,  # noqa: ARG001
    state: State,  # noqa: ARG001
) -> tuple[Sequence[Row], Sequence[str]]:
    """Score nothing."""
    return (), ()


LIMITS = LimitSettings()


class _Uploaded(NamedTuple):
    item: Item
    records: list[Trace]
    error: str | None


class _Taken(NamedTuple):
    """Bodies that were read: chunks and records without rows yet, and the outcome."""

    kept: list[span_chunks.Kept]
    uploaded: list[_Uploaded]
    done: list[int]
    failed: list[span_chunks.Loss]


class Worker:
    """Reads the inbox of a store into spans, and complete conversations into records.

    With SQLite there is one worker; with PostgreSQL any number.
    """

    def __init__(
        self,
        store: Store,
        bounds: Bounds = DEFAULT,
        score: Scorer = no_rules,
        uploads: UploadLimits = LIMITS,
        tagged: Sequence[str] = (),
    ) -> None:
        self.store = store
        self._tagged = {name: store.project(name, create=True) for name in tagged}
        self._untagged = store.project(UNTAGGED)
        self.bounds = bounds
        self.score = score
        self._upload_limits = uploads
        self._inbox = Inbox(store)
        # Ids in `inbox_read` that are also done in the inbox; the next change deletes them.
        self._finished: list[int] = []
        self._is_clean = store.is_postgresql
        # After an error with an unknown cause, bodies and conversations are read one by one.
        self._single_bodies = _FIRST_SINGLE
        # Bodies that this worker started to read alone, and survived.
        self._begun: set[int] = set()
        self._since: float | None = None
        self._single_conversations = 0
        # Conversations that are recorded as being read, and that this worker survived.
        self._reading: list[Component] = []

    def take_in(self, now: float) -> int:
        """Read bodies of the inbox into spans, and uploads into records; return their number.

        Raises:
            Unavailable: the store is not available now; nothing is lost, and nothing was done.
        """
        if not self._is_clean:
            self._clean()
        if self._since is None:
            self._since = now
        is_settled = now - self._since >= _SETTLED
        alone = self._begin(suspects=is_settled) if self._single_bodies else None
        if self._single_bodies and alone is None:
            return 0
        items: list[Item] = []
        try:
            if self.store.is_postgresql:
                # They are locked until everything is written.
                with self.store.write() as connection:
                    items = self._take(connection, alone, suspects=is_settled)
                    taken = self._read_bodies(items)
                    self._write_taken(connection, taken, now)
                    self._finish(connection, taken)
            else:
                with self.store.read_inbox() as connection:
                    items = self._take(connection, alone, suspects=is_settled)
                if items:
                    self._take_in_sqlite(items, now)
        except Exception as error:
            if not items or is_passing(error):
                raise
            if len(items) > 1:
                self._single_bodies = len(items)
                return len(items)
            LOG.warning("body %d cannot be read: %s", items[0].id, span_chunks.crash(error))
            with self.store.write_inbox() as connection:
                self._inbox.fail(connection, items[0].id, span_chunks.crash(error))
        if not items and self._single_bodies:
            return 1  # the next body is read alone, or another worker has it
        self._single_bodies = max(0, self._single_bodies - len(items))
        self._begun.difference_update(item.id for item in items)
        return len(items)

    def _take(self, connection: Connection, alone: int | None, *, suspects: bool) -> list[Item]:
        """Return the bodies to read now; none if the next one has to be read alone."""
        if alone is not None:
            return self._inbox.get(connection, [alone])
        items = self._inbox.waiting(connection, _TAKE_BYTES, suspects=suspects, mine=self._begun)
        if items and items[0].begun:
            self._single_bodies = 1
            return []
        return self._inbox.get(connection, [each.id for each in items])

    def _begin(self, *, suspects: bool) -> int | None:
        """Record which body is read alone next, and give up those that crashed all workers.

        A crash, for example due to lack of memory, cannot be caught. Such a body would crash
        one process after the other.
        """
        while True:
            with self.store.write_inbox() as connection:
                items = self._inbox.waiting(connection, 1, suspects=suspects, mine=self._begun)
                if not items:
                    return None
                id_, begun = items[0]
                if id_ in self._begun:
                    return id_
                if begun < _MOST_BEGUN:
                    self._inbox.begin(connection, id_)
                    self._begun.add(id_)
                    return id_
                LOG.warning("body %d cannot be read: %s", id_, _ENDED)
                self._inbox.fail(connection, id_, _ENDED)

    def _take_in_sqlite(self, items: Sequence[Item], now: float) -> None:
        """Read bodies; the index also records which ones, as the inbox is another file."""
        taken = self._read_bodies(items)
        in_project = {item.id: item.project for item in items}
        self._is_clean = False
        with self.store.write() as connection:
            self._write_taken(connection, taken, now)
            # If the worker is killed from here on, these bodies are known to be read.
            for some in slices(self._finished):
                gone = delete(inbox_read).where(inbox_read.c.id.in_(some))
                connection.execute(gone, execution_options=EVERY_PROJECT)
            if taken.done:
                known = [{"id": id_, "project": in_project[id_]} for id_ in taken.done]
                add_rows(connection, inbox_read, known)
        with self.store.write_inbox() as connection:
            self._finish(connection, taken)
        self._finished = taken.done
        self._is_clean = True

    def _read_bodies(self, items: Sequence[Item]) -> _Taken:
        """Read bodies, and commit the chunks of their spans; rows name them afterwards."""
        batches = span_chunks.Batches(self._tagged, self._untagged)
        uploaded: list[_Uploaded] = []
        for item in items:
            if item.kind == "recording":
                self._read_upload(item, batches, uploaded)
            else:
                batches.add(item)
        failed = [*batches.failed]
        failed += [span_chunks.Loss(each.item, each.error) for each in uploaded if each.error]
        done = [item.id for item in batches.read]
        done += [each.item.id for each in uploaded if each.error is None]
        return _Taken(span_chunks.keep(self.store.bodies, batches), uploaded, done, failed)

    def _write_taken(self, connection: Connection, taken: _Taken, now: float) -> None:
        projects = {project for (project, _), _, _ in taken.kept}
        quiet = completeness.quiet_of(connection, projects, self.bounds)
        span_chunks.write(connection, taken.kept, quiet)
        for each in taken.uploaded:
            self._write_upload(connection, each, now)

    def _finish(self, connection: Connection, taken: _Taken) -> None:
        self._inbox.done(connection, taken.done)
        for item, error in taken.failed:
            LOG.warning("body %d cannot be read: %s", item.id, error)
            self._inbox.fail(connection, item.id, error)

    def _clean(self) -> None:
        """Mark bodies as done that an earlier worker read but did not mark."""
        with self.store.read() as connection:
            query = select(inbox_read.c.id)
            ids = list(connection.execute(query, execution_options=EVERY_PROJECT).scalars())
        if ids:
            with self.store.write_inbox() as connection:
                self._inbox.done(connection, ids)
            with self.store.write() as connection:
                for some in slices(ids):
                    gone = delete(inbox_read).where(inbox_read.c.id.in_(some))
                    connection.execute(gone, execution_options=EVERY_PROJECT)
        self._finished = []
        self._is_clean = True

    def _read_upload(
        self, item: Item, batches: span_chunks.Batches, uploaded: list[_Uploaded]
    ) -> None:
        """Read an upload: spans are handled like received ones, other recordings become records."""
        try:
            with opened(item, self._upload_limits) as upload:
                file = upload.spans()
                if file is not None:
                    batches.add_file(item, file)
                    file.close()
                    return
                records, problem = upload.records(self.bounds.redaction)
                if self.bounds.prices is not None:
                    records = [fill_costs(each, self.bounds.prices) for each in records]
                conversations.one_id_each(records)
                uploaded.append(_Uploaded(item, records, problem))
        except InputError as error:
            uploaded.append(_Uploaded(item, [], span_chunks.shown(error)))
        except Exception as error:  # noqa: BLE001 - any error is recorded, and others continue
            uploaded.append(_Uploaded(item, [], span_chunks.crash(error)))

    def _write_upload(self, connection: Connection, uploaded: _Uploaded, now: float) -> None:
        item, records = uploaded.item, uploaded.records
        bodies = [conversations.encode(record) for record in records]
        places = self.store.bodies.put(day_of(now), bodies)
        readings = []
        for record, place in zip(records, places, strict=True):
            scores, waiting = self.score(item.project, record, None, "complete")
            readings.append(
                Reading(
                    trace=record,
                    place=place,
                    state="complete",
                    traces=(),
                    spans=0,
                    seen=item.received,
                    scores=scores,
                    waiting=waiting,
                )
            )
        if readings:
            rows.write(connection, item.project, readings, now)

    def read_due(self, now: float) -> int:
        """Read conversations that are due; return how many were examined.

        Raises:
            Unavailable: the store is not available now; nothing is lost, and nothing was done.
        """
        if self._since is None:
            self._since = now
        if self._reading:
            with self.store.write() as connection:
                conversations.end(connection, self._reading)
            self._reading = []
        # A conversation that looks quiet may have more spans in the inbox.
        oldest = self._inbox.depth().oldest
        horizon = now if oldest is None else min(now, oldest)
        limit = _TAKE_LOCKED if self.store.is_postgresql else _TAKE_CONVERSATIONS
        if self._single_conversations:
            limit = 1
        taken: list[Component] = []
        try:
            with self._taking_conversations() as connection:
                suspect = None
                if now - self._since >= _SETTLED:
                    suspect = conversations.take_suspect(connection, horizon)
                taken = [suspect] if suspect else conversations.take(connection, horizon, limit)
                done = self._read(connection, taken, horizon, alone=suspect is not None)
                readings = self._score(done, now)
                if done and self.store.is_postgresql:
                    stale = self._write(connection, done, readings, now)
            if done and not self.store.is_postgresql:
                with self.store.write() as connection:
                    stale = self._write(connection, done, readings, now)
        except Exception as error:
            if not taken or is_passing(error):
                raise
            if len(taken) > 1:
                self._single_conversations = len(taken)
                return len(taken)
            self._single_conversations = 0
            with self.store.write() as connection:
                failed = Outcome(taken[0], None, now, span_chunks.crash(error))
                conversations.settle(connection, [failed], now)
        else:
            self._reading = []
            if done and stale:
                self.store.bodies.remove(stale)
        self._single_conversations = max(0, self._single_conversations - 1)
        return len(taken)

    @contextmanager
    def _taking_conversations(self) -> Iterator[Connection]:
        """Open a connection for taking conversations; PostgreSQL locks them until the end."""
        which = self.store.write if self.store.is_postgresql else self.store.read
        with which() as connection:
            yield connection

    def _read(
        self, connection: Connection, taken: Sequence[Component], horizon: float, *, alone: bool
    ) -> list[_Done]:
        """Read due conversations, as many as are written together."""
        projects = [component.project for component in taken]
        quiet = completeness.quiet_of(connection, projects, self.bounds)
        done: list[_Done] = []
        read = 0
        for component in taken:
            if read > _READ_SPANS:
                break
            decision = completeness.decide(
                component, quiet[component.project], self.bounds, horizon
            )
            one = _Done(component, decision)
            done.append(one)
            if decision.state is None:
                continue
            read += component.spans
        to_read = [one for one in done if one.decision.state is not None]
        self._begin_reading(connection, to_read, alone=alone)
        by_project: dict[int, list[_Done]] = defaultdict(list)
        for one in done:
            if one.decision.state is not None and one.error is None:
                by_project[one.component.project].append(one)
        for project, listed in by_project.items():
            together = [one.component for one in listed]
            chosen = conversations.choose(connection, project, together, self.bounds)
            places = [each.place for some in chosen for each in some.chunks]
            stored = self.store.bodies.get(places)
            for one, some in zip(listed, chosen, strict=True):
                self._read_one(one, stored, some)
            self._drop_unchanged(connection, project, listed)
        return done

    def _begin_reading(self, connection: Connection, done: Sequence[_Done], *, alone: bool) -> None:
        """Record what is read now, and give up conversations that crashed all workers.

        As with bodies (:meth:`_begin`), crashes cannot be caught.
        """
        counts = conversations.begun(connection, [one.component for one in done])
        if alone and max(counts, default=0) >= _MOST_BEGUN:
            done[0].error = _ENDED
            done[0].is_given_up = True
            return
        noted = []
        for one, count in zip(done, counts, strict=True):
            if count and not alone:  # new spans belong to a conversation that crashed a worker
                one.decision = one.decision._replace(state=None)
                noted.append((one.component, count))
            else:
                noted.append((one.component, count + 1))
                self._reading.append(one.component)
        if noted:
            with self.store.write() as other:
                conversations.begin(other, noted)

    def _read_one(
        self, one: _Done, stored: Mapping[Place, bytes], chosen: conversations.Chosen
    ) -> None:
        """Read a conversation. Errors are recorded, and the others continue."""
        try:
            record = conversations.read(stored, chosen, self.bounds)
            one.gone = record.gone
            one.records = [(each, conversations.encode(each.trace)) for each in record.records]
        except InputError as error:
            one.error = span_chunks.shown(error)
        except Exception as error:  # noqa: BLE001 - as said
            one.error = span_chunks.crash(error)

    def _drop_unchanged(
        self, connection: Connection, project: int, listed: Sequence[_Done]
    ) -> None:
        """Leave out records that are stored already, so that they get no new version.

        Exporters send spans again if the answer was lost. And a record that a program uploaded
        itself is more complete than its spans, so that these do not replace it.
        """
        keys = [narrow(each.trace.id) for one in listed for each, _ in one.records]
        stored: dict[str, _Stored] = {}
        for some in slices(keys):
            query = select(
                conversation.c.key,
                conversation.c.state,
                conversation.c.day,
                conversation.c.place,
                exists().where(
                    conversation_trace.c.project == project,
                    conversation_trace.c.conversation == conversation.c.id,
                ),
            ).where(conversation.c.project == project, conversation.c.key.in_(some))
            for key, state, day, number, has_spans in connection.execute(query):
                stored[key] = _Stored(state, Place(day, number), has_spans)
        complete = [each.place for each in stored.values() if each.state == "complete"]
        bodies = self.store.bodies.get(complete) if complete else {}
        for one in listed:
            changed = []
            for record, body in one.records:
                key = narrow(record.trace.id)
                before = stored.get(key)
                if before is not None and (
                    not before.has_spans
                    or (one.decision.state == "complete" and bodies.get(before.place) == body)
                ):
                    one.unchanged.append(key)
                else:
                    changed.append((record, body))
            one.records = changed

    def _score(self, done: Sequence[_Done], now: float) -> list[tuple[_Done, Reading]]:
        """Score the records, and store their bodies; rows name them afterwards."""
        bodies = [body for one in done for _, body in one.records]
        places = iter(self.store.bodies.put(day_of(now), bodies) if bodies else ())
        readings = []
        for one in done:
            for record, _ in one.records:
                state = one.decision.state or "open"
                scores: Sequence[Row] = ()
                waiting: Sequence[str] = ()
                try:
                    scores, waiting = self.score(one.component.project, record.trace, record, state)
                except Exception as error:  # noqa: BLE001 - the record is kept in any case
                    one.error = f"it cannot be scored: {span_chunks.crash(error)}"
                reading = Reading(
                    trace=record.trace,
                    place=next(places),
                    state=state,
                    traces=record.traces,
                    spans=record.spans,
                    seen=one.component.last_seen,
                    service=record.service,
                    agent_versions=record.agent_versions,
                    gone=one.gone,
                    scores=scores,
                    waiting=waiting,
                    named_rules=record.rules,
                )
                readings.append((one, reading))
        return readings

    def _write(
        self,
        connection: Connection,
        done: Sequence[_Done],
        readings: Sequence[tuple[_Done, Reading]],
        now: float,
    ) -> list[Place]:
        """Write what was read; return the places of records that are no longer used."""
        by_project: dict[int, list[Reading]] = defaultdict(list)
        for one, reading in readings:
            by_project[one.component.project].append(reading)
        traces: dict[int, list[str]] = defaultdict(list)
        unchanged: dict[int, list[str]] = defaultdict(list)
        outcomes = []
        for one in done:
            component, decision = one.component, one.decision
            if decision.state is not None and (one.error is None or one.records):
                traces[component.project] += component.ids
                unchanged[component.project] += one.unchanged
            if one.error is not None:
                LOG.warning("trace %s cannot be read: %s", component.ids[0], one.error)
            outcomes.append(Outcome(component, decision.state, decision.due, one.error))
        conversations.settle(connection, outcomes, now)
        # Given-up conversations stay recorded, so that further spans do not crash another worker.
        ended = (one for one in done if one.decision.state is not None and not one.is_given_up)
        conversations.end(connection, [one.component for one in ended])
        stale: list[Place] = []
        for project in sorted(traces):
            stale += rows.write(
                connection,
                project,
                by_project[project],
                now,
                traces=traces[project],
                unchanged=unchanged[project],
            )
        return stale


class _Done:
    """An examined conversation, with its record or error."""

    def __init__(self, component: Component, decision: completeness.Decision) -> None:
        self.component = component
        self.decision = decision
        self.records: list[tuple[Recorded, bytes]] = []
        self.unchanged: list[str] = []
        self.gone = False
        self.error: str | None = None
        self.is_given_up = False


class _Stored(NamedTuple):
    state: str
    place: Place
    has_spans: bool


def is_passing(error: Exception) -> bool:
    """Return whether an error is about the store, so that the same work may succeed later."""
    cause = error.__cause__
    if isinstance(cause, DBAPIError) and cause.connection_invalidated:
        return True
    of_data = (IntegrityError, InterfaceError, NotSupportedError, ProgrammingError)
    return isinstance(error, Unavailable) and not isinstance(cause, of_data)


class Task:
    """A periodic task. ``work`` returns whether there is more to do immediately."""

    def __init__(self, name: str, every: float, work: Callable[[float], object]) -> None:
        self.name = name
        self.every = every
        self.work = work
        self.due = 0.0
        self.failures = 0

    def run(self, now: float) -> None:
        """Run the task; after an error, report it and wait, longer each time."""
        try:
            more = bool(self.work(now))
        except Exception as error:
            self.failures += 1
            if isinstance(error, Unavailable):
                LOG.warning("%s: %s", self.name, span_chunks.crash(error))
            else:
                LOG.error(
                    "%s: %s", self.name, span_chunks.crash(error), exc_info=self.failures == 1
                )
            self.due = now + min(60.0, 0.5 * 2 ** min(self.failures, 7))
        else:
            self.failures = 0
            self.due = now if more else now + self.every


def loop(tasks: Sequence[Task], stop: threading.Event) -> None:
    """Run tasks, each when it is due, until ``stop`` is set."""
    while not stop.is_set():
        for task in tasks:
            now = time.time()
            if task.due <= now and not stop.is_set():
                task.run(now)
        stop.wait(max(0.0, min(task.due for task in tasks) - time.time()))


def run(settings: Settings, stop: threading.Event) -> None:
    """Work until ``stop`` is set; work in progress is finished first.

    Raises:
        Unavailable: the store is not available at the start.
    """
    store = open_store(settings.store)
    live = Live(store, settings)
    worker = Worker(
        store, bounds_of(settings), live.score, settings.limits, settings.projects_by_tag
    )
    # Judges take seconds to answer; reading must not wait for them.
    tasks = [
        Task("trying rubrics", 0.5, live.try_rubrics),
        Task("asking judges", 1.0, live.judge),
        Task("alerts", 1.0, live.alert),
        Task("sending results", 1.0, live.send),
    ]
    # An investigation takes minutes, and grouping 10,000 texts half a minute: alerts and reading
    # must not wait for them.
    talks = [
        Task("investigating", 1.0, live.investigate),
        Task("groups of issues", 30.0, live.regroup),
    ]
    beside = [
        threading.Thread(target=loop, args=(some, stop), name=name, daemon=True)
        for name, some in (("baton-live", tasks), ("baton-issues", talks))
    ]
    for thread in beside:
        thread.start()
    jobs, rescores = Jobs(store, settings), Rescores(store, settings)
    proofs = Proofs(store, settings)
    requested = [
        Task("evaluations", 0.2, jobs.work),
        Task("proofs of fixes", 0.5, proofs.work),
        Task("rescores", 1.0, rescores.work),
    ]
    try:
        with store.write() as connection:
            conversations.reread(connection, time.time(), older=True)
        loop([*tasks_of(worker, settings), *requested], stop)
    finally:
        jobs.stop()
        proofs.stop()
        rescores.stop()
        for thread in beside:
            thread.join(_ENDING)  # unanswered questions to judges are asked again after a restart
        store.close()


def bounds_of(settings: Settings) -> Bounds:
    """Return the settings for when conversations are read, and how much of each."""
    return Bounds(
        quiet=settings.quiet,
        spans=settings.limits.conversation_spans,
        bytes=settings.limits.conversation_bytes,
        redaction=settings.redaction,
        prices=settings.prices,
    )


def tasks_of(worker: Worker, settings: Settings) -> list[Task]:
    """Return the tasks of a worker, each with its interval (seconds) while there is no work."""
    store, inbox = worker.store, Inbox(worker.store)

    def prune(now: float) -> None:
        inbox.prune(now - settings.keep_inbox, forget_before=now - _KNOWN_AGAIN)

    def delete_old(now: float) -> None:
        for day, why, count, _ in retain(store, settings.retention, now):
            LOG.info("%s was deleted (%s), with %d conversations", day, why, count)

    return [
        Task("reading what arrived", 0.1, worker.take_in),
        Task("reading conversations", 0.2, worker.read_due),
        Task("issues", 1.0, lambda now: index_issues(store, now)),
        Task("cases of issues", 5.0, lambda now: follow_cases(store, now)),
        Task("pruning the inbox", 60.0, prune),
        Task("retention", 600.0, delete_old),
    ]


_KNOWN_AGAIN = 7 * 86_400.0
"""Seconds for which a duplicate body is recognised; exporters give up after some minutes."""
