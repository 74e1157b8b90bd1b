"""Issues of a store as lists and pages show them, and the states that people give them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import msgspec
from sqlalchemy import ColumnElement, Connection, func, insert, select, tuple_, update

from baton.feed.issue_progress import Fix, Investigation, Promotion
from baton.feed.issues import MEMBERS, Member, Rate, State, TextGroup, rate_of, rest_title
from baton.feed.signature import UNTOLD
from baton.feed.taxonomy import CATEGORIES, subtype_named
from baton.model import InputError, suggestion
from baton.model.filter import NUMBER, TEXT, TIME, Field, Fields, Filter
from baton.session.server_rows import IssueEvent, IssueRecord, IssueRow, Page

from .access import Caller
from .issues import DAY, clean
from .paging import at_of, cursor_after, read_cursor
from .queries import Condition
from .review import person
from .rows import narrow
from .schema import (
    issue,
    issue_count,
    issue_edge,
    issue_event,
    issue_member,
    issue_progress,
    rollup_day,
    score,
)
from .store import Store

Order = Literal["count", "last"]
TREND_DAYS = 14
"""The number of days whose failures a list shows."""
_MOST_EVENTS = 200
"""Maximum events of an issue in an answer, the newest ones: an agent that fails now and then
reopens its issue for months."""
_LONGEST_NOTE = 10_000
"""Maximum characters of a note. Every answer about the issue contains it, and so does each event
that set it."""
ISSUE_FIELDS: Fields = {
    "state": Field(values=get_args(State)),
    "category": Field(values=tuple(CATEGORIES)),
    "subtype": TEXT,
    "fault": TEXT,
    "to": TEXT,
    "from": TEXT,
    "key": TEXT,
    "count": NUMBER,
    "first": TIME,
    "last": TIME,
}
"""What issues may be filtered by."""
_COLUMNS: dict[str, ColumnElement[Any]] = {
    "to": issue.c.receiver,
    "from": issue.c.sender,
    **{
        name: issue.c[name]
        for name in ("state", "category", "subtype", "fault", "key", "count", "first", "last")
    },
}


def issues(
    store: Store,
    project: int,
    chosen: Filter,
    *,
    order: Order = "count",
    all: bool = False,
    since: float | None = None,
    until: float | None = None,
    limit: int = 50,
    cursor: str | None = None,
    now: float | None = None,
) -> Page[IssueRow]:
    """Return issues that meet a filter over ``ISSUE_FIELDS``, the most frequent or newest first.

    Args:
        store: where they are.
        project: whose.
        chosen: the filter.
        order: ``count`` or ``last``, the time of the last failure.
        all: whether to include muted and fixed ones; a filter by state implies that.
        since: return only issues that failed then or later.
        until: return only issues that failed before.
        limit: the size of a page.
        cursor: the end of the previous page.
        now: the end of the trend.

    Raises:
        InputError: the cursor does not belong to such a list.
    """
    after = read_cursor(cursor, tuple[float, int])
    by = issue.c[order]
    with store.read() as connection:
        condition = Condition(connection, project, _COLUMNS)
        condition.add(chosen.terms, ISSUE_FIELDS)
        query = select(issue).where(issue.c.project == project, issue.c.count > 0, *condition.all)
        if not all and not any(term.field in ("state", "key") for term in chosen.terms):
            query = query.where(issue.c.state.in_(["new", "open", "regressed"]))
        if since is not None:
            query = query.where(issue.c.last >= since)
        if until is not None:
            query = query.where(issue.c.first < until)
        if after is not None:
            query = query.where(tuple_(by, issue.c.id) < tuple_(*after))
        query = query.order_by(by.desc(), issue.c.id.desc()).limit(limit + 1)
        rows = [dict(row) for row in connection.execute(query).mappings()]
        known = _known(connection, project, rows[:limit], now)
    items = [_row_as(row, known) for row in rows[:limit]]
    last = rows[limit - 1] if len(rows) > limit else None
    return Page(items=items, next=None if last is None else cursor_after([last[order], last["id"]]))


def issue_states(store: Store, project: int) -> dict[State, int]:
    """Return how many issues there are in each state."""
    query = select(issue.c.state, func.count()).where(issue.c.project == project, issue.c.count > 0)
    with store.read() as connection:
        return dict(connection.execute(query.group_by(issue.c.state)).all())


_Edges = dict[tuple[str, str], int]


def _edges(connection: Connection, project: int) -> _Edges:
    query = select(issue_edge.c.sender, issue_edge.c.receiver, func.sum(issue_edge.c.dispatches))
    query = query.where(issue_edge.c.project == project)
    query = query.group_by(issue_edge.c.sender, issue_edge.c.receiver)
    return {(sender, to): int(count) for sender, to, count in connection.execute(query)}


class _Days(NamedTuple):
    """Failures by issue and day, of the days up to ``until``."""

    counts: Mapping[int, Mapping[int, int]]
    until: int

    def of(self, id_: int) -> list[int]:
        there = self.counts.get(id_, {})
        return [there.get(day, 0) for day in range(self.until - TREND_DAYS + 1, self.until + 1)]


def _days(connection: Connection, project: int, ids: Sequence[int], now: float | None) -> _Days:
    until = int((time.time() if now is None else now) // DAY)
    query = select(issue_count.c.issue, issue_count.c.day, func.sum(issue_count.c.failed)).where(
        issue_count.c.project == project,
        issue_count.c.issue.in_(ids),
        issue_count.c.day > until - TREND_DAYS,
    )
    counts: dict[int, dict[int, int]] = {}
    for id_, day, count in connection.execute(
        query.group_by(issue_count.c.issue, issue_count.c.day)
    ):
        counts.setdefault(id_, {})[day] = int(count)
    return _Days(counts, until)


_AS_THEY_ARE = (
    "key",
    "title",
    "subtype",
    "category",
    "fault",
    "about",
    "proven",
    "judged",
    "count",
    "first",
    "last",
    "infrastructure",
    "says",
    "state",
    "version",
    "note",
    "by",
    "since",
)


class _Sample(NamedTuple):
    """The part of an issue's edge that its evaluators scored.

    ``scored`` of its ``dispatches`` were scored; ``failed`` is the share of its failures among
    them.
    """

    scored: int
    dispatches: int
    failed: float


class _Known(NamedTuple):
    """Data that is looked up for all issues of a list together."""

    edges: _Edges
    days: _Days
    split: frozenset[str]
    samples: Mapping[int, _Sample]


def _known(
    connection: Connection, project: int, rows: Sequence[Mapping[str, Any]], now: float | None
) -> _Known:
    query = select(issue.c.signature).where(
        issue.c.project == project,
        issue.c.signature.in_([row["signature"] for row in rows if row["text_group"] is None]),
        issue.c.text_group.is_not(None),
        issue.c.count > 0,
    )
    edges = _edges(connection, project)
    return _Known(
        edges,
        _days(connection, project, [row["id"] for row in rows], now),
        frozenset(connection.scalars(query)),
        _samples(connection, project, rows, edges),
    )


_NEARLY_ALL = 0.98
"""From this share on, all dispatches count as scored: the last ones wait for a worker."""
_LOOKED_AT = 5_000
"""Maximum failures of an issue for which to look up whether they are in the sample."""


def _samples(
    connection: Connection, project: int, rows: Sequence[Mapping[str, Any]], edges: _Edges
) -> dict[int, _Sample]:
    """Return the scored parts of issues' edges, if not everything was scored."""
    names = {row["id"]: msgspec.json.decode(row["evaluators"], type=list[str]) for row in rows}
    query = select(
        rollup_day.c.from_agent,
        rollup_day.c.to_agent,
        rollup_day.c.evaluator,
        func.sum(rollup_day.c.count),
    ).where(
        rollup_day.c.project == project,
        rollup_day.c.evaluator.in_({narrow(name) for own in names.values() for name in own}),
        rollup_day.c.to_agent.in_({row["receiver"] for row in rows if row["dispatched"]}),
    )
    query = query.group_by(rollup_day.c.from_agent, rollup_day.c.to_agent, rollup_day.c.evaluator)
    counts = {(a, b, name): int(count) for a, b, name, count in connection.execute(query)}
    samples: dict[int, _Sample] = {}
    for row in rows:
        evaluators = names[row["id"]]
        edge = row["sender"], row["receiver"]
        dispatches = edges.get(edge, 0)
        scored = max((counts.get((*edge, narrow(each)), 0) for each in evaluators), default=0)
        if row["dispatched"] and 0 < scored < _NEARLY_ALL * dispatches:
            sampled = _in_sample(connection, project, row["id"], evaluators)
            if sampled is not None:
                rules, failed = sampled
                samples[row["id"]] = _Sample(round(scored / rules), dispatches, failed)
    return samples


