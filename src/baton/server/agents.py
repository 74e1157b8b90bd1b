"""Agents of a project: counts, versions, scores over time, and worst dispatches.

Counts of dispatches and scores come from the hourly sums, which are kept after the data they
summarise is deleted. An agent's instructions, tools and model come from the records that still
exist.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, and_, func, select

from baton.model import AgentCard
from baton.model.filter import Filter, Term
from baton.session.server_rows import (
    AgentAxis,
    AgentRow,
    AgentVersion,
    CheckpointPoint,
    DispatchRow,
    Edge,
    FailedDispatch,
    FailedScore,
    Interval,
)

from .bodies import BodyGone
from .conversations import cards_of
from .paging import at_of
from .queries import dispatches
from .schema import conversation, run, score
from .store import Store
from .sums import HOURS, edges

_HOUR = 3600
_RECORDS = 12
"""Maximum records to read for an agent's instructions, tools and model: each takes some
milliseconds."""
_RUNS = 20_000
"""The number of newest runs whose scores form a trend by model: the hourly sums have no models."""
_FAILED = 200
"""The number of newest failed dispatches from which the worst are chosen."""


def agents(
    store: Store,
    project: int,
    *,
    since: float | None = None,
    until: float | None = None,
    name: str | None = None,
    between: Sequence[Edge] | None = None,
) -> list[AgentRow]:
    """Return the agents that ran or got dispatches, the busiest first.

    With a ``name``, return only that agent. ``between`` are the edges of this time, if the caller
    already has them.
    """
    with store.read() as connection:
        ran = _ran(connection, project, name, since, until)
    received: dict[str, list[Edge]] = defaultdict(list)
    sent: dict[str, int] = defaultdict(int)
    if between is None:
        between = edges(store, project, since=since, until=until)
    for edge in between:
        received[edge.to_agent].append(edge)
        if edge.from_agent is not None:
            sent[edge.from_agent] += edge.dispatches
    rows = [
        _agent(each, ran.get(each), received.get(each, ()), sent.get(each, 0))
        for each in {*ran, *received, *sent}
        if name in (None, each)
    ]
    return sorted(rows, key=lambda row: (-(row.runs or row.received), row.name))


def _ran(
    connection: Connection,
    project: int,
    name: str | None,
    since: float | None,
    until: float | None,
) -> dict[str, RowMapping]:
    """Return for each agent the number of runs, and the first and last time.

    Names, first and last times are index lookups, and only runs of this time are counted: grouping
    all runs takes a second if there are a few million.
    """
    mine = run.c.project == project
    least = select(func.min(run.c.agent).label("name")).where(mine)
    if name is not None:
        least = least.where(run.c.agent == name)
    names = least.cte(recursive=True)
    after = least.where(run.c.agent > names.c.name).scalar_subquery()
    names = names.union_all(select(after).where(names.c.name.is_not(None)))
    chosen = [mine, run.c.agent == names.c.name]
    if since is not None:
        chosen.append(run.c.started >= since)
    if until is not None:
        chosen.append(run.c.started < until)
    figures = {
        "runs": func.count(),
        "first": func.min(run.c.started),
        "last": func.max(run.c.started),
    }
    query = select(
        names.c.name,
        *(
            select(figure).select_from(run).where(*chosen).scalar_subquery().label(word)
            for word, figure in figures.items()
        ),
    ).where(names.c.name.is_not(None))
    rows = connection.execute(query).mappings()
    return {row["name"]: row for row in rows if row["runs"]}


def _agent(name: str, ran: RowMapping | None, received: Sequence[Edge], sent: int) -> AgentRow:
    counts = [each for edge in received for each in edge.evaluators]
    costs = [edge.cost_usd for edge in received if edge.cost_usd is not None]
    return AgentRow(
        name=name,
        runs=0 if ran is None else int(ran["runs"]),
        first=None if ran is None else at_of(ran["first"]),
        last=None if ran is None else at_of(ran["last"]),
        received=sum(edge.dispatches for edge in received),
        sent=sent,
        failed_dispatches=sum(edge.failed for edge in received),
        passed=sum(each.passed for each in counts),
        failed=sum(each.failed for each in counts),
        cost_usd=sum(costs) if costs else None,
    )


def versions(store: Store, project: int, agent: str) -> list[AgentVersion]:
    """Return the versions of an agent, the newest first, as far as recorded.

    A version begins where the stated version, the model, the instructions or the tools differ from
    the previous ones. Records are examined where the stated version or the model changed, and at
    some points between, so a change that was soon reverted may be missed. ``card`` is ``None`` if
    the records of that time are deleted or have no such data.
    """
    mine = (run.c.project == project, run.c.agent == agent)
    by_checkpoint = (
        select(
            run.c.agent_version,
            run.c.model,
            func.count().label("runs"),
            func.min(run.c.started).label("first"),
            func.max(run.c.started).label("last"),
            func.sum(run.c.cost_usd).label("cost"),
            func.min(run.c.conversation).label("oldest"),
            func.max(run.c.conversation).label("newest"),
        )
        .where(*mine)
        .group_by(run.c.agent_version, run.c.model)
        .order_by(func.max(run.c.started).desc())
    )
    made: list[AgentVersion] = []
    with store.read() as connection:
        checkpoints = list(connection.execute(by_checkpoint.limit(_RECORDS)).mappings())
        each_has = max(2, _RECORDS // max(1, len(checkpoints)))
        looked = [_spread(connection, project, agent, row, each_has) for row in checkpoints]
    for row, ids in zip(checkpoints, looked, strict=True):
        cards: list[tuple[int, AgentCard | None]] = []
        for id_ in ids:  # the newest first
            card = _card(store, project, id_, agent)
            if not cards or (card is not None and card != cards[-1][1]):
                if cards and cards[-1][1] is None:
                    cards.pop()
                cards.append((id_, card))
        for place, (id_, card) in enumerate(cards):
            alone = len(cards) == 1
            made.append(
                AgentVersion(
                    version=row["agent_version"],
                    model=row["model"] or (card.model if card else None),
                    runs=int(row["runs"]) if alone else None,
                    first=at_of(row["first"]) if alone or place == len(cards) - 1 else None,
                    last=at_of(row["last"]) if place == 0 else None,
                    cost_usd=row["cost"] if alone else None,
                    conversation_id=id_,
                    card=card,
                )
            )
    return made


def _spread(
    connection: Connection, project: int, agent: str, row: RowMapping, most: int
) -> list[int]:
    """Return some conversations of one version, the newest first: both ends, and some between."""
    oldest, newest = row["oldest"], row["newest"]
    mine = [
        run.c.project == project,
        run.c.agent == agent,
        run.c.agent_version.is_(None)
        if row["agent_version"] is None
        else run.c.agent_version == row["agent_version"],
        run.c.model.is_(None) if row["model"] is None else run.c.model == row["model"],
    ]
    chosen = {newest, oldest}
    first, last = row["first"], row["last"]
    if first is not None and last is not None and first < last:
        for step in range(1, most - 1):
            at = first + (last - first) * step / (most - 1)
            query = select(run.c.conversation).where(*mine, run.c.started >= at)
            chosen.add(connection.execute(query.order_by(run.c.started).limit(1)).scalar_one())
    return sorted(chosen, reverse=True)


def _card(store: Store, project: int, id_: int, agent: str) -> AgentCard | None:
    """Return the card of an agent in the record of a conversation; ``None`` if there is none."""
    try:
        card = cards_of(store, project, id_).get(agent)
    except BodyGone:
        return None
    return None if card == AgentCard() else card


def axes(
    store: Store,
    project: int,
    agent: str,
    *,
    interval: Interval = "day",
    since: float | None = None,
    until: float | None = None,
    now: float | None = None,
) -> list[AgentAxis]:
    """Return the scores of an agent over time, by evaluator and by checkpoint (version and model).

    The scores are those of the newest 20,000 conversations the agent took part in since then, by
    default in the last 90 days. A step starts at ``at`` (UTC); steps without a verdict are left
    out.
    """
    step = HOURS[interval] * _HOUR
    current = time.time() if now is None else now
    begin = current - 90 * 24 * _HOUR if since is None else since
    end = current if until is None else until
    query = _checkpoints(project, agent, begin, end)
    place = func.floor((query.c.at - _MONDAY) / step).label("place")
    rows = (
        select(
            score.c.evaluator,
            query.c.agent_version,
            query.c.model,
            place,
            score.c.status,
            func.count().label("count"),
        )
        .select_from(query)
        .join(
            conversation,
            and_(conversation.c.project == project, conversation.c.id == query.c.conversation),
        )
        .join(
            score,
            and_(
                score.c.project == project,
                score.c.conversation == query.c.conversation,
                score.c.version == conversation.c.version,
                score.c.replaced_by.is_(None),
                score.c.to_agent == agent,
                score.c.sampled,
                score.c.status.in_(("passed", "failed")),
            ),
        )
        .group_by(score.c.evaluator, query.c.agent_version, query.c.model, place, score.c.status)
    )
    counts: dict[tuple[str, str | None, str | None], dict[int, dict[str, int]]] = {}
    with store.read() as connection:
        for row in connection.execute(rows).mappings():
            key = row["evaluator"], row["agent_version"], row["model"]
            at = counts.setdefault(key, {}).setdefault(int(row["place"]), {})
            at[row["status"]] = int(row["count"])
    return [
        AgentAxis(
            evaluator=evaluator,
            version=version,
            model=model,
            points=[
                CheckpointPoint(
                    at=place_ * step + _MONDAY,
                    passed=at.get("passed", 0),
                    failed=at.get("failed", 0),
                )
                for place_, at in sorted(places.items())
            ],
        )
        for (evaluator, version, model), places in sorted(
            counts.items(), key=lambda item: tuple(each or "" for each in item[0])
        )
    ]


_MONDAY = 4 * 24 * _HOUR
"""The first Monday since the epoch: weeks begin on Mondays."""


def _checkpoints(project: int, agent: str, begin: float, end: float) -> Any:
    """Return the newest conversations with an agent, each with its version and model there."""
    newest: Select[Any] = (
        select(run.c.conversation, run.c.agent_version, run.c.model, run.c.started)
        .where(
            run.c.project == project,
            run.c.agent == agent,
            run.c.started >= begin,
            run.c.started < end,
        )
        .order_by(run.c.started.desc())
        .limit(_RUNS)
    )
    some = newest.subquery()
    # An agent that ran several times in a conversation has one row, so that scores count once.
    return (
        select(
            some.c.conversation,
            func.max(some.c.agent_version).label("agent_version"),
            func.max(some.c.model).label("model"),
            func.min(some.c.started).label("at"),
        )
        .group_by(some.c.conversation)
        .subquery()
    )


def worst_dispatches(
    store: Store, project: int, agent: str, *, limit: int = 10
) -> list[FailedDispatch]:
    """Return dispatches to an agent that failed most evaluators, then the newest."""
    to = Term(field="to", any_of=(agent,), exact=True)
    failed: list[DispatchRow] = []
    for verdict in ("failed", "error"):
        chosen = Filter(terms=(to, Term(field="verdict", any_of=(verdict,))))
        failed += dispatches(store, project, chosen, limit=_FAILED).items
    why: dict[tuple[int, str], list[FailedScore]] = defaultdict(list)
    ids = {row.conversation_id for row in failed}
    query = (
        select(
            score.c.conversation,
            score.c.dispatch,
            score.c.evaluator,
            score.c.status,
            score.c.reason,
            score.c.finding,
        )
        .join(
            conversation,
            and_(conversation.c.project == project, conversation.c.id == score.c.conversation),
        )
        .where(
            score.c.project == project,
            score.c.conversation.in_(ids),
            score.c.version == conversation.c.version,
            score.c.replaced_by.is_(None),
            score.c.to_agent == agent,
            score.c.status.in_(("failed", "error")),
        )
        .order_by(score.c.id)
    )
    with store.read() as connection:
        for row in connection.execute(query).mappings():
            why[row["conversation"], row["dispatch"]].append(
                FailedScore(
                    evaluator=row["evaluator"],
                    status=row["status"],
                    reason=row["reason"],
                    finding=row["finding"],
                )
            )
    listed = [
        FailedDispatch(dispatch=row, scores=why[row.conversation_id, row.id]) for row in failed
    ]
    listed.sort(
        key=lambda one: (
            -len(one.scores),
            -(one.dispatch.started.timestamp() if one.dispatch.started else 0.0),
        )
    )
    return listed[:limit]
