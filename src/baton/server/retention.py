"""Retention: deletes whole days, by their age and by the total bytes of all days.

A day's bodies are one file, or one partition, so the disk shrinks by them. Rows that were made from
them are deleted first: a kill in between leaves a segment that no row names, and it is deleted the
next time. Labels and roll-ups are kept: labels are people's work, and roll-ups show trends. The
counts of issues, and of dispatches for their rates, are also kept; only members are deleted.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

import msgspec
from sqlalchemy import Connection, and_, delete, exists, insert, select, update

from .bodies import Segment, day_of
from .database import EVERY_PROJECT
from .rows import Sums
from .schema import (
    being_read,
    chunk,
    conversation,
    conversation_trace,
    deletion,
    dispatch,
    issue_due,
    issue_member,
    judging,
    run,
    score,
    tie,
    trace,
)
from .store import Store


class Retention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long conversations are kept: ``days`` after their arrival, and up to ``bytes`` in all.

    ``bytes`` are those of all segments on the disk. ``None`` is no limit. The current day, which
    still receives spans, is never deleted.
    """

    days: Annotated[int, msgspec.Meta(ge=1)] | None = 30
    bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None


class Deleted(NamedTuple):
    """A deleted day, the reason (``age``, ``bytes``), and its number of conversations."""

    day: str
    why: str
    conversations: int
    bytes: int


_AT_ONCE = 500
"""Conversations that are deleted in one transaction; others can write in between."""


def retain(store: Store, retention: Retention, now: float) -> list[Deleted]:
    """Delete everything that exceeds the limits of age or size; return what was deleted.

    Raises:
        Unavailable: the database is not available now. Everything deleted so far stays deleted.
    """
    deleted = []
    for segment, why in _over(store.bodies.segments(), retention, now):
        count = _delete_rows(store, segment.day, before=_end_of(segment.day))
        with store.write() as connection:
            connection.execute(delete(deletion).where(deletion.c.day == segment.day))
            row = {
                "day": segment.day,
                "at": now,
                "why": why,
                "bodies": segment.bodies,
                "bytes": segment.bytes,
                "conversations": count,
            }
            connection.execute(insert(deletion).values(row))
        store.bodies.drop(segment.day)
        deleted.append(Deleted(segment.day, why, count, segment.bytes))
    if deleted:
        store.shrink()
    return deleted


def _over(segments: list[Segment], retention: Retention, now: float) -> list[tuple[Segment, str]]:
    """Choose the segments to delete, the oldest first."""
    past = [segment for segment in segments if segment.day < day_of(now)]
    total = sum(segment.bytes for segment in segments)
    chosen = []
    first_kept = "" if retention.days is None else day_of(now - retention.days * 86_400)
    for segment in past:
        if segment.day < first_kept:
            chosen.append((segment, "age"))
        elif retention.bytes is not None and total > retention.bytes:
            chosen.append((segment, "bytes"))
        else:
            break
        total -= segment.bytes
    return chosen


def _end_of(day: str) -> float:
    start = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
    return (start + timedelta(days=1)).timestamp()


def _delete_rows(store: Store, day: str, *, before: float) -> int:
    """Delete the rows made from the bodies of a day; return the number of conversations."""
    count = 0
    while True:
        with store.write() as connection:
            ids = list(
                connection.scalars(
                    select(conversation.c.id).where(conversation.c.day == day).limit(_AT_ONCE),
                    execution_options=EVERY_PROJECT,
                )
            )
            _delete_conversations(connection, ids)
        count += len(ids)
        if len(ids) < _AT_ONCE:
            break
    with store.write() as connection:
        # Conversations with later spans stay; from now on they lack their start.
        parts = and_(
            conversation_trace.c.project == chunk.c.project,
            conversation_trace.c.trace_id == chunk.c.trace_id,
        )
        shortened = select(conversation_trace.c.conversation).join(chunk, parts)
        connection.execute(
            update(conversation)
            .where(conversation.c.id.in_(shortened.where(chunk.c.day == day)))
            .values(gone=True),
            execution_options=EVERY_PROJECT,
        )
        connection.execute(delete(chunk).where(chunk.c.day == day), execution_options=EVERY_PROJECT)
        left = exists().where(
            chunk.c.project == trace.c.project, chunk.c.trace_id == trace.c.trace_id
        )
        empty = select(trace.c.project, trace.c.trace_id).where(trace.c.last_seen < before, ~left)
        for project, trace_id in connection.execute(empty, execution_options=EVERY_PROJECT).all():
            for table in (tie, being_read, trace):
                connection.execute(
                    delete(table).where(table.c.project == project, table.c.trace_id == trace_id)
                )
    return count


def _delete_conversations(connection: Connection, ids: list[int]) -> None:
    # Locked, as a judge may change a verdict meanwhile.
    of_them = select(conversation).where(conversation.c.id.in_(ids)).order_by(conversation.c.id)
    of_them = of_them.with_for_update()
    sums: dict[int, Sums] = defaultdict(Sums)
    for row in connection.execute(of_them, execution_options=EVERY_PROJECT).mappings():
        sums[row["project"]].conversation(row, -1)
    for project, each in sorted(sums.items()):
        each.write(connection, project)
    for table in (run, dispatch, score, judging, conversation_trace, issue_member, issue_due):
        connection.execute(
            delete(table).where(table.c.conversation.in_(ids)), execution_options=EVERY_PROJECT
        )
    connection.execute(
        delete(conversation).where(conversation.c.id.in_(ids)), execution_options=EVERY_PROJECT
    )