def _in_sample(
    connection: Connection, project: int, id_: int, evaluators: Sequence[str]
) -> tuple[int, float] | None:
    """Return how many rules found an issue, and the share of its failures in their samples.

    Dispatches beyond a sample were scored because another rule failed there, so they would make
    rates too high. Returns ``None`` if none of its failures is stored, or if its scores are not
    about dispatches.
    """
    which = (
        (score.c.project == issue_member.c.project)
        & (score.c.conversation == issue_member.c.conversation)
        & (score.c.dispatch == issue_member.c.place)
    )
    query = (
        select(issue_member.c.id, score.c.rule, score.c.sampled)
        .join(score, which)
        .where(
            issue_member.c.project == project,
            issue_member.c.issue == id_,
            score.c.unit == "dispatch",
            score.c.status == "failed",
            score.c.evaluator.in_(evaluators),
            score.c.replaced_by.is_(None),
        )
        .order_by(issue_member.c.id)
        .limit(_LOOKED_AT)
    )
    rules: set[str] = set()
    members: dict[str, bool] = {}
    for member, rule, sampled in connection.execute(query):
        rules.add(rule)
        members[member] = members.get(member, False) or sampled
    return (len(rules), sum(members.values()) / len(members)) if members else None


def _row_as(row: Mapping[str, Any], known: _Known, **more: Any) -> IssueRow:
    subtype = subtype_named(row["subtype"])
    rate = rate_of(row["dispatched"], known.edges.get((row["sender"], row["receiver"]), 0))
    sample = known.samples.get(row["id"])
    if sample is not None:
        rate = rate_of(round(row["dispatched"] * sample.failed), sample.scored)
    is_rest = row["text_group"] is None and not row["proven"] and row["signature"] in known.split
    values = {name: row[name] for name in _AS_THEY_ARE}
    if is_rest:
        values["title"] = rest_title(row["title"])
    return IssueRow(
        **values,
        mast=[] if subtype is None else list(subtype.mast),
        sender=None if row["sender"] == UNTOLD else row["sender"],
        receiver=None if row["receiver"] == UNTOLD else row["receiver"],
        evaluators=msgspec.json.decode(row["evaluators"]),
        rate=rate,
        scored=None if sample is None else sample.scored / sample.dispatches,
        is_rest=is_rest,
        group=row["text_group"],
        groups=msgspec.json.decode(row["groups"], type=list[TextGroup]),
        went_into=row["went_into"],
        trend=known.days.of(row["id"]),
        **{"members": [], **more},
    )  # fmt: skip


