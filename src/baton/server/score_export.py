"""Live scores as ``gen_ai.evaluation.result`` events, to the OTLP endpoint of `server.yaml`.

They are sent from the store, which records the last sent score: an endpoint that is down only
delays them, also over restarts, and after a crash some are sent twice.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from baton.export.score_events import SpanIds, event_of
from baton.export.sink import Limits, Sink, open_endpoint
from baton.export.wire_json import LogRecord

from .rule_scoring import score_of
from .schema import conversation, conversation_trace, result_sent, score
from .store import Store

_AT_ONCE = 500
"""Scores that are read and sent before the last of them is noted: after a crash at most these are
sent twice."""
_SETTLED = 5.0
"""Seconds after which no score with an earlier number can appear; see `alerts`."""
_LIMITS = Limits(timeout=10, attempts=1, delay=0)


def send_results(store: Store, endpoint: str, headers: dict[str, str], now: float) -> int:
    """Send the scores that came since the last time; returns how many.

    Scores from before the endpoint was configured are not sent, nor are those of rescores, because
    the receiver would take them for current events.

    Raises:
        NotDelivered: the endpoint did not take them; they are sent again.
        InputError: it requires other headers, or accepts no results.
        Unavailable: the store is not available now.
    """
    sent = 0
    sink: Sink | None = None
    try:
        for project in store.projects().values():
            while listed := _next(store, project, now):
                events = [event for _, event in listed if event is not None]
                if sink is None and events:
                    sink = open_endpoint(endpoint, encoding=None, headers=headers, limits=_LIMITS)
                if sink is not None and events:
                    sink.add(events)
                _note(store, project, listed[-1][0])
                sent += len(events)
    finally:
        if sink is not None:
            sink.close()
    return sent


def _next(store: Store, project: int, now: float) -> list[tuple[int, LogRecord | None]]:
    """Return the next scores of a project by number, each with its event if it is sent."""
    with store.read() as connection:
        after = connection.execute(
            select(result_sent.c.score).where(result_sent.c.project == project)
        ).scalar()
        if after is None:
            last = select(func.max(score.c.id)).where(score.c.project == project)
            newest = connection.execute(last).scalar() or 0
        else:
            return _events(connection, store, project, after, now)
    _note(store, project, newest)
    return []


def _events(
    connection: Connection, store: Store, project: int, after: int, now: float
) -> list[tuple[int, LogRecord | None]]:
    query = select(score, conversation.c.key).where(
        score.c.project == project,
        conversation.c.project == score.c.project,
        conversation.c.id == score.c.conversation,
        score.c.id > after,
    )
    if store.is_postgresql:
        query = query.where(score.c.at <= now - _SETTLED)
    rows = connection.execute(query.order_by(score.c.id).limit(_AT_ONCE)).mappings().all()
    traces = {
        id_: _trace(connection, project, id_) for id_ in {row["conversation"] for row in rows}
    }
    events: list[tuple[int, LogRecord | None]] = []
    for row in rows:
        if row["rescore"] is not None:
            events.append((row["id"], None))
            continue
        more: dict[str, Any] = {
            "gen_ai.conversation.id": row["key"],
            "baton.rule": row["rule"],
            "baton.conversation.version": row["version"],
        }
        trace_id = traces[row["conversation"]]
        span = SpanIds(trace_id, "") if trace_id is not None else None
        events.append((row["id"], event_of(score_of(row), span, row["at"], now, more)))
    return events


def _trace(connection: Connection, project: int, conversation_id: int) -> str | None:
    """Return the trace of a conversation; ``None`` if it has several, or none."""
    query = select(conversation_trace.c.trace_id).where(
        conversation_trace.c.project == project,
        conversation_trace.c.conversation == conversation_id,
    )
    ids = connection.execute(query.limit(2)).scalars().all()
    return ids[0] if len(ids) == 1 and len(ids[0]) == 32 else None


def _note(store: Store, project: int, last: int) -> None:
    mine = result_sent.c.project == project
    with store.write() as connection:
        change = update(result_sent).where(mine).values(score=last)
        if not connection.execute(change).rowcount:
            connection.execute(insert(result_sent).values(project=project, score=last))
