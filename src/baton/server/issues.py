"""Keeps issues up to date: members and counts of :mod:`baton.feed.issues`, in the store.

Reading arrivals only records which conversations changed (`issue_due`); this module examines them
afterwards, so that nothing waits for it. The failures of a conversation are members of issues: a
new version of it, a judge or a rescore removes the old members and adds the new ones. Retention
deletes members and keeps the counts, like the sums by hour.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, bindparam, delete, func, insert, select, text, update

from baton.feed.failures import Failure, failures_of
from baton.feed.issues import (
    MEMBERS,
    TEXTS,
    Groups,
    Issue,
    Member,
    Slot,
    bursts_of,
    by_text,
    each_once,
    id_of,
    is_outage,
    rate_of,
    slot_of,
    subtype_with,
    title_of,
)
from baton.feed.signature import UNTOLD, Signature
from baton.feed.text_groups import LEAST, Embed, Members
from baton.model import JudgeError, Score, Trace
from baton.plugins import is_installed

from .bodies import Place
from .conversations import decode
from .database import EVERY_PROJECT, Unavailable, add_rows
from .rows import EVERY_SLOT, Row, add_up, narrow, slices
from .rule_scoring import score_of
from .schema import (
    conversation,
    dispatch,
    issue,
    issue_count,
    issue_due,
    issue_event,
    issue_member,
    issue_regroup,
    issue_slot,
    run,
    score,
)
from .span_chunks import crash
from .store import Store

LOG = logging.getLogger("baton.server")
_AT_ONCE = 200
"""Conversations that are examined together: half a second of work, so that a stop is prompt."""
_EXAMPLES = 30
"""Maximum texts of a group that a new text is compared with."""
_NIGHTLY = 86_400.0
"""Seconds between two groupings of a project's texts, unless somebody asks for one."""
DAY = 86_400


class _Found(NamedTuple):
    """The current failures of a conversation, and the start time to use if it is not recorded."""

    key: str
    failures: Sequence[Failure]
    began: float
    seen: float


def index_issues(store: Store, now: float) -> int:
    """Update issues from the conversations that changed; returns how many were examined.

    Raises:
        Unavailable: the store is not available now; nothing is lost.
    """
    query = select(issue_due).order_by(issue_due.c.project, issue_due.c.conversation)
    with store.read() as connection:
        due = connection.execute(query.limit(_AT_ONCE), execution_options=EVERY_PROJECT).all()
    by_project: dict[int, dict[int, int]] = defaultdict(dict)
    for row in due:
        by_project[row.project][row.conversation] = row.stamp
    for project, stamps in by_project.items():
        try:
            is_done = _follow(store, project, stamps, now)
        except Unavailable:
            raise
        except Exception:  # noqa: BLE001 - one of them breaks it: it is said of which
            is_done = all(_follow_one(store, project, id_, n, now) for id_, n in stamps.items())
        if not is_done:
            return 0
    return len(due)


def _follow_one(store: Store, project: int, id_: int, stamp: int, now: float) -> bool:
    try:
        return _follow(store, project, {id_: stamp}, now)
    except Unavailable:
        raise
    except Exception as error:  # noqa: BLE001 - whatever breaks is said, and others go on
        LOG.error("issues of conversation %d are not known: %s", id_, crash(error))
        with store.write() as connection:
            _done(connection, project, {id_: stamp})
        return True


def _done(connection: Connection, project: int, stamps: Mapping[int, int]) -> None:
    """Remove conversations from the list, except those that have changed again."""
    rows = [{"of_id": id_, "of_stamp": stamp} for id_, stamp in stamps.items()]
    gone = delete(issue_due).where(
        issue_due.c.project == project,
        issue_due.c.conversation == bindparam("of_id"),
        issue_due.c.stamp == bindparam("of_stamp"),
    )
    connection.execute(gone, rows)


def alone(connection: Connection) -> bool:
    """Take the lock of issues until the end, so that only one worker at a time changes them."""
    if connection.dialect.name != "postgresql":
        return True
    lock = text("SELECT pg_try_advisory_xact_lock(hashtext('baton issues'))")
    return bool(connection.execute(lock).scalar())