def one_issue(
    store: Store, project: int, key: str, *, members: int = MEMBERS, now: float | None = None
) -> IssueRecord:
    """Return an issue with its members, events and progress.

    Args:
        store: where it is.
        project: whose.
        key: its key.
        members: the number of members to return; as a sample, those with the smallest hashes.
        now: the end of the trend.

    Raises:
        NoIssue: there is none.
    """
    with store.read() as connection:
        row = _issue_row(connection, project, key)
        id_ = row["id"]
        query = select(issue_member).where(
            issue_member.c.project == project, issue_member.c.issue == id_
        )
        query = query.order_by(issue_member.c.id).limit(members)
        listed = [_member_of(each) for each in connection.execute(query).mappings()]
        dispatched, failed = _by_kind(connection, project, row)
        query = select(issue_event).where(
            issue_event.c.project == project, issue_event.c.issue == id_
        )
        query = query.order_by(issue_event.c.id.desc()).limit(_MOST_EVENTS)
        events = [
            IssueEvent(
                at=at_of(each["at"]),
                kind=each["kind"],
                by=each["by"],
                details=msgspec.json.decode(each["details"]),
            )
            for each in connection.execute(query).mappings()
        ]
        kept = _progress(connection, project, id_)
        known = _known(connection, project, [row], now)
        sample = known.samples.get(id_)
        of = _row_as(
            row,
            known,
            members=listed,
            by_version=_rates(failed["agent"], dispatched["agent"], sample),
            by_model=_rates(failed["model"], dispatched["model"], sample),
        )
    return IssueRecord(
        issue=of,
        events=events,
        investigation=kept.investigation,
        fix=kept.fix,
        promotion=kept.promotion,
    )


class NoIssue(InputError):  # noqa: N818 - says what is wrong
    """There is no issue with this key in the project."""


def _issue_row(connection: Connection, project: int, key: str) -> dict[str, Any]:
    query = select(issue).where(issue.c.project == project, issue.c.key == key)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        keys = select(issue.c.key).where(issue.c.project == project).limit(1000)
        known = list(connection.scalars(keys))
        hint = suggestion(key, known) if known else "there is none"
        raise NoIssue(f"no issue `{key[:100]}`; {hint}")
    return dict(row)


def _member_of(row: Mapping[Any, Any]) -> Member:
    attributes = {"agent": row["agent_version"], "model": row["model"]}
    return Member(
        id=row["id"],
        conversation=row["key"],
        number=row["conversation"],
        dispatch=row["place"] or None,
        evidence=msgspec.json.decode(row["evidence"]),
        says=row["says"],
        at=row["at"],
        versions={name: value for name, value in attributes.items() if value is not None},
        judged=row["judged"],
    )


_Kinds = dict[str, Counter[str]]


