"""Adds scores after their conversation was read: those of judges and of rescores.

Rows are only added. Verdicts and hourly sums are updated by the scores that count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select, update

from baton.model.score import case_status

from .database import add_rows
from .rows import Row, Sums, give_verdicts, issues_due, slices
from .schema import conversation, dispatch, score

Key = tuple[str, str]
"""The object of a rule's score: the evaluator, and the subject as in its row."""


def add_scores(
    connection: Connection,
    project: int,
    conversation_id: int,
    version: int,
    rows: Sequence[Row],
) -> None:
    """Add scores that came later, such as those of judges.

    ``rows`` are as in :class:`Reading`. Verdicts and sums are updated if the version is still the
    current one; scores of an older version are only stored.
    """
    if not rows:
        return
    locked = lock(connection, project, [conversation_id]).get(conversation_id)
    if locked is None:
        return
    sums = Sums()
    if locked["version"] == version:
        change_scores(connection, locked, rows, (), sums)
        sums.write(connection, project)
    else:
        of = {"project": project, "conversation": conversation_id, "version": version}
        add_rows(connection, score, [{**of, **row} for row in rows])


def lock(connection: Connection, project: int, ids: Sequence[int]) -> dict[int, Row]:
    """Return rows of conversations by number, locked until the end of the transaction.

    All workers lock rows in the same order, so that there is no deadlock.
    """
    query = select(conversation).where(
        conversation.c.project == project, conversation.c.id.in_(ids)
    )
    query = query.order_by(conversation.c.id).with_for_update()
    return {row["id"]: dict(row) for row in connection.execute(query).mappings()}


def change_scores(
    connection: Connection,
    of: Row,
    rows: Sequence[Row],
    replaced: Sequence[Row],
    sums: Sums,
    rescore: int | None = None,
) -> None:
    """Add scores to the current version of a conversation, and update its verdicts.

    ``of`` is its locked row, which is updated. ``replaced`` are its scores that no longer count,
    because a ``rescore`` gave others; they stay, with its number. ``sums`` collect the changes, and
    the caller writes them.
    """
    ids = {"project": of["project"], "conversation": of["id"]}
    scores = [{**ids, "version": of["version"], **row, "rescore": rescore} for row in rows]
    for some in slices(row["id"] for row in replaced):
        change = update(score).where(score.c.project == of["project"], score.c.id.in_(some))
        connection.execute(change.values(replaced_by=rescore))
    add_rows(connection, score, scores)
    mine = (dispatch.c.project == of["project"]) & (dispatch.c.conversation == of["id"])
    dispatches = [dict(row) for row in connection.execute(select(dispatch).where(mine)).mappings()]
    sums.add(of, dispatches, replaced, sign=-1, with_dispatches=False)
    sums.add(of, dispatches, scores, with_dispatches=False)
    if any(row["status"] == "failed" for row in (*scores, *replaced)):
        issues_due(connection, of["project"], [of["id"]])
    current = select(score.c.dispatch, score.c.status).where(
        score.c.project == of["project"],
        score.c.conversation == of["id"],
        score.c.version == of["version"],
        score.c.replaced_by.is_(None),
    )
    counted = [row._asdict() for row in connection.execute(current)]
    before = {row["id"]: row["verdict"] for row in dispatches}
    for row in dispatches:
        row["verdict"] = None
    give_verdicts(dispatches, counted)
    for row in dispatches:
        if row["verdict"] != before[row["id"]]:
            one = update(dispatch).where(mine, dispatch.c.id == row["id"])
            connection.execute(one.values(verdict=row["verdict"]))
    statuses = [row["status"] for row in counted]
    row_of = (conversation.c.project == of["project"]) & (conversation.c.id == of["id"])
    change = update(conversation).where(row_of)
    now = {
        "verdict": case_status(statuses) if statuses else None,
        "failed": statuses.count("failed"),
    }
    connection.execute(change.values(now))
    sums.conversation(of, -1)
    of.update(now)
    sums.conversation(of, 1)


class Change(NamedTuple):
    """How many scores were added and replaced."""

    added: int
    replaced: int


def replace_scores(
    connection: Connection,
    of: Row,
    current: Sequence[Row],
    rows: Sequence[Row],
    kept: Collection[Key] | None,
    sums: Sums,
    rescore: int,
) -> Change:
    """Replace the scores of a rule that differ from the new ones; equal scores stay.

    ``current`` are the rule's scores of this conversation that count. Those whose object is neither
    among the new ones nor in ``kept`` no longer count, because the rule no longer scores that
    object. With ``None``, all others are kept.
    """
    new: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        new[key_of(row)].append(row)
    old: dict[Key, list[Row]] = defaultdict(list)
    for row in current:
        old[key_of(row)].append(row)
    added: list[Row] = []
    replaced: list[Row] = []
    for key, some in new.items():
        before = old.pop(key, [])
        if len(some) != len(before) or not all(map(is_same, some, before)):
            added += some
            replaced += before
    for key, before in old.items():
        if kept is not None and key not in kept:
            replaced += before
    if added or replaced:
        change_scores(connection, of, added, replaced, sums, rescore)
    return Change(len(added), len(replaced))


def key_of(row: Row) -> Key:
    """Return the object of a rule's score."""
    return row["evaluator"], row["subject"]


def is_same(new: Row, old: Row) -> bool:
    """Return whether two scores say the same, and were made in the same way."""
    same = ("status", "value", "threshold", "sampled")
    return made_alike(old, new["made_by"], new["evaluator_version"]) and all(
        new[name] == old[name] for name in same
    )


def made_alike(row: Row, made_by: str, version: str) -> bool:
    """Return whether a stored score was made in this way; old scores have only the version."""
    if row["made_by"] is None:
        return bool(row["evaluator_version"] == version)
    return bool(row["made_by"] == made_by)


def current_scores(
    connection: Connection, project: int, rule: str, versions: Iterable[tuple[int, int]]
) -> dict[int, list[Row]]:
    """Return the current scores of a rule, by conversation; each is given with its version."""
    wanted = dict(versions)
    rows: dict[int, list[Row]] = defaultdict(list)
    for some in slices(wanted):
        query = select(score).where(
            score.c.project == project,
            score.c.conversation.in_(some),
            score.c.rule == rule,
            score.c.replaced_by.is_(None),
        )
        for row in connection.execute(query.order_by(score.c.id)).mappings():
            if row["version"] == wanted[row["conversation"]]:
                rows[row["conversation"]].append(dict(row))
    return rows