def _follow(store: Store, project: int, stamps: Mapping[int, int], now: float) -> bool:
    readings = _read(store, project, list(stamps))
    with store.write() as connection:
        if not alone(connection):
            return False
        there = dict(
            connection.execute(
                select(issue_due.c.conversation, issue_due.c.stamp).where(
                    issue_due.c.project == project, issue_due.c.conversation.in_(list(stamps))
                )
            ).all()
        )
        same = {id_: stamp for id_, stamp in stamps.items() if there.get(id_) == stamp}
        changes = Changes(connection, project, now)
        changes.replace({id_: readings.get(id_) for id_ in same})
        changes.write()
        _done(connection, project, same)
    return True


def _read(store: Store, project: int, ids: Sequence[int]) -> dict[int, _Found | None]:
    """Return the failures of conversations; a deleted one has no entry."""
    with store.read() as connection:
        query = select(conversation).where(
            conversation.c.project == project, conversation.c.id.in_(ids)
        )
        rows = {row["id"]: row for row in connection.execute(query).mappings()}
        scores: dict[int, list[Score]] = defaultdict(list)
        query = select(score).where(
            score.c.project == project,
            score.c.conversation.in_(ids),
            score.c.status == "failed",
            score.c.replaced_by.is_(None),
        )
        for each in connection.execute(query.order_by(score.c.id)).mappings():
            of = rows.get(each["conversation"])
            if of is not None and each["version"] == of["version"]:
                scores[of["id"]].append(score_of(each))
        versions: dict[int, dict[str, str]] = defaultdict(dict)
        for table, name in ((run, "agent"), (dispatch, "to_agent")):
            query = select(table.c.conversation, table.c[name], table.c.agent_version).where(
                table.c.project == project,
                table.c.conversation.in_(list(scores)),
                table.c.agent_version.is_not(None),
            )
            for id_, agent, version in connection.execute(query):
                versions[id_][agent] = version
    places = {id_: Place(rows[id_]["day"], rows[id_]["place"]) for id_ in scores}
    bodies = store.bodies.get(places.values())
    readings: dict[int, _Found | None] = {}
    for id_, row in rows.items():
        trace = None
        if id_ in scores:
            body = bodies.get(places[id_])
            if body is None:  # retention is deleting it, or there is a newer version
                continue
            trace = decode(body)
        began = row["seen"] if row["started"] is None else row["started"]
        failures: Sequence[Failure] = ()
        if trace is not None:
            failures = list(failures_of(trace, scores[id_], _named(trace, versions[id_])))
        readings[id_] = _Found(row["key"], failures, began, row["seen"])
    return readings


def _named(trace: Trace, versions: Mapping[str, str]) -> dict[str, str]:
    """Return versions by the names of the record; rows have long ones shortened."""
    names = {each.agent for turn in trace.turns for each in turn.runs}
    names |= {each.to_agent for turn in trace.turns for each in turn.dispatches}
    return {name: versions[narrow(name)] for name in names if narrow(name) in versions}


class _Delta:
    """What an issue gains and loses."""

    def __init__(self) -> None:
        self.added: list[Row] = []
        self.lost: list[Row] = []


