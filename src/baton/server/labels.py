"""People's labels as rows of the store."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from sqlalchemy import insert, select

from baton.datasets.labels import Label, LabelLine
from baton.evaluators.judged import Judged
from baton.evaluators.judging.rubric_files import names_of
from baton.formats.document import Document
from baton.model import InputError
from baton.runner.judged_subjects import terms_of
from baton.session.server_rows import Page
from baton.stats.calibration import people_class

from .access import Caller
from .paging import cursor_of, read_cursor
from .review import let_go, opinion_of, person
from .schema import conversation, score
from .schema import label as table
from .store import Store


def labels_of(
    store: Store,
    project: int,
    *,
    conversation_id: int | None = None,
    rubric: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[Label]:
    """Return labels, the latest first.

    Raises:
        InputError: the cursor is not of a list of labels.
    """
    after = read_cursor(cursor, tuple[int])
    query = (
        select(table, conversation.c.key, table.c.id.label("order_0"))
        .join(conversation, conversation.c.id == table.c.conversation)
        .where(table.c.project == project, conversation.c.project == project)
        .order_by(table.c.id.desc())
        .limit(limit + 1)
    )
    if after is not None:
        query = query.where(table.c.id < after[0])
    if conversation_id is not None:
        query = query.where(table.c.conversation == conversation_id)
    if rubric is not None:
        query = query.where(table.c.rubric == rubric)
    with store.read() as connection:
        rows = connection.execute(query).mappings().all()
    items = [
        Label(
            trace=row["key"],
            subject=None if row["subject"] == row["key"] else row["subject"],
            rubric=row["rubric"],
            value=msgspec.json.decode(row["value"]),
            by=row["by"],
            at=datetime.fromtimestamp(row["at"], UTC).isoformat().replace("+00:00", "Z"),
            note=row["note"],
            origin=row["origin"],
        )
        for row in rows[:limit]
    ]
    return Page(items=items, next=cursor_of(rows, limit))


_COMPARED = 5000
"""Maximum pairs of a label and a verdict that are read, the newest ones: a page shows the share, so
an old rubric with very many labels must not make it slow."""


class Agreement(NamedTuple):
    """How many of people's ``labels`` agree with the judge's verdict (``same``)."""

    labels: int
    same: int


def agreement_with_people(store: Store, project: int, evaluator: Judged) -> Agreement:
    """Compare the verdicts of a rubric with people's labels on the same things.

    A label of the rubric, or a number on its scale, counts as passed or failed; only each person's
    newest counts. `baton calibrate` returns the figures with intervals.
    """
    terms = terms_of(evaluator)
    query = (
        select(table.c.conversation, table.c.subject, table.c.by, table.c.value, score.c.status)
        .join(
            score,
            (score.c.conversation == table.c.conversation) & (score.c.dispatch == table.c.subject),
        )
        .where(
            table.c.project == project,
            score.c.project == project,
            table.c.rubric.in_(names_of(evaluator.shape)),
            score.c.type == evaluator.type,
            score.c.status.in_(["passed", "failed"]),
            score.c.replaced_by.is_(None),
        )
        .order_by(table.c.id.desc(), score.c.id.desc())
        .limit(_COMPARED)
    )
    with store.read() as connection:
        rows = connection.execute(query).all()
    newest: dict[tuple[int, str, str | None], bool] = {}
    for row in rows:
        stated = opinion_of(msgspec.json.decode(row.value), terms)
        label = None if stated is None else people_class(stated, "verdicts", terms)
        if label is not None:
            newest.setdefault((row.conversation, row.subject, row.by), label == row.status)
    return Agreement(len(newest), sum(newest.values()))


def add_label(store: Store, caller: Caller, body: bytes, now: float | None = None) -> Label:
    """Store a label: one line as in a file of labels, about a conversation of the caller's project.

    It gets the current time; ``by`` is the caller if no one else is named, or if a proxy identifies
    the caller.

    Raises:
        InputError: it is not a label, or there is no such conversation.
    """
    line = Document("body", body, "json").decode(LabelLine).as_label()
    at = time.time() if now is None else now
    by = person(caller, line.by)
    query = select(conversation.c.id)
    query = query.where(conversation.c.project == caller.project, conversation.c.key == line.trace)
    with store.write() as connection:
        number = connection.execute(query).scalar()
        if number is None:
            raise InputError(f"there is no conversation `{line.trace}` in this project")
        row = {
            "project": caller.project,
            "conversation": number,
            "subject": line.what,
            "rubric": line.rubric,
            "value": msgspec.json.encode(line.value).decode(),
            "by": by,
            "at": at,
            "note": line.note,
            "origin": line.origin or "api",
        }
        connection.execute(insert(table).values(row))
        let_go(connection, caller.project, (number, str(line.what)), by)
    stated = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
    return msgspec.structs.replace(line, by=by, at=stated, origin=row["origin"])
