"""A test set from stored conversations: dispatches chosen by :mod:`baton.feed.collect`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sqlalchemy import select

from baton.feed.collect import COUNT, Collected, Pool
from baton.model import Score, Trace
from baton.model.filter import Filter
from baton.model.redact import ON

from .bodies import Place
from .conversations import decode
from .issue_list import one_issue
from .rows import slices
from .rule_scoring import score_of
from .schema import conversation, dispatch, score
from .store import Store

_READ = 2_000
"""The number of newest conversations to choose from: two seconds of reading."""
_BATCH = 200
"""Conversations whose bodies are in memory together: all that are asked for could fill it, and one
query for each would be slow."""


class FromStore(NamedTuple):
    """The chosen dispatches, and the number of conversations examined; ``more`` were not read."""

    collected: Collected
    conversations: int
    more: bool


def collect_stored(
    store: Store,
    project: int,
    *,
    count: int = COUNT,
    seed: int = 0,
    where: Filter | None = None,
    failing: bool = False,
    since: float | None = None,
    issue: str | None = None,
) -> FromStore:
    """Choose dispatches of the newest conversations, like :func:`baton.session.collect.collect`.

    Args:
        store: the store.
        project: the project.
        count: the number of dispatches to choose.
        seed: another seed gives another set.
        where: the filter for dispatches.
        failing: whether to choose only dispatches that fail.
        since: choose only dispatches that started then or later, in seconds since the epoch.
        issue: choose only failures that are members of the issue with this key, and passes beside
            them.

    Raises:
        NoIssue: there is no such issue.
    """
    pool = Pool(count, seed=seed, where=where, failing=failing, since=since,
                issue=issue and issue.partition("-")[0])  # fmt: skip
    ids: list[int]
    members: set[int] = set()
    more = False
    query = select(conversation.c.id).where(
        conversation.c.project == project, conversation.c.state == "complete"
    )
    query = query.order_by(conversation.c.id.desc()).limit(_READ + 1)
    if since is not None:
        query = query.where(conversation.c.seen >= since)
    if issue is not None:
        one = one_issue(store, project, issue).issue
        members = {each.number for each in one.members if each.number is not None}
        near = dispatch.c.to_agent == (one.receiver or "")
        # A mistake of the sender concerns everything that it passes on.
        if one.sender is not None and one.category != "working":
            near |= dispatch.c.from_agent == one.sender
        beside = select(dispatch.c.conversation).where(dispatch.c.project == project, near)
        query = query.where(conversation.c.id.in_(beside), conversation.c.failed == 0)
    with store.read() as connection:
        ids = list(connection.scalars(query))
    more = len(ids) > _READ
    chosen = [*sorted(members), *ids[:_READ]]
    read = 0
    for trace, scores in stored_records(store, project, chosen):
        # A case becomes a file in a user's repository.
        pool.add(ON.trace(trace), scores)
        read += 1
    return FromStore(pool.choose(), read, more)


def stored_records(
    store: Store, project: int, ids: Iterable[int]
) -> Iterator[tuple[Trace, list[Score]]]:
    """Yield records with their valid scores; records that retention deleted are left out."""
    listed = list(dict.fromkeys(ids))
    for some in (listed[at : at + _BATCH] for at in range(0, len(listed), _BATCH)):
        with store.read() as connection:
            query = select(conversation).where(
                conversation.c.project == project, conversation.c.id.in_(some)
            )
            rows = {row["id"]: row for row in connection.execute(query).mappings()}
            scores: dict[int, list[Score]] = defaultdict(list)
            for part in slices(some):
                query = select(score).where(
                    score.c.project == project,
                    score.c.conversation.in_(part),
                    score.c.status.in_(["passed", "failed"]),
                    score.c.replaced_by.is_(None),
                )
                for row in connection.execute(query.order_by(score.c.id)).mappings():
                    of = rows.get(row["conversation"])
                    if of is not None and of["version"] == row["version"]:
                        scores[of["id"]].append(score_of(row))
        places = {id_: Place(row["day"], row["place"]) for id_, row in rows.items()}
        bodies = store.bodies.get(places.values())
        for id_ in some:
            body = bodies.get(places[id_]) if id_ in places else None
            if body is not None:
                yield decode(body), scores[id_]
