"""Exports of conversations: records, received spans, and rows of tables.

All exports are paged, with the newest conversation first, and take a filter of conversations. They
may end with a ``last`` conversation, so that parts can be fetched side by side. Open conversations
are left out unless the filter contains ``state``, because they are incomplete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection, RowMapping, Table, select

from baton.export.received_otlp import encode_received
from baton.export.spans import spans_of
from baton.export.wire_json import encode_json
from baton.model import Trace
from baton.model.filter import Filter, Term
from baton.model.redact import Redaction
from baton.readers.otlp.reader import traces_of
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.wire.conversations import group
from baton.session.server_rows import DispatchRow, Part, Parts, Records, Rows, RunRow, ScoreRow

from .bodies import BodyGone, Place, get_one
from .conversations import closures, decode, record_of
from .paging import cursor_after, read_cursor, row_as
from .queries import after_row, conversation_of, conversation_rows
from .rows import narrow, slices
from .schema import chunk, conversation_trace, dispatch, run, score
from .span_chunks import open_chunk
from .store import Store

T = TypeVar("T")
_PAGE_BYTES = 8 << 20
"""Bytes of records or spans after which a page ends; one conversation may have more."""
_PAGE_ROWS = 5000
"""Runs and dispatches after which a page of rows ends."""
_PART = 5000
"""Spans, runs and dispatches after which a part of an export ends."""
_MOST_BYTES = 256 << 20
"""Maximum bytes of spans of one conversation to combine; for more, its record is exported
instead."""


def parts(store: Store, project: int, chosen: Filter, *, limit: int, cursor: str | None) -> Parts:
    """Return where to cut an export of the next ``limit`` conversations."""
    listed = conversation_rows(store, project, _whole(chosen), limit=limit + 1, cursor=cursor)
    cut: list[Part] = []
    taken = listed[:limit]
    if cursor is None and taken:
        # Before the first one: those that arrive later are newer, and no part of this export.
        cursor = cursor_after([taken[0]["order_0"], taken[0]["order_1"] + 1])
    start, count, weight = cursor, 0, 0
    for row in taken:
        count += 1
        weight += row["spans"] + row["runs"] + row["dispatches"]
        if weight >= _PART or row is taken[-1]:
            last = after_row(row)
            cut.append(Part(cursor=str(start), last=last, conversations=count))
            start, count, weight = last, 0, 0
    return Parts(items=cut, next=start if len(listed) > limit else None)


def records(
    store: Store,
    project: int,
    chosen: Filter,
    *,
    limit: int,
    cursor: str | None,
    last: str | None = None,
) -> Records[msgspec.Raw]:
    """Return a page of records, as JSON."""

    def one(row: RowMapping) -> tuple[msgspec.Raw, int]:
        record, size = _record(store, project, row)
        return msgspec.Raw(msgspec.json.encode(record)), size

    return _page(store, project, chosen, limit, cursor, last, one)


def otlp(
    store: Store,
    project: int,
    chosen: Filter,
    *,
    limit: int,
    cursor: str | None,
    last: str | None = None,
    redaction: Redaction,
) -> Records[msgspec.Raw]:
    """Return a page of exports (OTLP JSON), one for each conversation: its spans as they came.

    Uploaded recordings have none, and are written in Baton's form of records. So are conversations
    whose spans are not all stored as received.
    """

    def one(row: RowMapping) -> tuple[msgspec.Raw, int]:
        received = _received(store, project, row)
        if received is None:
            record, size = _record(store, project, row)
            return msgspec.Raw(encode_json(spans_of(record))), size
        # As attributes, not as OTLP: there a name that indicates a secret is next to its value.
        data = encode_received(*redaction.value(received))
        return msgspec.Raw(data), len(data)

    return _page(store, project, chosen, limit, cursor, last, one)


def rows(
    store: Store,
    project: int,
    chosen: Filter,
    *,
    limit: int,
    cursor: str | None,
    last: str | None = None,
) -> Rows:
    """Return some conversations with their runs, dispatches, and scores of this version."""
    listed = _listed(store, project, chosen, limit, cursor, last)
    taken: list[RowMapping] = []
    count = 0
    for row in listed[:limit]:
        taken.append(row)
        count += row["runs"] + row["dispatches"]
        if count >= _PAGE_ROWS:
            break
    keys = {row["id"]: row["key"] for row in taken}
    versions = {row["id"]: row["version"] for row in taken}
    with store.read() as connection:

        def of(table: Table, type_: type[T]) -> list[T]:
            return [
                row_as(
                    type_,
                    {
                        **row,
                        "conversation_id": row["conversation"],
                        "conversation": keys[row["conversation"]],
                    },
                )
                for row in _rows(connection, project, table, list(keys))
                if table is not score
                or (row["version"] == versions[row["conversation"]] and row["replaced_by"] is None)
            ]

        return Rows(
            conversations=[conversation_of(row) for row in taken],
            runs=of(run, RunRow),
            dispatches=of(dispatch, DispatchRow),
            scores=of(score, ScoreRow),
            next=after_row(taken[-1]) if len(taken) < len(listed) else None,
        )


def _rows(
    connection: Connection, project: int, table: Table, ids: Sequence[int]
) -> list[RowMapping]:
    listed: list[RowMapping] = []
    for some in slices(ids):
        query = select(table).where(table.c.project == project, table.c.conversation.in_(some))
        listed += connection.execute(query).mappings()
    return listed


def _page(
    store: Store,
    project: int,
    chosen: Filter,
    limit: int,
    cursor: str | None,
    last: str | None,
    one: Callable[[RowMapping], tuple[msgspec.Raw, int]],
) -> Records[msgspec.Raw]:
    listed = _listed(store, project, chosen, limit, cursor, last)
    page = Records[msgspec.Raw](items=[])
    size = 0
    for number, row in enumerate(listed[:limit], 1):
        try:
            item, length = one(row)
        except (BodyGone, KeyError):
            page.deleted += 1
        else:
            page.items.append(item)
            size += length
        if size >= _PAGE_BYTES or number == limit:
            page.next = after_row(row) if number < len(listed) else None
            break
    return page


def _listed(
    store: Store, project: int, chosen: Filter, limit: int, cursor: str | None, last: str | None
) -> list[RowMapping]:
    """Return conversations, one more than ``limit`` if there are more up to the ``last``."""
    listed = conversation_rows(store, project, _whole(chosen), limit=limit + 1, cursor=cursor)
    end = read_cursor(last, tuple[float, int])
    if end is None:
        return listed
    return [row for row in listed if [row["order_0"], row["order_1"]] >= end]


def _whole(chosen: Filter) -> Filter:
    """Leave out open conversations, unless the filter names states."""
    if "state" in chosen.fields:
        return chosen
    return Filter(terms=(*chosen.terms, Term(field="state", any_of=("complete",))))


def _record(store: Store, project: int, row: RowMapping) -> tuple[Trace, int]:
    """Return a record and its bytes.

    Raises:
        BodyGone: retention deleted it.
        KeyError: it no longer exists.
    """
    try:
        body = get_one(store.bodies, Place(row["day"], row["place"]))
    except BodyGone:
        # A worker may have written a new version since the row was read.
        return record_of(store, project, row["id"]), 0
    return decode(body), len(body)


def _received(store: Store, project: int, row: RowMapping) -> tuple[list[Span], list[Event]] | None:
    """Return the spans and log records of a conversation; ``None`` if some are missing."""
    with store.read() as connection:
        own = select(conversation_trace.c.trace_id).where(
            conversation_trace.c.project == project, conversation_trace.c.conversation == row["id"]
        )
        ids = list(connection.execute(own).scalars())
        others = [
            each
            for some in slices(ids)
            for each in connection.execute(
                select(conversation_trace.c.conversation).where(
                    conversation_trace.c.project == project,
                    conversation_trace.c.trace_id.in_(some),
                    conversation_trace.c.conversation != row["id"],
                )
            ).scalars()
        ]
        if others:
            ids = [id_ for some in closures(connection, project, ids) for id_ in some]
        chunks: list[Any] = []
        for some in slices(ids):
            columns = (chunk.c.id, chunk.c.day, chunk.c.place, chunk.c.bytes)
            of = select(*columns).where(chunk.c.project == project, chunk.c.trace_id.in_(some))
            chunks += connection.execute(of)
    if not chunks or row["gone"] or sum(each.bytes for each in chunks) > _MOST_BYTES:
        return None
    places = [Place(each.day, each.place) for each in sorted(chunks)]
    bodies = store.bodies.get(places)
    spans: list[Span] = []
    logs: list[Event] = []
    for place in places:
        if place not in bodies:
            return None
        batch, opened = open_chunk(bodies[place])
        if opened.torn or opened.lost:
            return None
        spans += batch.spans
        logs += batch.logs
    return _of_one(row["key"], spans, logs) if others else (spans, logs)


def _of_one(
    key: str, spans: list[Span], logs: list[Event]
) -> tuple[list[Span], list[Event]] | None:
    """Choose the spans of one of several conversations that share traces."""
    together = group(spans, logs)
    named = [one for one in together if narrow(one.id) == key] or [
        one
        for one in together
        if any(narrow(record.id) == key for record in traces_of(one, None, {}, []))
    ]
    if not named:
        return None
    inside = {(span.trace_id, span.span_id) for one in named for span in one.spans}
    loose = {id(log) for one in named for log in one.logs}
    kept = [log for log in logs if (log.trace_id, log.span_id) in inside or id(log) in loose]
    return [span for span in spans if (span.trace_id, span.span_id) in inside], kept
