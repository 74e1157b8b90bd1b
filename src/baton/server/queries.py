"""Conversations, dispatches and scores of a store, by filter and cursor.

Lists are in order of time, the newest first, and continue after a cursor, so new rows do not shift
pages. Filters are those of rules and of ``--filter`` (:mod:`baton.model.filter`).
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice, product
from typing import Any, NamedTuple, get_args

import msgspec
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Table,
    Text,
    and_,
    case,
    exists,
    func,
    not_,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.sql import visitors

from baton.model import InputError, Trace
from baton.model.filter import (
    NUMBER,
    SECONDS,
    TEXT,
    TIME,
    Bound,
    Field,
    Fields,
    Filter,
    Term,
    filter_of,
)
from baton.model.score import STATUSES
from baton.model.trace import DispatchKind, DispatchStatus, TurnStatus
from baton.session.server_rows import (
    Conversation,
    ConversationRecord,
    ConversationSums,
    Deletion,
    DispatchRow,
    Page,
    ScoreRow,
    UnknownRule,
)

from .bodies import Place, gone
from .conversations import decode
from .paging import at_of, cursor_after, cursor_of, read_cursor, row_as
from .rows import CONVERSATION_FIGURES, DAY, NO_DAY, narrow
from .schema import conversation, conversation_sum, deletion, dispatch, run, score
from .store import Store

_FEW = 5000
"""Up to this many matching rows are collected and sorted. With more, a list is scanned from its
newest row on, as one of the next rows will match."""
_DRIVERS = 20
"""Maximum values of a field that are queried one by one, each by its index."""
_STARS = 8
"""Maximum stars of a glob: databases try each position for each of them."""
_NAMES = 10_000
"""Maximum different names that a glob is compared with."""
_SEARCH_SECONDS = 1.0
"""Maximum seconds of a text search; the next page continues where it stopped."""
_BATCH = 200
"""The number of records that a search reads at once."""


_VERDICT = Field(values=STATUSES)
_SCORE_FIELDS: Fields = {"evaluator": TEXT, "rule": TEXT, "finding": TEXT}
_KINDS = Field(values=get_args(DispatchKind))
_HAS_DISPATCH: Fields = {"to": TEXT, "from": TEXT, "kind": _KINDS, "depth": NUMBER}
CONVERSATION_FIELDS: Fields = {
    "conversation": TEXT,
    "agent": TEXT,
    **_HAS_DISPATCH,
    **_SCORE_FIELDS,
    "verdict": _VERDICT,
    "state": Field(values=("open", "complete")),
    "status": Field(values=get_args(TurnStatus)),
    "service": TEXT,
    "source": TEXT,
    "framework": TEXT,
    "started": TIME,
    "duration": SECONDS,
    "tokens": NUMBER,
    "cost": NUMBER,
    "turns": NUMBER,
    "runs": NUMBER,
    "dispatches": NUMBER,
}
"""The fields for filtering conversations. ``to``, ``from``, ``kind`` and ``depth`` refer to one of
its dispatches; with ``evaluator``, ``rule`` or ``finding``, ``verdict`` refers to one such
score."""
DISPATCH_FIELDS: Fields = {
    "conversation_id": NUMBER,
    **_HAS_DISPATCH,
    **_SCORE_FIELDS,
    "verdict": _VERDICT,
    "mode": Field(values=("foreground", "background", "unknown")),
    "basis": Field(values=("stated", "structure", "order")),
    "status": Field(values=get_args(DispatchStatus)),
    "service": TEXT,
    "version": TEXT,
    "started": TIME,
    "duration": SECONDS,
    "tokens": NUMBER,
    "cost": NUMBER,
}
"""The fields for filtering dispatches; ``version`` is that of the receiver."""
SCORE_FIELDS: Fields = {
    "conversation_id": NUMBER,
    **_SCORE_FIELDS,
    "verdict": _VERDICT,
    "unit": TEXT,
    "to": TEXT,
    "from": TEXT,
    "version": TEXT,
    "at": TIME,
    "value": NUMBER,
}
"""The fields for filtering scores."""


_Columns = dict[str, ColumnElement[Any]]


def _figures(table: Table) -> _Columns:
    """Return the numeric columns of a table."""
    tokens = func.coalesce(table.c.input_tokens, 0) + func.coalesce(table.c.output_tokens, 0)
    unknown = and_(table.c.input_tokens.is_(None), table.c.output_tokens.is_(None))
    return {
        "started": table.c.started,
        "duration": table.c.ended - table.c.started,
        "tokens": case((unknown, None), else_=tokens),
        "cost": table.c.cost_usd,
    }


_CONVERSATION_COLUMNS: _Columns = {
    "conversation": conversation.c.key,
    **{
        name: conversation.c[name]
        for name in ("state", "status", "service", "source", "framework", "verdict", "turns")
    },
    "runs": conversation.c.runs,
    "dispatches": conversation.c.dispatches,
    **_figures(conversation),
}
_DISPATCH_COLUMNS: _Columns = {
    "conversation_id": dispatch.c.conversation,
    "to": dispatch.c.to_agent,
    "from": dispatch.c.from_agent,
    "version": dispatch.c.agent_version,
    **{
        name: dispatch.c[name]
        for name in ("kind", "depth", "mode", "basis", "status", "service", "verdict")
    },
    **_figures(dispatch),
}
_SCORE_COLUMNS: _Columns = {
    "conversation_id": score.c.conversation,
    "to": score.c.to_agent,
    "from": score.c.from_agent,
    "version": score.c.agent_version,
    "verdict": score.c.status,
    **{name: score.c[name] for name in ("evaluator", "rule", "finding", "unit", "at", "value")},
}


class Condition:
    """Conditions of a list about one project.

    ``few`` is set if one of them matches few rows, which are then gathered and sorted.
    """

    def __init__(self, connection: Connection, project: int, columns: _Columns) -> None:
        self._connection = connection
        self._project = project
        self._columns = columns
        self.all: list[ColumnElement[bool]] = []
        self.few = False

    def add(self, terms: Iterable[Term], fields: Fields) -> None:
        """Add terms about columns of the list itself."""
        self.all += [self.of(self._columns[each.field], each, fields) for each in terms]

    def add_about(
        self,
        table: Table,
        conditions: Sequence[ColumnElement[bool]],
        links: Sequence[tuple[ColumnElement[Any], ColumnElement[Any]]],
        further: ColumnElement[bool] | None = None,
    ) -> None:
        """Require a row of another table.

        ``links`` are its columns and the equal columns of the list; ``further`` must hold as well,
        and is not worth checking when rows are gathered.
        """
        theirs, own = zip(*links, strict=True)
        rows = select(*theirs).where(table.c.project == self._project, *conditions)
        same = [left == right for left, right in links]
        more = [] if further is None else [further]
        some = rows.limit(_FEW + 1).subquery()
        counted = self._connection.execute(select(func.count()).select_from(some)).scalar() or 0
        if counted <= _FEW:
            self.few = True
            self.all.append((own[0] if len(own) == 1 else tuple_(*own)).in_(rows))
        if counted > _FEW or more:
            terms_about = [_by_no_index(each, table) for each in conditions]
            there = select(*theirs).where(
                table.c.project == self._project, *same, *terms_about, *more
            )
            self.all.append(exists(there))

    def of(self, column: ColumnElement[Any], term: Term, fields: Fields) -> ColumnElement[bool]:
        """Return a term about a column; unknown values match none."""
        field = fields[term.field]
        if term.bounds:
            return or_(
                *(
                    and_(*(column.op(sign, is_comparison=True)(n) for sign, n in bounds))
                    for bounds in term.bounds
                )
            )
        if field.values:
            return column.in_([value for value in field.values if term.meets(value)])
        wanted = [self._like(column, glob, term.exact) for glob in term.any_of] or [true()]
        refused = [not_(self._like(column, glob, term.exact)) for glob in term.none_of]
        return and_(column.is_not(None), or_(*wanted), *refused)

    def names(self, column: ColumnElement[Any], terms: Sequence[Term], field: Field) -> list[str]:
        """Return the values of an indexed column that match terms.

        Raises:
            InputError: there are too many to compare a glob with.
        """
        values: Iterable[str] = field.values
        if not values:
            literals = [each for each in terms if each.any_of and _is_literal(each)]
            values = literals[0].any_of if literals else self.different(column)
        return [name for name in values if all(term.meets(name) for term in terms)]

    def different(self, column: ColumnElement[Any]) -> Iterator[str]:
        """Yield the different values of an indexed column, each with one lookup in the index."""
        table: Table = column.table
        least = select(func.min(column).label("name")).where(table.c.project == self._project)
        step = least.cte(recursive=True)
        after = least.where(column > step.c.name).scalar_subquery()
        step = step.union_all(select(after).where(step.c.name.is_not(None)))
        query = select(step.c.name).where(step.c.name.is_not(None)).limit(_NAMES + 1)
        names = self._connection.execute(query).scalars().all()
        if len(names) > _NAMES:
            raise InputError(f"there are over {_NAMES:,} names: write one in full, without `*`")
        yield from names

    def _like(self, column: ColumnElement[Any], glob: str, exact: bool) -> ColumnElement[bool]:
        same = column == glob
        if exact or not _MAGIC.search(glob):
            return same
        if glob.count("*") > _STARS or len(glob) > 1000:
            raise InputError(f"`{glob[:50]}` is too long for a glob, or has over {_STARS} stars")
        if self._connection.dialect.name == "sqlite":
            return or_(same, column.op("GLOB", is_comparison=True)(glob.replace("[!", "[^")))
        return or_(same, column.op("~", is_comparison=True)(_as_regex(glob)))


def _by_no_index(condition: ColumnElement[bool], table: Table) -> ColumnElement[bool]:
    """Return a condition for which no index is used.

    SQLite has no statistics: to find out whether a conversation has a run of an agent, it would
    examine all runs of that agent, once for each conversation, instead of the few of the
    conversation.
    """

    def replaced(element: Any, **_: Any) -> Any:
        if isinstance(element, Column) and element.table is table:
            return element.concat("") if isinstance(element.type, Text) else element + 0
        return None

    return visitors.replacement_traverse(condition, {}, replaced)


def _newest(
    connection: Connection,
    query: Select[Any],
    order: Sequence[ColumnElement[Any]],
    condition: Condition,
    after: Sequence[Any] | None,
    limit: int,
    drivers: Sequence[tuple[ColumnElement[Any], list[str]]] = (),
) -> list[RowMapping]:
    """Return the newest rows, those of ``order`` descending; each has it as ``order_0`` and so on.

    ``drivers`` are columns that together have an index in this order, each with the wanted values.
    They are queried one by one, because a database would sort all rows of several.
    """
    query = query.add_columns(*(each.label(f"order_{n}") for n, each in enumerate(order)))
    if after is not None:
        query = query.where(tuple_(*order) < tuple_(*after))
    # If few rows match, they are collected by the condition and not in the order of the list, which
    # is sorted by a sum without an index.
    first = order[0] + 0 if condition.few else order[0]
    query = query.order_by(first.desc(), *(each.desc() for each in order[1:])).limit(limit)
    wanted = list(product(*(values for _, values in drivers)))
    if not drivers or condition.few or len(wanted) > _DRIVERS:
        return list(connection.execute(query.where(*condition.all)).mappings())
    columns = [column for column, _ in drivers]
    table = columns[0].table
    query = query.where(*(_by_no_index(each, table) for each in condition.all))
    rows = [
        row
        for values in wanted
        for row in connection.execute(
            query.where(*(each == value for each, value in zip(columns, values, strict=True)))
        ).mappings()
    ]
    if len(wanted) > 1:
        rows.sort(key=lambda row: [row[f"order_{n}"] for n in range(len(order))], reverse=True)
    return rows[:limit]


def conversations(
    store: Store,
    project: int,
    chosen: Filter,
    *,
    text: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[Conversation]:
    """Return conversations, the newest first, that meet a filter over ``CONVERSATION_FIELDS``.

    ``text`` is searched for, ignoring case, in the texts of users, agents and tools. A search takes
    about a second; the next page continues where it stopped.

    Raises:
        InputError: the cursor is not of a list of conversations.
    """
    after = read_cursor(cursor, tuple[float, int])
    with store.read() as connection:
        query, condition, drivers = _conversations(connection, project, chosen)
        if text is None:
            rows = _newest(connection, query, _ORDER, condition, after, limit + 1, drivers)
            return Page(
                items=[conversation_of(row) for row in rows[:limit]], next=cursor_of(rows, limit)
            )
        matching: list[Conversation] = []
        until = time.monotonic() + _SEARCH_SECONDS
        more, row = True, None
        while more and len(matching) < limit and time.monotonic() < until:
            rows = _newest(connection, query, _ORDER, condition, after, _BATCH)
            more = len(rows) == _BATCH
            bodies = store.bodies.get(Place(each["day"], each["place"]) for each in rows)
            for row in rows:
                after = [row["order_0"], row["order_1"]]
                body = bodies.get(Place(row["day"], row["place"]))
                match = None if body is None else _search(body, text)
                if match is not None:
                    matching.append(conversation_of(row, match))
                    if len(matching) == limit:
                        more = more or row is not rows[-1]
                        break
    return Page(
        items=matching,
        next=cursor_after(after) if more and after is not None else None,
        searched_to=None if row is None else at_of(row["order_0"]),
    )


def conversation_sums(
    store: Store, project: int, chosen: Filter, *, most: int = 100_000
) -> ConversationSums:
    """Return sums over the conversations that meet a filter, over ``most`` of them at most.

    If the filter is only a time, whole days are read from stored sums, which cover any number of
    conversations.
    """
    since = _only_since(chosen)
    with store.read() as connection:
        if since is None:
            sums = _summed(connection, project, chosen, most)
            return _conversation_sums(sums, more=sums["count"] > most)
        day = math.ceil(since / DAY) if since > 0 else NO_DAY
        kept = _kept_sums(connection, project, day)
        if not chosen.terms or day * DAY == since:
            return _conversation_sums(kept)
        begun = Term(field="started", bounds=((Bound(">=", since), Bound("<", day * DAY)),))
        # By the index of lists: a known time is the one that they are ordered by.
        by_index = func.coalesce(conversation.c.started, conversation.c.seen)
        among = by_index >= since, by_index < day * DAY
        rest = _summed(connection, project, Filter(terms=(begun,)), most, among)
        sums = {name: kept[name] + rest[name] for name in kept}
        return _conversation_sums(sums, more=rest["count"] > most)


def _only_since(chosen: Filter) -> float | None:
    """Return the start of the chosen time, 0 for all conversations; ``None`` for other filters."""
    match chosen.terms:
        case ():
            return 0.0
        case (Term(field="started", bounds=((Bound(sign=">=", number=since),),)),) if since > 0:
            return float(since)
    return None


def _kept_sums(connection: Connection, project: int, day: int) -> dict[str, float]:
    table = conversation_sum.c
    sums = [func.sum(table[name]).label(name) for name in CONVERSATION_FIGURES]
    query = select(*sums).where(table.project == project, table.day >= day)
    row = connection.execute(query).mappings().one()
    return {name: row[name] or 0 for name in CONVERSATION_FIGURES}


def _summed(
    connection: Connection,
    project: int,
    chosen: Filter,
    most: int,
    among: Sequence[ColumnElement[bool]] = (),
) -> dict[str, float]:
    """Add up rows that meet a filter, one more than ``most``, under the names of kept sums."""
    _, condition, drivers = _conversations(connection, project, chosen)
    table = conversation.c
    some = select(
        table.state, table.verdict, table.dispatches, table.input_tokens,
        table.output_tokens, table.cost_usd, (table.ended - table.started).label("seconds"),
    ).where(table.project == project, *condition.all, *among)  # fmt: skip
    some = some.where(*(column.in_(values) for column, values in drivers))
    of = some.limit(most + 1).subquery().c

    def count(name: str, value: str) -> ColumnElement[int]:
        return func.sum(case((of[name] == value, 1), else_=0))

    figures: dict[str, ColumnElement[Any]] = {
        "count": func.count(),
        "opened": count("state", "open"),
        "passed": count("verdict", "passed"),
        "failed": count("verdict", "failed"),
        "errors": count("verdict", "error"),
        "dispatches": func.sum(of.dispatches),
        "input_tokens": func.sum(of.input_tokens),
        "input_known": func.count(of.input_tokens),
        "output_tokens": func.sum(of.output_tokens),
        "output_known": func.count(of.output_tokens),
        "cost_usd": func.sum(of.cost_usd),
        "cost_known": func.count(of.cost_usd),
        "seconds": func.sum(of.seconds),
        "seconds_known": func.count(of.seconds),
    }
    query = select(*(figure.label(name) for name, figure in figures.items()))
    row = connection.execute(query).mappings().one()
    return {name: row[name] or 0 for name in CONVERSATION_FIGURES}


def _conversation_sums(sums: Mapping[str, Any], *, more: bool = False) -> ConversationSums:
    def known(name: str, of: str) -> int | None:
        return int(sums[name]) if sums[of] else None

    return ConversationSums(
        conversations=int(sums["count"]) - more,
        more=more,
        open=int(sums["opened"]),
        passed=int(sums["passed"]),
        failed=int(sums["failed"]),
        errors=int(sums["errors"]),
        dispatches=int(sums["dispatches"]),
        input_tokens=known("input_tokens", "input_known"),
        output_tokens=known("output_tokens", "output_known"),
        cost_usd=float(sums["cost_usd"]) if sums["cost_known"] else None,
        seconds=float(sums["seconds"]) / int(sums["seconds_known"])
        if sums["seconds_known"]
        else None,
    )


def previews(store: Store, project: int, ids: Collection[int]) -> dict[int, str]:
    """Return the first words of some conversations, by their numbers, if there are any."""
    query = select(conversation.c.id, conversation.c.preview).where(
        conversation.c.project == project, conversation.c.id.in_(ids)
    )
    with store.read() as connection:
        return {row.id: row.preview for row in connection.execute(query) if row.preview}


def newest_conversation(store: Store, project: int) -> int:
    """Return the highest number of a conversation, 0 if there is none."""
    query = select(conversation.c.id).where(conversation.c.project == project)
    with store.read() as connection:
        return connection.execute(query.order_by(conversation.c.id.desc()).limit(1)).scalar() or 0


def conversations_after(
    store: Store, project: int, chosen: Filter, number: int, *, most: int = 100
) -> int:
    """Return how many conversations have a higher number, and match a filter."""
    with store.read() as connection:
        _, condition, drivers = _conversations(connection, project, chosen)
        new = select(conversation.c.id).where(
            conversation.c.project == project, conversation.c.id > number, *condition.all
        )
        new = new.where(*(column.in_(values) for column, values in drivers)).limit(most)
        return connection.execute(select(func.count()).select_from(new.subquery())).scalar() or 0


def values_of(store: Store, project: int, field: str, *, most: int = 500) -> list[str]:
    """Return values of a field of ``CONVERSATION_FIELDS``, as choices.

    For fields without an index, only values of the newest few thousand conversations are returned.
    """
    known = CONVERSATION_FIELDS[field]
    if known.values:
        return list(known.values)
    indexed = {
        "agent": run.c.agent,
        "to": dispatch.c.to_agent,
        "from": dispatch.c.from_agent,
        "evaluator": score.c.evaluator,
        "rule": score.c.rule,
        "finding": score.c.finding,
    }
    with store.read() as connection:
        condition = Condition(connection, project, _CONVERSATION_COLUMNS)
        if field in indexed:
            return list(islice(condition.different(indexed[field]), most))
        if known.kind != "text" or field == "conversation":
            return []
        column = _CONVERSATION_COLUMNS[field].label("value")
        newest = select(column).where(conversation.c.project == project)
        newest = newest.order_by(_ORDER[0].desc())
        values = set(connection.execute(newest.limit(_FEW)).scalars())
        return sorted(value for value in values if value is not None)[:most]


def conversation_rows(
    store: Store, project: int, chosen: Filter, *, limit: int, cursor: str | None = None
) -> list[RowMapping]:
    """Return rows of conversations, the newest first; :func:`after_row` continues after one.

    Raises:
        InputError: the cursor is not of a list of conversations.
    """
    after = read_cursor(cursor, tuple[float, int])
    with store.read() as connection:
        query, condition, drivers = _conversations(connection, project, chosen)
        return _newest(connection, query, _ORDER, condition, after, limit, drivers)


def after_row(row: RowMapping) -> str:
    """Return the cursor that continues after a row of conversations."""
    return cursor_after([row["order_0"], row["order_1"]])


_ORDER = (func.coalesce(conversation.c.started, conversation.c.seen), conversation.c.id)


def _conversations(
    connection: Connection, project: int, chosen: Filter
) -> tuple[Select[Any], Condition, list[tuple[ColumnElement[Any], list[str]]]]:
    """Return the query for conversations, the condition from a filter, and its drivers."""
    condition = Condition(connection, project, _CONVERSATION_COLUMNS)
    about_scores, terms = _about_scores(chosen)
    about_dispatches, terms = _split(terms, _HAS_DISPATCH)
    agents, terms = _split(terms, ("agent",))
    condition.add(terms, CONVERSATION_FIELDS)
    if about_scores:
        condition.add_about(
            score,
            [condition.of(_SCORE_COLUMNS[t.field], t, SCORE_FIELDS) for t in about_scores],
            [(score.c.conversation, conversation.c.id)],
            and_(score.c.version == conversation.c.version, score.c.replaced_by.is_(None)),
        )
    if about_dispatches:
        condition.add_about(
            dispatch,
            [condition.of(_DISPATCH_COLUMNS[t.field], t, _HAS_DISPATCH) for t in about_dispatches],
            [(dispatch.c.conversation, conversation.c.id)],
        )
    if agents:
        names = condition.names(run.c.agent, agents, TEXT)
        condition.add_about(
            run, [run.c.agent.in_(names)], [(run.c.conversation, conversation.c.id)]
        )
    own, _ = _split(terms, ("verdict",))
    verdicts = condition.names(conversation.c.verdict, own, _VERDICT)
    column: ColumnElement[Any] = conversation.c.verdict
    drivers = [(column, verdicts)] if own else []
    return select(conversation).where(conversation.c.project == project), condition, drivers


class Stored(NamedTuple):
    """A conversation whose record is read when it is needed.

    ``key`` changes when the conversation grows or its body is rewritten. ``deleted`` says why there
    is no record.
    """

    conversation: Conversation
    key: tuple[Any, ...]
    packed: Mapping[Place, bytes]
    place: Place
    deleted: str | None

    def record(self) -> Trace | None:
        """Read the record; ``None`` if retention deleted it."""
        return decode(self.packed[self.place]) if self.deleted is None else None


def stored_conversation(store: Store, project: int, id_: int) -> Stored | None:
    """Return a conversation without reading its record; ``None`` if there is no such number."""
    query = select(conversation).where(conversation.c.project == project, conversation.c.id == id_)
    before: Place | None = None
    while True:
        with store.read() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        place = Place(row["day"], row["place"])
        packed = store.bodies.get([place])
        deleted = None if place in packed else gone(place)
        if deleted is None or place == before:
            # A segment that is made again after retention numbers its bodies from 1 again.
            key = (project, id_, row["version"], row["state"], row["read"], *place)
            return Stored(conversation_of(row), key, packed, place, deleted)
        before = place  # a worker may have written a new version between the two reads


def one_conversation(store: Store, project: int, id_: int) -> ConversationRecord | None:
    """Return a conversation with its record; ``None`` if there is none of this number."""
    there = stored_conversation(store, project, id_)
    if there is None:
        return None
    return ConversationRecord(
        conversation=there.conversation, record=there.record(), deleted=there.deleted
    )


def dispatches(
    store: Store, project: int, chosen: Filter, *, limit: int = 50, cursor: str | None = None
) -> Page[DispatchRow]:
    """Return dispatches, the newest first, that meet a filter over ``DISPATCH_FIELDS``.

    Raises:
        InputError: the cursor is not of a list of dispatches.
    """
    after = read_cursor(cursor, tuple[float, int, str])
    query = select(dispatch).where(dispatch.c.project == project)
    with store.read() as connection:
        rows = _newest_dispatches(connection, project, query, chosen, after, limit + 1)
        items = _dispatch_rows(connection, project, rows[:limit])
    return Page(items=items, next=cursor_of(rows, limit))


def dispatch_keys(
    store: Store, project: int, chosen: Filter, *, limit: int, after: Sequence[Any] | None = None
) -> tuple[list[tuple[int, str]], Sequence[Any] | None]:
    """Return only the keys of dispatches that meet a filter, the newest first, and a cursor.

    A key is the number of a conversation and the id of a dispatch, for scans that find few of many.
    The cursor is ``None`` after the last ones.
    """
    query = select().where(dispatch.c.project == project)  # only the columns of the order
    with store.read() as connection:
        rows = _newest_dispatches(connection, project, query, chosen, after, limit)
    last = [rows[-1][f"order_{n}"] for n in range(3)] if len(rows) == limit else None
    return [(row["order_1"], row["order_2"]) for row in rows], last


def _newest_dispatches(
    connection: Connection,
    project: int,
    query: Select[Any],
    chosen: Filter,
    after: Sequence[Any] | None,
    limit: int,
) -> list[RowMapping]:
    condition, terms = _of_dispatches(connection, project, chosen)
    drivers: list[tuple[ColumnElement[Any], list[str]]] = []
    fields = {each.field for each in terms}
    # There are indexes for each edge, each receiver, sender and verdict, and each receiver with a
    # verdict: few of many dispatches to an agent fail.
    both = ("to", "verdict") if "from" not in fields else ("from", "to")
    for names in (both, ("verdict",)):
        for name in names if not drivers else ():
            own, _ = _split(terms, (name,))
            if own:
                column = _DISPATCH_COLUMNS[name]
                drivers.append((column, condition.names(column, own, DISPATCH_FIELDS[name])))
    order = (dispatch.c.started, dispatch.c.conversation, dispatch.c.id)
    return _newest(connection, query, order, condition, after, limit, drivers)


def dispatches_among(
    store: Store, project: int, chosen: Filter, keys: Sequence[tuple[int, str]]
) -> list[DispatchRow]:
    """Return which of the dispatches match a filter, in any order.

    ``keys`` are a few hundred numbers of conversations, each with the id of a dispatch.
    """
    # Without the numbers by themselves, SQLite reads all dispatches of the project.
    query = select(dispatch).where(
        dispatch.c.project == project,
        dispatch.c.conversation.in_({number for number, _ in keys}),
        tuple_(dispatch.c.conversation, dispatch.c.id).in_(keys),
    )
    with store.read() as connection:
        condition, _ = _of_dispatches(connection, project, chosen)
        clauses = [_by_no_index(each, dispatch) for each in condition.all]
        rows = connection.execute(query.where(*clauses)).mappings().all()
        return _dispatch_rows(connection, project, rows)


def dispatch_filter(text: str | None) -> Filter:
    """Read a filter over ``DISPATCH_FIELDS``; raises InputError for a wrong one."""
    return filter_of(text, DISPATCH_FIELDS)


def score_filter(text: str | None) -> Filter:
    """Read a filter over ``SCORE_FIELDS``; raises InputError for a wrong one."""
    return filter_of(text, SCORE_FIELDS)


def conversation_filter(text: str | None) -> Filter:
    """Read a filter over ``CONVERSATION_FIELDS``; raises InputError for a wrong one."""
    return filter_of(text, CONVERSATION_FIELDS)


def _of_dispatches(
    connection: Connection, project: int, chosen: Filter
) -> tuple[Condition, list[Term]]:
    """Return the condition of a filter, and its terms about dispatches themselves."""
    condition = Condition(connection, project, _DISPATCH_COLUMNS)
    about_scores, terms = _about_scores(chosen)
    condition.add(terms, DISPATCH_FIELDS)
    if about_scores:
        condition.add_about(
            score,
            [condition.of(_SCORE_COLUMNS[t.field], t, SCORE_FIELDS) for t in about_scores],
            [(score.c.conversation, dispatch.c.conversation), (score.c.dispatch, dispatch.c.id)],
            _current(project),
        )
    return condition, terms


def _dispatch_rows(
    connection: Connection, project: int, rows: Sequence[RowMapping]
) -> list[DispatchRow]:
    ids = {row["conversation"] for row in rows}
    there = select(conversation.c.id, conversation.c.key)
    there = there.where(conversation.c.project == project, conversation.c.id.in_(ids))
    keys = {row.id: row.key for row in connection.execute(there)}
    return [
        row_as(DispatchRow, {**row, "conversation_id": id_, "conversation": keys.get(id_, "")})
        for row in rows
        for id_ in (row["conversation"],)
    ]


def evaluators(connection: Connection, project: int) -> dict[str, str]:
    """Return the evaluators that scored something in a project: the type of each, by name."""
    condition = Condition(connection, project, _SCORE_COLUMNS)
    of_one = select(score.c.type).where(score.c.project == project)
    return {
        name: str(connection.execute(of_one.where(score.c.evaluator == name).limit(1)).scalar())
        for name in condition.names(score.c.evaluator, (), TEXT)
    }


def scores(
    store: Store,
    project: int,
    chosen: Filter,
    *,
    every_version: bool = False,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[ScoreRow]:
    """Return scores, the newest first, that meet a filter over ``SCORE_FIELDS``.

    Those of earlier versions of a conversation, and those that a rescore replaced, are left out
    unless ``every_version``.

    Raises:
        InputError: the cursor is not of a list of scores.
    """
    after = read_cursor(cursor, tuple[float, int])
    query = select(score).where(score.c.project == project)
    with store.read() as connection:
        condition = Condition(connection, project, _SCORE_COLUMNS)
        condition.add(chosen.terms, SCORE_FIELDS)
        if not every_version:
            condition.all.append(_current(project))
        drivers: list[tuple[ColumnElement[Any], list[str]]] = []
        if "conversation_id" not in chosen.fields:
            # There are indexes in the order of time for each evaluator and status, each finding
            # and each rule; none over all.
            names = next((n for n in ("evaluator", "finding") if n in chosen.fields), "rule")
            for name in (names, "verdict") if names == "evaluator" else (names,):
                own, _ = _split(chosen.terms, (name,))
                column = _SCORE_COLUMNS[name]
                drivers.append((column, condition.names(column, own, SCORE_FIELDS[name])))
        rows = _newest(
            connection, query, (score.c.at, score.c.id), condition, after, limit + 1, drivers
        )
    items = [
        row_as(ScoreRow, {**row, "conversation_id": row["conversation"]}) for row in rows[:limit]
    ]
    return Page(items=items, next=cursor_of(rows, limit))


def unknown_rules(store: Store, project: int, known: Iterable[str]) -> list[UnknownRule]:
    """Return unknown rules that programs of a project name."""
    newest = select(conversation.c.named_rules, conversation.c.seen)
    newest = newest.where(conversation.c.project == project)
    newest = newest.order_by(*(each.desc() for each in _ORDER)).limit(_NEWEST)
    rules = {narrow(name) for name in known}
    unknown: dict[str, UnknownRule] = {}
    with store.read() as connection:
        for named, seen in connection.execute(newest):
            at = datetime.fromtimestamp(seen, UTC)
            for name in msgspec.json.decode(named or "[]", type=list[str]):
                if name not in rules:
                    one = unknown.setdefault(
                        name, UnknownRule(name=name, conversations=0, last_seen=at)
                    )
                    one.conversations += 1
                    one.last_seen = max(one.last_seen, at)
    return sorted(unknown.values(), key=lambda one: (-one.conversations, one.name))


_NEWEST = 1000
"""Maximum conversations to search for rules that their programs name."""


def deletions(store: Store) -> list[Deletion]:
    """Return what retention deleted, the newest day first; a day has all projects."""
    with store.read() as connection:
        rows = connection.execute(select(deletion).order_by(deletion.c.day.desc())).mappings()
        return [row_as(Deletion, row) for row in rows]


def _current(project: int) -> ColumnElement[bool]:
    """Return whether a score counts: it is of the current version, and not replaced."""
    return and_(
        score.c.replaced_by.is_(None),
        exists(
            select(conversation.c.id).where(
                conversation.c.project == project,
                conversation.c.id == score.c.conversation,
                conversation.c.version == score.c.version,
            )
        ),
    )


def _split(terms: Iterable[Term], fields: Iterable[str]) -> tuple[list[Term], list[Term]]:
    """Split terms into those about some fields, and the others."""
    names = set(fields)
    chosen: list[Term] = []
    others: list[Term] = []
    for term in terms:
        (chosen if term.field in names else others).append(term)
    return chosen, others


def _about_scores(chosen: Filter) -> tuple[list[Term], list[Term]]:
    """Split off the terms about one score; a verdict belongs to its evaluator."""
    about, others = _split(chosen.terms, _SCORE_FIELDS)
    if about:
        return _split(chosen.terms, (*_SCORE_FIELDS, "verdict"))
    return about, others


_MAGIC = re.compile(r"[*?\[]")


def _is_literal(term: Term) -> bool:
    return term.exact or not any(_MAGIC.search(glob) for glob in term.any_of)


def _as_regex(glob: str) -> str:
    """Return a glob as a regular expression of PostgreSQL."""
    parts, at = [], 0
    while at < len(glob):
        character, at = glob[at], at + 1
        if character == "*":
            parts.append(".*")
        elif character == "?":
            parts.append(".")
        elif character == "[" and (end := glob.find("]", at + 1 + (glob[at : at + 1] == "!"))) > 0:
            inside = glob[at:end].replace("\\", "\\\\").replace("[", "\\[")
            parts.append(f"[^{inside[1:]}]" if inside.startswith("!") else f"[{inside}]")
            at = end + 1
        else:
            parts.append(re.escape(character))
    return f"^(?:{''.join(parts)})$"


_SPOKEN = frozenset(
    (
        "input",
        "output",
        "content",
        "result",
        "prompt",
        "description",
        "context",
        "arguments",
        "error",
    )
)
"""Fields of the record with messages, requests, results and errors."""
_AROUND = 60
"""Characters of a quotation on either side of a match."""


def _search(body: bytes, text: str) -> str | None:
    """Return the words around a text in a record, or ``None`` if it does not occur."""
    wanted = text.casefold()
    # Texts are unencoded in msgpack, so most records are skipped without being decoded.
    if text.isascii():
        if wanted.encode() not in body.lower():
            return None
    elif wanted not in body.decode(errors="ignore").casefold():
        return None
    waiting: list[tuple[Any, bool]] = [(msgspec.msgpack.decode(body), False)]
    while waiting:
        value, spoken = waiting.pop()
        if isinstance(value, dict):
            waiting += [(each, spoken or key in _SPOKEN) for key, each in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(each, spoken) for each in reversed(value)]
        elif spoken and isinstance(value, str) and (at := value.casefold().find(wanted)) >= 0:
            start, end = max(0, at - _AROUND), at + len(text) + _AROUND
            words = " ".join(value[start:end].split())
            return f"{'…' * (start > 0)}{words}{'…' * (end < len(value))}"
    return None


def conversation_of(row: RowMapping, match: str | None = None) -> Conversation:
    """Return a row as the API shows it."""
    return row_as(Conversation, {**row, "match": match})