def _by_kind(connection: Connection, project: int, row: Mapping[str, Any]) -> tuple[_Kinds, _Kinds]:
    """Return dispatches of its edge, and failures, by version of the receiver and by model."""
    dispatched: _Kinds = {"agent": Counter(), "model": Counter()}
    failed: _Kinds = {"agent": Counter(), "model": Counter()}
    edge = (issue_edge.c.sender == row["sender"]) & (issue_edge.c.receiver == row["receiver"])
    for counts, table, figure, which in (
        (dispatched, issue_edge, issue_edge.c.dispatches, edge),
        (failed, issue_count, issue_count.c.failed, issue_count.c.issue == row["id"]),
    ):
        query = select(table.c.agent_version, table.c.model, func.sum(figure))
        query = query.where(table.c.project == project, which)
        query = query.group_by(table.c.agent_version, table.c.model)
        for version, model, count in connection.execute(query):
            counts["agent"][version] += int(count)
            counts["model"][model] += int(count)
    return dispatched, failed


def _rates(
    failed: Counter[str], dispatches: Counter[str], sample: _Sample | None
) -> dict[str, Rate]:
    # Empty is unknown, and no version.
    names = sorted((set(failed) | set(dispatches)) - {""})
    if sample is None:
        return {name: rate_of(failed[name], dispatches[name]) for name in names}
    share = sample.scored / sample.dispatches
    return {
        name: rate_of(round(failed[name] * sample.failed), round(dispatches[name] * share))
        for name in names
    }


class Progress(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The progress of an issue; fields that are left out are not changed."""

    investigation: Investigation | None = None
    fix: Fix | None = None
    promotion: Promotion | None = None


def _progress(connection: Connection, project: int, id_: int) -> Progress:
    query = select(issue_progress.c.progress).where(
        issue_progress.c.project == project, issue_progress.c.issue == id_
    )
    kept = connection.execute(query).scalar()
    return Progress() if kept is None else msgspec.json.decode(kept, type=Progress)


def keep_progress(store: Store, caller: Caller, key: str, progress: Progress) -> None:
    """Keep what was done about an issue.

    Raises:
        NoIssue: there is no such issue.
    """
    with store.write() as connection:
        row = _issue_row(connection, caller.project, key)
        kept = _progress(connection, caller.project, row["id"])
        for name in Progress.__struct_fields__:
            value = getattr(progress, name)
            if value is not None and value != getattr(kept, name):
                setattr(kept, name, value)
                _event(connection, caller.project, row["id"], name, by=caller.name)
        encoded = clean(msgspec.json.encode(kept).decode())
        which = issue_progress.c.project == caller.project
        change = update(issue_progress).where(which, issue_progress.c.issue == row["id"])
        if connection.execute(change.values(progress=encoded)).rowcount == 0:
            made = {"project": caller.project, "issue": row["id"], "progress": encoded}
            connection.execute(insert(issue_progress).values(made))


class StateChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A state that a person gives an issue.

    ``version`` belongs to ``fixed``: the version of the agent in which it is fixed. ``note`` is the
    reason, and ``by`` the person, if it is not the holder of the key.
    """

    state: Literal["new", "open", "muted", "fixed"]
    version: str | None = None
    note: str | None = None
    by: str | None = None


def change_state(
    store: Store, caller: Caller, key: str, change: StateChange, now: float | None = None
) -> None:
    """Give an issue a state.

    Raises:
        NoIssue: there is no such issue.
        InputError: a version without ``fixed``; a note that is too long.
    """
    if change.version is not None and change.state != "fixed":
        raise InputError("a version is only allowed with `fixed`: the one with the fix")
    if change.note is not None and len(change.note) > _LONGEST_NOTE:
        raise InputError(
            f"a note has up to {_LONGEST_NOTE:,} characters, this one {len(change.note):,}"
        )
    now = time.time() if now is None else now
    by = person(caller, change.by)
    with store.write() as connection:
        row = _issue_row(connection, caller.project, key)
        values: dict[str, Any] = {
            "state": change.state,
            "version": None if change.version is None else clean(change.version),
            "note": None if change.note is None else clean(change.note),
            "by": clean(by),
            "since": now,
        }
        which = (issue.c.project == caller.project) & (issue.c.id == row["id"])
        connection.execute(update(issue).where(which).values(values))
        details = {"state": change.state, "version": change.version, "note": change.note}
        stated = {name: value for name, value in details.items() if value is not None}
        _event(connection, caller.project, row["id"], "state", by=clean(by), now=now, **stated)


def _event(
    connection: Connection,
    project: int,
    id_: int,
    kind: str,
    *,
    by: str | None = None,
    now: float | None = None,
    **details: Any,
) -> None:
    row = {
        "project": project,
        "issue": id_,
        "at": time.time() if now is None else now,
        "kind": kind,
        "by": by,
        "details": clean(msgspec.json.encode(details).decode()),
    }
    connection.execute(insert(issue_event).values(row))