class Changes:
    """Changes of the issues of a project, in one transaction."""

    def __init__(self, connection: Connection, project: int, now: float) -> None:
        self._connection = connection
        self._project = project
        self._now = now
        self._rows: dict[int, Row] = {}
        self._deltas: defaultdict[int, _Delta] = defaultdict(_Delta)
        self._nearest: dict[str, Members | None] = {}
        self._events: list[Row] = []
        self._renamed: set[int] = set()

    def replace(self, readings: Mapping[int, _Found | None]) -> None:
        """Replace the members from conversations by their current failures."""
        ids = list(readings)
        before: dict[tuple[int, str, str], Row] = {}
        for some in slices(ids):
            query = select(issue_member).where(
                issue_member.c.project == self._project, issue_member.c.conversation.in_(some)
            )
            for each in self._connection.execute(query).mappings():
                before[each["conversation"], each["signature"], each["place"]] = dict(each)
        new: list[tuple[Signature, bool, Row]] = []
        for id_, one in readings.items():
            for signature, failure, evaluators in each_once(one.failures if one else ()):
                row = _member(self._project, id_, one, signature, failure, evaluators)
                old = before.get((id_, row["signature"], row["place"]))
                if old is not None and all(old[name] == value for name, value in row.items()):
                    del before[id_, row["signature"], row["place"]]
                else:
                    new.append((signature, failure.fault is not None, row))
        self._delete(before.values())
        self.load({row["signature"] for *_, row in new}, {row["issue"] for row in before.values()})
        for row in before.values():
            self._deltas[row["issue"]].lost.append(row)
        for signature, proven, row in new:
            row["issue"] = self._issue_for(signature, row, proven=proven)
            self._deltas[row["issue"]].added.append(row)
        add_rows(self._connection, issue_member, [row for *_, row in new])

    def move(self, row: Row, to: int) -> None:
        """Put a member into another issue of its signature."""
        self._deltas[row["issue"]].lost.append(row)
        self._deltas[to].added.append({**row, "issue": to})
        self._connection.execute(
            update(issue_member)
            .where(
                issue_member.c.project == self._project,
                issue_member.c.conversation == row["conversation"],
                issue_member.c.signature == row["signature"],
                issue_member.c.place == row["place"],
            )
            .values(issue=to)
        )

    def _delete(self, rows: Iterable[Row]) -> None:
        names = ("conversation", "signature", "place")
        keys = [{f"of_{name}": row[name] for name in names} for row in rows]
        if keys:
            which = [issue_member.c[name] == bindparam(f"of_{name}") for name in names]
            gone = delete(issue_member).where(issue_member.c.project == self._project, *which)
            self._connection.execute(gone, keys)

    def load(self, signatures: Iterable[str], ids: Iterable[int] = ()) -> None:
        """Look up issues, and lock them until the end."""
        for column, values in ((issue.c.signature, signatures), (issue.c.id, ids)):
            for some in slices(values):
                query = select(issue).where(issue.c.project == self._project, column.in_(some))
                for row in self._connection.execute(query.with_for_update()).mappings():
                    self._rows[row["id"]] = dict(row)

    def of_signature(self, key: str) -> dict[str | None, Row]:
        """Return the issues of a signature by their groups."""
        return {row["text_group"]: row for row in self._rows.values() if row["signature"] == key}

    def _issue_for(self, signature: Signature, member: Row, *, proven: bool) -> int:
        there = self.of_signature(member["signature"])
        name = None
        if any(group is not None for group in there):
            name = self._group_of(member["signature"], there, member["says"])
        if name in there and (name is not None or there[name]["went_into"] is None):
            return int(there[name]["id"])
        return self.add(signature, member, proven=proven)

    def add(
        self,
        signature: Signature,
        member: Row,
        *,
        proven: bool = False,
        group: str | None = None,
        says: str | None = None,
        state: str = "new",
    ) -> int:
        """Add an issue, and return its number; one that was merged into another is restored."""
        old = self.of_signature(member["signature"]).get(group)
        if old is not None:
            old["went_into"] = None
            return int(old["id"])
        subtype = subtype_with(signature.fault, 1, 0)
        row = {
            "project": self._project,
            "key": member["signature"] if group is None else f"{member['signature']}-{group}",
            "signature": member["signature"],
            "text_group": group,
            "fault": clean(signature.fault),
            "sender": narrow(signature.sender),
            "receiver": narrow(signature.receiver),
            "about": clean(signature.about),
            "says": None if says is None else clean(says),
            "title": clean(title_of(subtype, signature, says)),
            "subtype": subtype.name,
            "category": subtype.category,
            "proven": proven,
            "evaluators": "[]",
            "count": 0,
            "dispatched": 0,
            "judged": 0,
            "infrastructure": 0,
            "first": member["at"],
            "last": member["at"],
            "groups": "[]",
            "state": state,
        }
        key = self._connection.execute(insert(issue).values(row)).inserted_primary_key
        assert key is not None  # noqa: S101 - the database counts it up
        id_ = int(key[0])
        unset = dict.fromkeys(("version", "note", "by", "since", "went_into"))
        self._rows[id_] = {**unset, **row, "id": id_}
        return id_

    def _group_of(self, signature: str, there: Mapping[str | None, Row], says: str) -> str | None:
        """Return the group of the nearest member; ``None`` for a text that resembles none."""
        if signature not in self._nearest:
            examples: dict[str, list[str]] = {}
            for group, row in there.items():
                if group is None or row["went_into"] is not None:
                    continue
                query = select(issue_member.c.says).where(
                    issue_member.c.project == self._project, issue_member.c.issue == row["id"]
                )
                query = query.order_by(issue_member.c.id).limit(_EXAMPLES)
                examples[group] = list(self._connection.scalars(query))
            self._nearest[signature] = Members(examples) if examples else None
        nearest = self._nearest[signature]
        return None if nearest is None else nearest.group_of(says)

    def regroup(self, key: str, members: Sequence[Row], parts: Sequence[Issue]) -> None:
        """Move members to the issues of their groups; merges and splits become events.

        Args:
            key: of the signature.
            members: rows as they were read.
            parts: the issues that their texts make.
        """
        group_of = {each.id: part for part in parts for each in part.members}
        there = self.of_signature(key)
        signature = signature_of_row(next(iter(there.values())))
        moved: defaultdict[int, Counter[int]] = defaultdict(Counter)
        is_new: set[int] = set()
        for row in self._still_there(key, members):
            part = group_of[row["id"]]
            to = self.of_signature(key).get(part.group)
            if to is None or to["went_into"] is not None:
                # What is known about an issue applies to its parts.
                state = self._rows[row["issue"]]["state"]
                id_ = self.add(signature, row, group=part.group, says=part.says,
                               state=state if state in ("open", "muted") else "new")  # fmt: skip
                is_new.add(id_)
            else:
                id_ = int(to["id"])
            if row["issue"] != id_:
                moved[row["issue"]][id_] += 1
                self.move(row, id_)
        for old, targets in moved.items():
            to_id = max(targets, key=lambda id_: (targets[id_], id_))
            left = self._rows[old]["count"] - sum(targets.values())
            if left <= 0:
                self._rows[old]["went_into"] = self._rows[to_id]["key"]
                self.event(old, "gone", into=self._rows[to_id]["key"])
                if to_id not in is_new:
                    self.event(to_id, "merged", with_=self._rows[old]["key"])
            for id_ in sorted(targets):
                if id_ in is_new:
                    self.event(id_, "split", of=self._rows[old]["key"])

    def _still_there(self, key: str, members: Sequence[Row]) -> list[Row]:
        """Return members that are unchanged since they were read; others are grouped next time."""
        ids = [row["conversation"] for row in members]
        now: dict[tuple[int, str], Row] = {}
        for some in slices(dict.fromkeys(ids)):
            query = select(issue_member).where(
                issue_member.c.project == self._project,
                issue_member.c.conversation.in_(some),
                issue_member.c.signature == key,
            )
            for row in self._connection.execute(query).mappings():
                now[row["conversation"], row["place"]] = dict(row)
        rows = [now.get((row["conversation"], row["place"])) for row in members]
        return [
            row
            for row, before in zip(rows, members, strict=True)
            if row is not None and row["id"] == before["id"]
        ]

    def event(self, id_: int, kind: str, **details: Any) -> None:
        """Record the outcome of an issue."""
        row = {"project": self._project, "issue": id_, "at": self._now, "kind": kind,
               "details": msgspec.json.encode(details).decode()}  # fmt: skip
        self._events.append(row)

    def write(self) -> None:
        """Write what changed."""
        counts: Counter[tuple[int, int, str, str]] = Counter()
        failed: Counter[tuple[int, int, str]] = Counter()
        outages: Counter[tuple[int, int, str]] = Counter()
        for id_, delta in self._deltas.items():
            row = self._rows[id_]
            outage = is_outage(row["fault"])
            for sign, members in ((1, delta.added), (-1, delta.lost)):
                for each in members:
                    day = int(each["at"] // DAY)
                    counts[id_, day, each["agent_version"] or "", each["model"] or ""] += sign
                    for slot in (slot_of(each["at"]), EVERY_SLOT):
                        # The sums of all slots are those of all issues.
                        where = (slot, 0, "") if slot == EVERY_SLOT else (slot, id_, each["agent"])
                        failed[where] += sign
                        outages[where] += sign * outage
            self._update(row, delta)
        sums = [
            {"project": self._project, "issue": id_, "day": day, "agent_version": version,
             "model": model, "failed": count}
            for (id_, day, version, model), count in sorted(counts.items())
            if count
        ]  # fmt: skip
        keys = ("project", "issue", "day", "agent_version", "model")
        add_up(self._connection, issue_count, keys, sums)
        slots = [
            {"project": self._project, "slot": slot, "issue": id_, "agent": agent,
             "dispatches": 0, "failed": failed[slot, id_, agent],
             "outages": outages[slot, id_, agent]}
            for slot, id_, agent in sorted(failed)
            if failed[slot, id_, agent] or outages[slot, id_, agent]
        ]  # fmt: skip
        add_up(self._connection, issue_slot, ("project", "slot", "issue", "agent"), slots)
        if any(outages.values()):
            self._mark_bursts()
        # Titles follow the counts, so they come last.
        for id_ in self._deltas:
            self._rename(self._rows[id_])
        add_rows(self._connection, issue_event, self._events)
        for id_ in set(self._deltas) | self._renamed:
            row = self._rows[id_]
            values = {name: row[name] for name in row if name not in ("id", "project")}
            which = (issue.c.project == self._project) & (issue.c.id == id_)
            self._connection.execute(update(issue).where(which).values(values))

    def _update(self, row: Row, delta: _Delta) -> None:
        was = row["count"]
        for sign, members in ((1, delta.added), (-1, delta.lost)):
            row["count"] += sign * len(members)
            row["dispatched"] += sign * sum(bool(each["place"]) for each in members)
            row["judged"] += sign * sum(each["judged"] for each in members)
        evaluators = set(msgspec.json.decode(row["evaluators"], type=list[str]))
        for each in delta.added:
            evaluators |= set(msgspec.json.decode(each["evaluators"], type=list[str]))
        row["evaluators"] = msgspec.json.encode(sorted(evaluators)).decode()
        lost = {each["at"] for each in delta.lost}
        left = self._times(row["id"]) if {row["first"], row["last"]} & lost else []
        times = [each["at"] for each in delta.added]
        first = left if row["first"] in lost else [row["first"]]
        last = left if row["last"] in lost else [row["last"]]
        row["first"] = min(times + first, default=row["first"])
        row["last"] = max(times + last, default=row["last"])
        if was == 0 and row["count"] > 0 and row["state"] == "new":
            self.event(row["id"], "new")
        if row["state"] == "fixed" and any(_is_back(row, each) for each in delta.added):
            row["state"] = "regressed"
            self.event(row["id"], "regressed", version=row["version"])

    def _times(self, id_: int) -> list[float]:
        query = select(func.min(issue_member.c.at), func.max(issue_member.c.at)).where(
            issue_member.c.project == self._project, issue_member.c.issue == id_
        )
        return [at for at in self._connection.execute(query).one() if at is not None]

    def _mark_bursts(self) -> None:
        """Recount the failures that occurred while many agents failed at once."""
        mine = issue_slot.c.project == self._project
        agents: defaultdict[int, Slot] = defaultdict(Slot)
        by_agent = select(issue_slot.c.slot, issue_slot.c.agent, func.sum(issue_slot.c.outages))
        by_agent = by_agent.where(mine, issue_slot.c.outages > 0, issue_slot.c.slot != EVERY_SLOT)
        by_agent = by_agent.group_by(issue_slot.c.slot, issue_slot.c.agent)
        for slot, agent, count in self._connection.execute(by_agent):
            agents[slot].hit(agent)
            agents[slot].failed += int(count)
        several = {slot: each for slot, each in agents.items() if len(each.agents) > 1}
        totals = issue_slot.c.issue == 0
        for some in slices([EVERY_SLOT, *several]):
            query = select(issue_slot).where(mine, totals, issue_slot.c.slot.in_(some))
            for row in self._connection.execute(query).mappings():
                several.setdefault(row["slot"], Slot()).dispatches = int(row["dispatches"])
                if row["slot"] == EVERY_SLOT:
                    several[EVERY_SLOT].failed = int(row["outages"])
        every = several.pop(EVERY_SLOT, Slot())
        hit: Counter[int] = Counter()
        for some in slices(bursts_of(several, every.dispatches, every.failed)):
            by_issue = select(issue_slot.c.issue, func.sum(issue_slot.c.failed))
            by_issue = by_issue.where(mine, issue_slot.c.slot.in_(some), issue_slot.c.issue != 0)
            for id_, count in self._connection.execute(by_issue.group_by(issue_slot.c.issue)):
                hit[id_] += int(count)
        query = select(issue).where(
            issue.c.project == self._project,
            (issue.c.infrastructure > 0) | issue.c.id.in_(list(hit)),
        )
        # Locked, as the whole row is written: a state that a person gives meanwhile stays.
        for row in self._connection.execute(query.with_for_update()).mappings():
            mine_row = self._rows.setdefault(row["id"], dict(row))
            if mine_row["infrastructure"] != hit[row["id"]]:
                mine_row["infrastructure"] = hit[row["id"]]
                self._renamed.add(row["id"])
                self._rename(mine_row)

    def _rename(self, row: Row) -> None:
        """Update the name of an issue if it becomes, or ceases to be, one of infrastructure."""
        signature = signature_of_row(row)
        subtype = subtype_with(row["fault"], row["count"], row["infrastructure"])
        if subtype.name != row["subtype"]:
            if subtype.name == "infrastructure":
                self.event(row["id"], "burst", failures=row["infrastructure"])
            row["subtype"], row["category"] = subtype.name, subtype.category
            row["title"] = clean(title_of(subtype, signature, row["says"]))


def signature_of_row(row: Mapping[str, Any]) -> Signature:
    """Return the signature of an issue; long names are as rows have them."""
    return Signature("", row["fault"], row["sender"], row["receiver"], row["about"])


def clean(raw: str) -> str:
    """Return text that every database can store."""
    return raw.replace("\0", "\ufffd")


def _member(
    project: int,
    id_: int,
    reading: _Found | None,
    signature: Signature,
    failure: Failure,
    evaluators: Sequence[str],
) -> Row:
    assert reading is not None  # noqa: S101 - it has failures
    at = reading.began if failure.at is None else min(failure.at, reading.seen)
    return {
        "project": project,
        "conversation": id_,
        "signature": signature.key,
        "place": "" if failure.dispatch is None else narrow(failure.dispatch),
        "id": id_of(failure),
        "key": reading.key,
        "evaluators": msgspec.json.encode(sorted(set(evaluators))).decode(),
        "evidence": msgspec.json.encode(failure.evidence).decode(),
        "says": clean(failure.says),
        "agent": narrow(UNTOLD if failure.receiver is None else failure.receiver),
        "agent_version": _narrow(failure.versions.get("agent")),
        "model": _narrow(failure.versions.get("model")),
        "judged": failure.judged,
        "at": max(0.0, at),
    }


def _narrow(name: str | None) -> str | None:
    return None if name is None else narrow(name)


def _is_back(row: Row, member: Row) -> bool:
    """Return whether a failure came in the version that fixes an issue, or after the fix."""
    if row["version"] is not None:
        return bool(member["agent_version"] == row["version"])
    return bool(row["since"] is not None and member["at"] > row["since"])


def ask_for_regrouping(store: Store, project: int) -> None:
    """Have the texts of a project grouped again, as is done every night."""
    with store.write() as connection:
        mine = issue_regroup.c.project == project
        change = update(issue_regroup).where(mine).values(asked=True)
        if connection.execute(change).rowcount == 0:
            row = {"project": project, "done": 0.0, "asked": True}
            connection.execute(insert(issue_regroup).values(row))


EmbedOf = Callable[[int, Sequence[str]], Sequence[Sequence[float]]]
"""Gives vectors for texts of a project."""


def regroup_due(store: Store, now: float, embed: EmbedOf | None = None) -> bool:
    """Group the texts of the next due project again; return whether there was one.

    Without scikit-learn nothing is grouped.

    Raises:
        Unavailable: the store is not available now.
    """
    if not is_installed("sklearn"):
        return False
    with store.read() as connection:
        rows = connection.execute(select(issue_regroup), execution_options=EVERY_PROJECT)
        known = {row.project: row for row in rows}
    for project in sorted(store.projects().values()):
        before = known.get(project)
        if before is None or before.asked or before.done <= now - _NIGHTLY:
            # This is recorded first: if grouping fails, it is tried again the next night.
            with store.write() as connection:
                gone = delete(issue_regroup).where(issue_regroup.c.project == project)
                connection.execute(gone)
                row = {"project": project, "done": now, "asked": False}
                connection.execute(insert(issue_regroup).values(row))
            regroup(store, project, now, None if embed is None else partial(embed, project))
            return True
    return False


def regroup(store: Store, project: int, now: float, embed: Embed | None = None) -> None:
    """Group the texts of issues by meaning, with :mod:`baton.feed.text_groups`.

    For issues that only an evaluator found, each group becomes an issue; existing groups keep their
    names. For proven faults, the groups are recorded. With ``embed``, vectors of texts are compared
    instead of words, as long as there are any.

    Raises:
        InputError: scikit-learn is not installed.
        Unavailable: the store is not available now.
    """
    query = select(issue.c.signature, func.max(issue.c.proven).label("proven"))
    if store.is_postgresql:
        query = select(issue.c.signature, func.bool_or(issue.c.proven).label("proven"))
    query = query.where(issue.c.project == project).group_by(issue.c.signature)
    with store.read() as connection:
        enough = query.having(func.sum(issue.c.count) >= LEAST).order_by(issue.c.signature)
        signatures = connection.execute(enough).all()
    # Groups of vectors would fall apart by words: if there are no vectors, they stay.
    hold = False
    for key, proven in signatures:
        try:
            _regroup_one(store, project, key, proven=bool(proven), now=now, embed=embed, hold=hold)
        except JudgeError as error:
            LOG.warning("new texts of issues are compared by their words: %s", error)
            embed, hold = None, True
            _regroup_one(store, project, key, proven=bool(proven), now=now, hold=True)


def _regroup_one(
    store: Store,
    project: int,
    key: str,
    *,
    proven: bool,
    now: float,
    embed: Embed | None = None,
    hold: bool = False,
) -> None:
    mine = (issue_member.c.project == project) & (issue_member.c.signature == key)
    with store.read() as connection:
        query = select(issue_member).where(mine).order_by(issue_member.c.id)
        # A sample with the smallest hashes, which no order of reading changes.
        query = query.limit(MEMBERS if proven else TEXTS)
        members = [dict(row) for row in connection.execute(query).mappings()]
        query = select(issue).where(issue.c.project == project, issue.c.signature == key)
        rows = {row["id"]: dict(row) for row in connection.execute(query).mappings()}
    kept: Groups = {key: defaultdict(list)}
    for each in members:
        group = rows[each["issue"]]["text_group"] if each["issue"] in rows else None
        if group is not None:
            kept[key][group].append(each["id"])
    base = next(iter(rows.values()))
    parts = by_text(_as_issue(base, key, members, proven=proven), kept, embed, hold=hold)
    with store.write() as connection:
        if not alone(connection):
            return
        changes = Changes(connection, project, now)
        changes.load([key])
        if proven:
            groups = msgspec.json.encode(parts[0].groups).decode()
            which = (issue.c.project == project) & (issue.c.signature == key)
            connection.execute(update(issue).where(which).values(groups=clean(groups)))
        else:
            changes.regroup(key, members, parts)
            changes.write()


def _as_issue(row: Row, key: str, members: Sequence[Row], *, proven: bool) -> Issue:
    """Return the input for grouping: the members with their texts."""
    listed = [
        Member(id=each["id"], conversation=each["key"], says=each["says"], at=each["at"])
        for each in members
    ]
    title = title_of(subtype_with(row["fault"], 1, 0), signature_of_row(row))
    return Issue(
        key=key,
        title=title,
        subtype=row["subtype"],
        category=row["category"],
        fault=row["fault"],
        sender=row["sender"],
        receiver=row["receiver"],
        about=row["about"],
        evaluators=[],
        proven=proven,
        count=len(listed),
        rate=rate_of(0, 0),
        members=listed,
    )
