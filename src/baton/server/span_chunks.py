"""From received exports to spans by trace: exports are decoded like files, and stored in chunks.

A chunk contains the spans and log records of one trace that were read together. Chunks are only
ever added, so workers do not wait for each other. A trace's rows state what joins it with others,
and when to examine it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import floor, log
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection, case, select

from baton.formats.input_files import InputFile
from baton.model import Dropped, InputError
from baton.model.redact import ON
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.wire.read import body_records, records_of
from baton.readers.otlp.wire.streams import Report
from baton.readers.otlp.wire.trace_store import (
    Batch,
    answer_of,
    continued_answer,
    conversation_of,
    pack,
    session_of,
    unpack,
)

from .bodies import Bodies, Place, day_of
from .database import add_rows
from .inbox import Item
from .rows import narrow, slices, upsert
from .schema import chunk, gap, tie, trace

Record = Span | Event
TraceKey = tuple[int, str]
"""A project, and the id of a trace as in rows."""
LABEL, LINK = "label:", "trace:"


class Chunk(msgspec.Struct, array_like=True):
    """Spans and log records of a trace, with what was lost when they were decoded.

    ``lost`` is in one of the chunks that were decoded together; ``torn`` is set in all of them.
    """

    batch: bytes
    lost: list[Dropped]
    torn: bool


class Loss(NamedTuple):
    """A problem of a body: why it counts as unread, or which data was dropped."""

    item: Item
    error: str


class Arrived:
    """The part of one trace that arrived in a batch of bodies."""

    def __init__(self, received: float) -> None:
        self.spans: list[Span] = []
        self.logs: list[Event] = []
        self.ties: set[str] = set()
        self.lost: list[Dropped] = []
        self.torn = False
        self.root = False
        self.first = received
        self.last = received
        self.gaps: list[float] = []

    def at(self, received: float) -> None:
        """Record that something of it arrived."""
        if received > self.last:
            self.gaps.append(received - self.last)
        self.first, self.last = min(self.first, received), max(self.last, received)


_PROJECT = "baton.project"
"""The attribute by which a span or its resource names its project."""


class Batches:
    """Spans and log records of several bodies, by project and trace.

    ``tagged`` are the projects that a span may name itself (`baton.otel.tag`), by name, if it came
    for the project ``untagged``: a key for any other one is for that one alone.
    """

    def __init__(self, tagged: Mapping[str, int] | None = None, untagged: int = 0) -> None:
        self._tagged = tagged or {}
        self._untagged = untagged
        self.traces: dict[TraceKey, Arrived] = {}
        self.read: list[Item] = []
        self.failed: list[Loss] = []
        self.homeless = 0

    def add(self, item: Item) -> None:
        """Decode a body. If it breaks the reader, that is recorded, and nothing of it is kept."""
        try:
            report = Report(item.name or f"body {item.id}")
            records = list(body_records(item.body, item.form, report))
        except InputError as error:
            self.failed.append(Loss(item, shown(error)))
        except Exception as error:  # noqa: BLE001 - whatever breaks is noted, and others go on
            self.failed.append(Loss(item, crash(error)))
        else:
            self._place(item, records, report)

    def add_file(self, item: Item, file: InputFile) -> None:
        """Read the spans of an uploaded file."""
        try:
            report = Report(item.name or file.path.name)
            records = list(records_of(file, report))
        except InputError as error:
            self.failed.append(Loss(item, shown(error)))
        except Exception as error:  # noqa: BLE001 - as above
            self.failed.append(Loss(item, crash(error)))
        else:
            self._place(item, records, report)

    def _place(self, item: Item, records: Sequence[Record], report: Report) -> None:
        """Add records to their traces."""
        lost = list(report.lost.values())
        touched: dict[TraceKey, Arrived] = {}
        homeless = 0
        last = None
        for record in records:
            project = self._project(item, record)
            if isinstance(record, Span):
                # Most spans have the same trace as the previous one.
                if last != (project, record.trace_id):
                    last = (project, record.trace_id)
                    arrived = self._trace(item, project, record.trace_id, touched)
                arrived.spans.append(record)
                # A span that was sent at its start, and has no end yet, will arrive again.
                if record.parent_id is None and record.ended is not None:
                    arrived.root = True
                for link in record.links:
                    if link.trace_id != record.trace_id:
                        arrived.ties.add(LINK + narrow(link.trace_id))
                session = session_of(record.attributes, record.resource)
                if session is not None:
                    arrived.ties.add(narrow(LABEL + session))
                conversation = conversation_of(record.attributes)
                if conversation is not None:
                    arrived.ties.add(narrow(LABEL + conversation))
                # The trace that has an answer and those that continue from it share its id.
                for answer in (answer_of(record.attributes), continued_answer(record.attributes)):
                    if answer is not None:
                        arrived.ties.add(narrow(LABEL + answer))
            else:
                homeless += not self._log(item, project, record, touched)
        # Programs send all their logs, and most are not about a conversation: that is no error.
        self.homeless += homeless
        for arrived in touched.values():
            arrived.at(item.received)
            arrived.torn = arrived.torn or bool(lost)
        if touched:
            next(iter(touched.values())).lost += lost
        error = _problem(report, lost, bool(touched))
        if error is None:
            self.read.append(item)
        else:
            self.failed.append(Loss(item, error))

    def _project(self, item: Item, record: Record) -> int:
        """Return the project of a record: the one that it names, if that is allowed."""
        if not self._tagged or item.project != self._untagged:
            return item.project
        for attributes in (record.attributes, record.resource):
            name = attributes.get(_PROJECT)
            if isinstance(name, str) and name in self._tagged:
                return self._tagged[name]
        return item.project

    def _log(
        self, item: Item, project: int, record: Event, touched: dict[TraceKey, Arrived]
    ) -> bool:
        """Add a log record to its trace, else to the label it names; return whether it has any."""
        label = session_of(record.attributes, record.resource) or conversation_of(record.attributes)
        if record.trace_id:
            arrived = self._trace(item, project, record.trace_id, touched)
        elif label is not None:
            arrived = self._trace(item, project, LABEL + label, touched)
        else:
            return False
        arrived.logs.append(record)
        if label is not None:
            arrived.ties.add(narrow(LABEL + label))
        return True

    def _trace(
        self, item: Item, project: int, id_: str, touched: dict[TraceKey, Arrived]
    ) -> Arrived:
        key = (project, narrow(id_))
        arrived = touched.get(key)
        if arrived is None:
            arrived = self.traces.get(key)
            if arrived is None:
                arrived = self.traces[key] = Arrived(item.received)
            touched[key] = arrived
        return arrived


def shown(error: InputError) -> str:
    """Describe what is wrong with an input, without its secrets."""
    return ON.text("; ".join(str(problem) for problem in error.problems))[:_LONGEST]


def crash(error: BaseException) -> str:
    """Describe an error that no reader should raise."""
    return ON.text(f"{type(error).__name__}: {error}")[:_LONGEST]


_LONGEST = 2000
"""Maximum characters of a message in a row."""


def _problem(report: Report, lost: Sequence[Dropped], any_kept: bool) -> str | None:
    """Return why a body counts as unread, although its intact part is stored."""
    if report.problems:
        return shown(InputError(report.all_problems()))
    if lost and not any_kept:
        what = "; ".join(f"{each.what}: {each.count}" for each in lost)
        return ON.text(what)[:_LONGEST]
    return None


def pieces(arrived: Arrived) -> Iterator[tuple[bytes, int]]:
    """Yield the chunks of a trace as bytes, each with the number of its spans."""
    step = _MOST_IN_CHUNK
    parts = [
        Batch(arrived.spans[at : at + step], arrived.logs[at : at + step])
        for at in range(0, max(len(arrived.spans), len(arrived.logs), 1), step)
    ]
    for number, part in enumerate(parts):
        lost = arrived.lost if number == 0 else []
        yield from _packed(part, lost, arrived.torn)


_MOST_IN_CHUNK = 2000
_MOST_BYTES = 4 << 20
"""Maximum spans and bytes of a chunk, unless one span alone has more."""


def _packed(batch: Batch, lost: list[Dropped], torn: bool) -> Iterator[tuple[bytes, int]]:
    spans, logs = len(batch.spans), len(batch.logs)
    data = pack(batch)
    if len(data) > _MOST_BYTES and max(spans, logs) > 1:
        whole = unpack(data)
        half, other = (spans + 1) // 2, (logs + 1) // 2
        yield from _packed(Batch(whole.spans[:half], whole.logs[:other]), lost, torn)
        yield from _packed(Batch(whole.spans[half:], whole.logs[other:]), [], torn)
    else:
        yield msgspec.msgpack.encode(Chunk(data, lost, torn)), spans


_CHUNK = msgspec.msgpack.Decoder(Chunk)


def open_chunk(data: bytes) -> tuple[Batch, Chunk]:
    """Return the spans and log records of a chunk, and what was lost with them."""
    opened = _CHUNK.decode(data)
    return unpack(opened.batch), opened


class Kept(NamedTuple):
    """Chunks of a trace whose bodies are committed: place, spans, bytes."""

    key: TraceKey
    arrived: Arrived
    chunks: list[tuple[Place, int, int]]


def keep(bodies: Bodies, batches: Batches) -> list[Kept]:
    """Commit the chunks of all traces; rows name them afterwards.

    They are in the segment of the day on which they arrived.
    """
    by_day: dict[str, list[tuple[Kept, bytes, int]]] = {}
    kept = []
    # Workers lock rows of traces in the same order, so that there is no deadlock.
    for key, arrived in sorted(batches.traces.items(), key=lambda item: item[0]):
        one = Kept(key, arrived, [])
        kept.append(one)
        day = by_day.setdefault(day_of(arrived.last), [])
        day.extend((one, data, spans) for data, spans in pieces(arrived))
    for day_name, listed in by_day.items():
        places = bodies.put(day_name, [data for _, data, _ in listed])
        for (one, data, spans), place in zip(listed, places, strict=True):
            one.chunks.append((place, spans, len(data)))
    return kept


def write(connection: Connection, kept: Sequence[Kept], quiet: Mapping[int, float]) -> None:
    """Write the rows of traces: their chunks, their links to others, and when to examine them.

    ``quiet`` is how long a conversation has to be quiet, by project.
    """
    rows, chunks, ties = [], [], []
    for (project, id_), arrived, places in kept:
        of = {"project": project, "trace_id": id_}
        rows.append(
            {
                **of,
                "first_seen": arrived.first,
                "last_seen": arrived.last,
                "spans": len(arrived.spans),
                "logs": len(arrived.logs),
                "root": arrived.root,
                "changed": True,
                "due": arrived.last + quiet[project],
            }
        )
        chunks += [
            {**of, "day": place.day, "place": place.number, "spans": spans, "bytes": size}
            for place, spans, size in places
        ]
        ties += [{**of, "other": other} for other in sorted(arrived.ties)]
    if not rows:
        return
    gaps = _gaps(connection, kept)
    added = upsert(connection, trace)
    new, old = added.excluded, trace.c
    change = {
        "first_seen": case((old.first_seen < new.first_seen, old.first_seen), else_=new.first_seen),
        "last_seen": case((old.last_seen > new.last_seen, old.last_seen), else_=new.last_seen),
        "spans": old.spans + new.spans,
        "logs": old.logs + new.logs,
        "root": old.root | new.root,
        "changed": True,
        # A trace that already has a time is examined then, however much arrives meanwhile.
        "due": case((old.changed & (old.due < new.due), old.due), else_=new.due),
        "error": None,
        "reader": None,
    }
    keys = [old.project, old.trace_id]
    connection.execute(added.on_conflict_do_update(index_elements=keys, set_=change), rows)
    add_rows(connection, chunk, chunks)
    if ties:
        connection.execute(upsert(connection, tie).on_conflict_do_nothing(), ties)
    if gaps:
        counted = upsert(connection, gap)
        summed = {"count": gap.c.count + counted.excluded.count}
        which = [gap.c.project, gap.c.bucket]
        of_gaps = [
            {"project": project, "bucket": bucket, "count": count}
            for (project, bucket), count in sorted(gaps.items())
        ]
        connection.execute(
            counted.on_conflict_do_update(index_elements=which, set_=summed), of_gaps
        )


def _gaps(connection: Connection, kept: Sequence[Kept]) -> Counter[tuple[int, int]]:
    """Count how long traces were quiet before more spans arrived, by project and bucket."""
    counted: Counter[tuple[int, int]] = Counter()
    by_project: dict[int, dict[str, Arrived]] = {}
    for (project, id_), arrived, _ in kept:
        by_project.setdefault(project, {})[id_] = arrived
        counted.update((project, bucket_of(each)) for each in arrived.gaps)
    for project, traces in by_project.items():
        for some in slices(traces):
            query = select(trace.c.trace_id, trace.c.last_seen).where(
                trace.c.project == project, trace.c.trace_id.in_(some)
            )
            for id_, last in connection.execute(query):
                if traces[id_].first > last:
                    counted[project, bucket_of(traces[id_].first - last)] += 1
    return counted


_RATIO = 1.25
"""The growth from one bucket to the next. Small enough for a share of gaps that is right to a
quarter; large enough that all gaps from a millisecond to a day take some 80 rows of a project."""


def bucket_of(seconds: float) -> int:
    """Return the bucket of a gap; each is a quarter longer than the one before, from 1 ms on."""
    return max(0, floor(log(max(seconds, 1e-3) * 1e3, _RATIO)) + 1)


def longest_of(bucket: int) -> float:
    """Return the longest gap of a bucket, in seconds."""
    return float(_RATIO**bucket) / 1e3
