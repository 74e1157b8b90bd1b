"""Turns records into rows of conversation, run, dispatch and score, and into the sums by hour.

Runs and dispatches are stored for the current version only. Scores are only added. A new version
subtracts the old version's part from the sums.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from baton.feed.failures import NOBODY
from baton.feed.issues import slot_of
from baton.feed.signature import UNTOLD, folded
from baton.model import AgentRun, Dispatch, ToolCall, Trace, Usage, known
from baton.model.score import case_status
from baton.model.views import sum_usage

from .bodies import Place
from .database import add_rows
from .schema import (
    conversation,
    conversation_sum,
    conversation_trace,
    dispatch,
    issue_due,
    issue_edge,
    issue_slot,
    judging,
    label,
    rollup,
    rollup_day,
    run,
    score,
)

Row = dict[str, Any]
State = Literal["open", "complete"]


class Reading(NamedTuple):
    """A record to be turned into rows.

    ``traces`` are the ids of the traces whose spans it was read from, none for an uploaded record.
    ``seen`` is when its last span arrived. ``agent_versions`` are by the name of the agent.
    ``scores`` are rows of ``score`` without project, conversation and version; ``waiting`` names
    the rules whose judges have to be asked. ``named_rules`` are those that its program named.
    """

    trace: Trace
    place: Place
    state: State
    traces: Sequence[str]
    spans: int
    seen: float
    service: str | None = None
    agent_versions: Mapping[str, str] = {}
    gone: bool = False
    scores: Sequence[Row] = ()
    waiting: Sequence[str] = ()
    named_rules: Iterable[str] = ()

    @property
    def key(self) -> str:
        """The id of the record, as in rows."""
        return narrow(self.trace.id)


def narrow(text: str) -> str:
    """Return a name for an indexed column: short, and without NUL characters.

    PostgreSQL allows no NUL in a text and at most 2,700 bytes in an index. The end of a longer
    name is replaced by its hash, so that two long names stay different.
    """
    if len(text) <= _SHORT and "\0" not in text:
        return text
    cut = text.replace("\0", "\ufffd").encode("utf-8", "replace")
    if len(cut) > _NARROW:
        digest = hashlib.sha256(cut).hexdigest()[:16]
        cut = cut[: _NARROW - 20].decode("utf-8", "ignore").encode() + f"...{digest}".encode()
    return cut.decode()


_SHORT, _NARROW = 60, 240
"""Letters that are certainly few bytes; the maximum bytes of a name (an index has up to six)."""


def upsert(connection: Connection, table: Table) -> Any:
    """Return an ``INSERT ... ON CONFLICT``, which has a different class for each database."""
    postgresql_ = connection.dialect.name == "postgresql"
    return (postgresql.insert if postgresql_ else sqlite.insert)(table)


def add_up(
    connection: Connection, table: Table, keys: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Add rows of sums to the stored rows with the same keys."""
    if not rows:
        return
    added = upsert(connection, table)
    summed = {name: table.c[name] + added.excluded[name] for name in rows[0] if name not in keys}
    on_conflict = added.on_conflict_do_update(
        index_elements=[table.c[name] for name in keys], set_=summed
    )
    connection.execute(on_conflict, rows)


def issues_due(connection: Connection, project: int, ids: Iterable[int]) -> None:
    """Mark conversations so that another task of the worker updates issues from their failures."""
    rows = [{"project": project, "conversation": id_, "stamp": 1} for id_ in sorted(set(ids))]
    add_up(connection, issue_due, ("project", "conversation"), rows)


def write(
    connection: Connection,
    project: int,
    readings: Sequence[Reading],
    now: float,
    *,
    traces: Iterable[str] = (),
    unchanged: Iterable[str] = (),
) -> list[Place]:
    """Write conversations that were read, with their rows and sums.

    ``traces`` are all that were examined. A stored conversation of these traces is deleted if its
    id is neither that of a new record nor in ``unchanged``; its labels move to the conversation
    that has its spans now. Returns the places of records that are no longer used.
    """
    by_key = {reading.key: reading for reading in readings}
    before = _stored(connection, project, by_key, traces)
    for key in unchanged:
        before.pop(key, None)
    vanished = [row for key, row in before.items() if key not in by_key]
    old = [row["id"] for row in before.values()]
    sums = Sums()
    _take_out(connection, project, before, sums)
    successors = _successors(connection, project, vanished, by_key)
    for table in (run, dispatch, conversation_trace):
        _delete(connection, table, project, old)
    for some in slices(old):  # no judge is asked about a version that no longer exists
        waits = judging.c.conversation.in_(some) & (judging.c.state != "done")
        connection.execute(delete(judging).where(judging.c.project == project, waits))
    made = [_conversation_row(project, reading, now) for reading in by_key.values()]
    ids = _write_conversations(connection, project, made, before)
    added: dict[Table, list[Row]] = {
        table: [] for table in (conversation_trace, run, dispatch, score, judging)
    }
    for row, reading in zip(made, by_key.values(), strict=True):
        of = {"project": project, "conversation": ids[reading.key]}
        runs, dispatches = _rows_of(reading, of, row)
        scores = [{**of, "version": row["version"], **each} for each in reading.scores]
        give_verdicts(dispatches, scores)
        sums.add(row, dispatches, scores)
        added[run] += runs
        added[dispatch] += dispatches
        added[score] += scores
        added[conversation_trace] += [
            {**of, "trace_id": id_} for id_ in dict.fromkeys(reading.traces)
        ]
        added[judging] += [
            {
                **of,
                "version": row["version"],
                "rule": rule,
                "state": "waiting",
                "attempts": 0,
                "due": now,
                "created": now,
            }
            for rule in dict.fromkeys(reading.waiting)
        ]
    for row in vanished:
        to = ids.get(successors.get(row["key"], ""))
        if to is not None:
            theirs = (label.c.project == project) & (label.c.conversation == row["id"])
            connection.execute(update(label).where(theirs).values(conversation=to))
    failing = {row["id"] for row in before.values() if row["failed"]}
    failing |= {
        ids[key]
        for key, reading in by_key.items()
        if any(each["status"] == "failed" for each in reading.scores)
    }
    issues_due(connection, project, failing)
    gone = [row["id"] for row in vanished]
    for table in (score, judging):
        _delete(connection, table, project, gone)
    for some in slices(gone):
        which = (conversation.c.project == project) & conversation.c.id.in_(some)
        connection.execute(delete(conversation).where(which))
    for table, rows in added.items():
        add_rows(connection, table, rows)
    sums.write(connection, project)
    return [Place(row["day"], row["place"]) for row in before.values()]


def slices(ids: Iterable[Any]) -> Iterable[list[Any]]:
    """Split a list, because databases limit the number of variables in a statement."""
    listed = list(ids)
    return (listed[at : at + 500] for at in range(0, len(listed), 500))


def _delete(connection: Connection, table: Table, project: int, ids: Sequence[int]) -> None:
    for some in slices(ids):
        which = table.c.conversation.in_(some)
        connection.execute(delete(table).where(table.c.project == project, which))


def _stored(
    connection: Connection, project: int, keys: Iterable[str], traces: Iterable[str]
) -> dict[str, Row]:
    """Return the rows of conversations with these keys, or with spans of these traces, by key.

    The rows are locked, because scores that a judge or a rescore adds meanwhile would stay in the
    sums.
    """
    rows: dict[str, Row] = {}
    query = (
        select(conversation)
        .where(conversation.c.project == project)
        .order_by(conversation.c.id)
        .with_for_update(of=conversation)
    )
    of_traces = query.join(
        conversation_trace,
        (conversation_trace.c.project == project)
        & (conversation_trace.c.conversation == conversation.c.id),
    )
    queries = [
        *(query.where(conversation.c.key.in_(some)) for some in slices(keys)),
        *(of_traces.where(conversation_trace.c.trace_id.in_(some)) for some in slices(traces)),
    ]
    for each in queries:
        rows.update((row["key"], dict(row)) for row in connection.execute(each).mappings())
    return rows


def _take_out(connection: Connection, project: int, before: Mapping[str, Row], sums: Sums) -> None:
    """Subtract conversations from the sums, before their rows are deleted."""
    by_id = {row["id"]: row for row in before.values()}
    dispatches: dict[int, list[Row]] = defaultdict(list)
    scores: dict[int, list[Row]] = defaultdict(list)
    for some in slices(by_id):
        which = (dispatch.c.project == project) & dispatch.c.conversation.in_(some)
        for made in connection.execute(select(dispatch).where(which)).mappings():
            dispatches[made["conversation"]].append(dict(made))
        which = (score.c.project == project) & score.c.conversation.in_(some)
        for stored in connection.execute(select(score).where(which)).mappings():
            version = by_id[stored["conversation"]]["version"]
            if stored["version"] == version and stored["replaced_by"] is None:
                scores[stored["conversation"]].append(dict(stored))
    for id_, row in by_id.items():
        sums.add(row, dispatches[id_], scores[id_], sign=-1)


def _successors(
    connection: Connection,
    project: int,
    vanished: Sequence[Row],
    by_key: Mapping[str, Reading],
) -> dict[str, str]:
    """Return, for each vanished conversation, the key of the one that has its spans now."""
    owner = {id_: key for key, reading in by_key.items() for id_ in reading.traces}
    successors: dict[str, str] = {}
    for row in vanished:
        query = select(conversation_trace.c.trace_id).where(
            conversation_trace.c.project == project,
            conversation_trace.c.conversation == row["id"],
        )
        for (id_,) in connection.execute(query.order_by(conversation_trace.c.trace_id)):
            if id_ in owner:
                successors.setdefault(row["key"], owner[id_])
    return successors


def _write_conversations(
    connection: Connection, project: int, made: Sequence[Row], before: Mapping[str, Row]
) -> dict[str, int]:
    """Write rows of conversations, each with its next version; return their numbers by key."""
    new: list[Row] = []
    ids: dict[str, int] = {}
    changed: list[Row] = []
    for row in made:
        old = before.get(row["key"])
        row["version"] = 1 if old is None else old["version"] + 1
        if old is None:
            new.append(row)
        else:
            ids[row["key"]] = old["id"]
            changed.append({**row, "of_project": project, "of_id": old["id"]})
    if new:
        added = insert(conversation).returning(conversation.c.key, conversation.c.id)
        ids.update(connection.execute(added, new).all())
    if changed:
        which = conversation.c.project == bindparam("of_project")
        change = update(conversation).where(which, conversation.c.id == bindparam("of_id"))
        connection.execute(change, changed)
    return ids


def _conversation_row(project: int, reading: Reading, now: float) -> Row:
    trace, turns, seen = reading.trace, reading.trace.turns, reading.seen
    usage = trace.usage or Usage()
    agents = dict.fromkeys(run.agent for turn in turns for run in turn.runs)
    starts = [at for turn in turns if (at := _time(turn.started, seen)) is not None]
    ends = [at for turn in turns if (at := _time(turn.ended, seen)) is not None]
    statuses = [each["status"] for each in reading.scores]
    first_input = next((turn.input.plain() for turn in turns if turn.input), None)
    return {
        "project": project,
        "key": reading.key,
        "state": reading.state,
        "source": narrow(trace.source.format),
        "framework": _name(trace.source.framework),
        "service": _name(reading.service),
        "agents": msgspec.json.encode(list(agents)[:_MOST_AGENTS]).decode(),
        "preview": None
        if first_input is None
        else " ".join(first_input[:1000].split())[:200].replace("\0", ""),
        "started": min(starts, default=None),
        "ended": max(ends, default=None),
        "seen": seen,
        "read": now,
        "status": turns[-1].status if turns else "incomplete",
        "turns": len(turns),
        "runs": sum(len(turn.runs) for turn in turns),
        # A return brings a result back, and passes no work on.
        "dispatches": sum(made.kind != "return" for turn in turns for made in turn.dispatches),
        "spans": reading.spans,
        "input_tokens": _count(usage.input_tokens),
        "output_tokens": _count(usage.output_tokens),
        "cost_usd": _cost(usage.cost_usd),
        "verdict": case_status(statuses) if statuses else None,
        "failed": statuses.count("failed"),
        "day": reading.place.day,
        "place": reading.place.number,
        "gone": reading.gone,
        "named_rules": msgspec.json.encode(
            sorted({narrow(name) for name in reading.named_rules})[:_MOST_RULES]
        ).decode(),
    }


_MOST_AGENTS = _MOST_RULES = 100
"""The maximum number of agents and rules in a row; the record has all agents."""


def _rows_of(reading: Reading, of: Row, row: Row) -> tuple[list[Row], list[Row]]:
    """Make the rows of the runs and dispatches of a record."""
    seen, versions = reading.seen, reading.agent_versions
    runs: dict[str, Row] = {}
    dispatches: dict[str, Row] = {}
    for number, turn in enumerate(reading.trace.turns):
        by_id: dict[str, AgentRun] = {each.id: each for each in turn.runs}
        for each in turn.runs:
            usage = each.usage or Usage()
            runs[narrow(each.id)] = {
                **of,
                "id": narrow(each.id),
                "turn": number,
                "agent": narrow(each.agent),
                "agent_version": _name(versions.get(each.agent)),
                "model": _name(each.model),
                "status": each.status,
                "started": _time(each.started, seen),
                "ended": _time(each.ended, seen),
                "input_tokens": _count(usage.input_tokens),
                "output_tokens": _count(usage.output_tokens),
                "cost_usd": _cost(usage.cost_usd),
                "tool_calls": sum(type(step) is ToolCall for step in each.steps),
            }
        for made in turn.dispatches:
            spent = sum_usage([by_id[id_].usage for id_ in made.runs if id_ in by_id]) or Usage()
            started = _time(made.started, seen)
            if started is None:
                started = _time(turn.started, seen)
            if started is None:
                started = seen if row["started"] is None else row["started"]
            dispatches[narrow(made.id)] = {
                **of,
                "id": narrow(made.id),
                "turn": number,
                "from_agent": _name(made.from_agent),
                "to_agent": narrow(made.to_agent),
                "agent_version": _name(versions.get(made.to_agent)),
                "kind": made.kind,
                "mode": made.mode,
                "basis": made.basis,
                "status": made.status,
                "depth": made.depth,
                "started": started,
                "ended": _time(made.ended, seen),
                "input_tokens": _count(spent.input_tokens),
                "output_tokens": _count(spent.output_tokens),
                "cost_usd": _cost(spent.cost_usd),
                "service": row["service"],
                "verdict": None,
                "model": next(
                    (
                        _name(by_id[id_].model)
                        for id_ in made.runs
                        if id_ in by_id and by_id[id_].model
                    ),
                    None,
                ),
                "untold": _untold(reading.trace, made),
            }
    return list(runs.values()), list(dispatches.values())


def _untold(trace: Trace, made: Dispatch) -> str | None:
    if not known(trace, made, "to_agent"):
        return "to"
    return None if known(trace, made, "from_agent") else "from"


def give_verdicts(dispatches: Sequence[Row], scores: Sequence[Row]) -> None:
    """Set the verdict of each dispatch's row: the worst status of its scores."""
    by_dispatch: dict[str, list[Any]] = defaultdict(list)
    for each in scores:
        if each["dispatch"] is not None:
            by_dispatch[each["dispatch"]].append(each["status"])
    for row in dispatches:
        if row["id"] in by_dispatch:
            known = [row["verdict"]] if row["verdict"] else []
            row["verdict"] = case_status([*known, *by_dispatch[row["id"]]])


def _name(text: str | None) -> str | None:
    return None if text is None else narrow(text)


def _time(at: float | None, seen: float) -> float | None:
    """Return a time for lists and sums, limited to the arrival of its span.

    With a clock that is ahead, a conversation would be on top of all lists until that time.
    """
    if at is None or not math.isfinite(at) or at < 0:
        return None
    return min(at, seen)


def _count(value: int | None) -> int | None:
    """Return a count, limited so that sums of millions of rows cannot overflow."""
    return None if value is None else max(0, min(value, 10**12))


def _cost(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


_Key = tuple[int, str, str, str, str]
FIGURES = (
    "count",
    "passed",
    "failed",
    "errors",
    "skipped",
    "value_sum",
    "value_count",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "cost_known",
    "seconds",
)
"""Columns of `rollup` that are sums. A dispatch whose cost is unknown is not in ``cost_known``."""
_DISPATCH_STATUS = {
    "completed": "passed",
    "failed": "failed",
    "refused": "failed",
    "unanswered": "failed",
}
_SCORE_STATUS = {"passed": "passed", "failed": "failed", "error": "errors", "skipped": "skipped"}


CONVERSATION_FIGURES = (
    "count",
    "opened",
    "passed",
    "failed",
    "errors",
    "dispatches",
    "input_tokens",
    "input_known",
    "output_tokens",
    "output_known",
    "cost_usd",
    "cost_known",
    "seconds",
    "seconds_known",
)
"""Columns of `conversation_sum` that are sums."""
NO_DAY = -1
"""The day for conversations with an unknown start."""
DAY = 86_400


class Sums:
    """Collects what conversations add to the sums by hour and day, or subtract from them."""

    def __init__(self) -> None:
        self._by_key: dict[_Key, dict[str, float]] = defaultdict(lambda: dict.fromkeys(FIGURES, 0))
        self._conversations: dict[int, dict[str, float]] = defaultdict(
            lambda: dict.fromkeys(CONVERSATION_FIGURES, 0)
        )
        self._traffic = Traffic()

    def conversation(self, of: Mapping[Any, Any], sign: int) -> None:
        """Add the row of a conversation, or subtract it as it was added."""
        began = of["started"]
        sums = self._conversations[NO_DAY if began is None else int(began // DAY)]
        sums["count"] += sign
        if of["state"] == "open":
            sums["opened"] += sign
        verdict = _SCORE_STATUS.get(of["verdict"] or "", "skipped")
        if verdict != "skipped":
            sums[verdict] += sign
        sums["dispatches"] += sign * of["dispatches"]
        took = None if began is None or of["ended"] is None else of["ended"] - began
        for name, counted, value in (
            ("input_tokens", "input_known", of["input_tokens"]),
            ("output_tokens", "output_known", of["output_tokens"]),
            ("cost_usd", "cost_known", of["cost_usd"]),
            ("seconds", "seconds_known", took),
        ):
            if value is not None:
                sums[name] += sign * value
                sums[counted] += sign

    def add(
        self,
        of: Mapping[Any, Any],
        dispatches: Sequence[Row],
        scores: Sequence[Row],
        *,
        sign: int = 1,
        with_dispatches: bool = True,
    ) -> None:
        """Add the dispatches and scores of a conversation, whose row is ``of``."""
        starts = {row["id"]: row["started"] for row in dispatches}
        began = of["seen"] if of["started"] is None else of["started"]
        if with_dispatches:
            self.conversation(of, sign)
            self._traffic.add(dispatches, sign, began)
        for row in dispatches if with_dispatches else ():
            status = _DISPATCH_STATUS.get(row["status"], "skipped")
            known = row["started"] is not None and row["ended"] is not None
            figures = {
                "input_tokens": row["input_tokens"] or 0,
                "output_tokens": row["output_tokens"] or 0,
                "cost_usd": row["cost_usd"] or 0.0,
                "cost_known": row["cost_usd"] is not None,
                "seconds": max(0.0, row["ended"] - row["started"]) if known else 0.0,
            }
            started = began if row["started"] is None else row["started"]
            self._one(sign, started, row, "", status, figures)
        for row in scores:
            if not row.get("sampled", True):
                continue  # scored because another rule failed: it would make rates look worse
            value = row["value"]
            figures = {
                "value_sum": value or 0.0,
                "value_count": 0 if value is None else 1,
                "cost_usd": row["cost_usd"] or 0.0,
                # Without a judge, a score costs nothing.
                "cost_known": row["judge"] is None or row["cost_usd"] is not None,
            }
            started = starts.get(row["dispatch"])
            evaluator = narrow(row["evaluator"])
            status = _SCORE_STATUS[row["status"]]
            self._one(sign, began if started is None else started, row, evaluator, status, figures)

    def _one(
        self,
        sign: int,
        started: float,
        row: Row,
        evaluator: str,
        status: str,
        figures: Mapping[str, float],
    ) -> None:
        edge = (row["from_agent"] or "", row["to_agent"] or "", row["agent_version"] or "")
        sums = self._by_key[(int(started // 3600), *edge, evaluator)]
        sums["count"] += sign
        sums[status] += sign
        for name, value in figures.items():
            sums[name] += sign * value

    def write(self, connection: Connection, project: int) -> None:
        """Add the sums to those that are stored. Rows are locked in one order by all workers."""
        self._traffic.write(connection, project)
        _add_sums(connection, project, conversation_sum, ("day",), {
            (day,): figures for day, figures in self._conversations.items()
        })  # fmt: skip
        _add_sums(connection, project, rollup, ("hour", *_EDGE), self._by_key)
        by_day: dict[_Key, dict[str, float]] = defaultdict(lambda: dict.fromkeys(FIGURES, 0))
        for (hour, sender, receiver, version, evaluator), figures in self._by_key.items():
            of_day = by_day[hour // 24, sender, receiver, version, evaluator]
            for name, value in figures.items():
                of_day[name] += value
        _add_sums(connection, project, rollup_day, ("day", *_EDGE), by_day)


def _add_sums(
    connection: Connection,
    project: int,
    table: Table,
    keys: Sequence[str],
    sums: Mapping[Any, dict[str, float]],
) -> None:
    """Add sums to the stored ones, and delete rows without any conversation left."""
    rows = [
        {"project": project, **dict(zip(keys, key, strict=True)), **figures}
        for key, figures in sorted(sums.items())
        if any(figures.values())
    ]
    if not rows:
        return
    add_up(connection, table, ("project", *keys), rows)
    times = {key[0] for key, figures in sums.items() if figures["count"] < 0}
    for some in slices(times):
        empty = table.c[keys[0]].in_(some) & (table.c.count == 0)
        connection.execute(delete(table).where(table.c.project == project, empty))


class Traffic:
    """Collects the dispatches that conversations add to the rates of issues, or remove from them.

    They are counted by edge, version and model; and by five minutes, as an outage affects many
    agents at once. Returns are not counted.
    """

    def __init__(self) -> None:
        self._edges: dict[tuple[str, str, str, str], int] = defaultdict(int)
        self._slots: dict[int, int] = defaultdict(int)

    def add(self, dispatches: Sequence[Row], sign: int, began: float) -> None:
        """Add or subtract rows of dispatches; ``began`` is the start of their conversation."""
        for row in dispatches:
            if row["kind"] == "return" or row["untold"] == "to":
                continue
            sender = UNTOLD if row["untold"] else row["from_agent"] or NOBODY
            edge = folded(sender), folded(row["to_agent"])
            self._edges[*edge, row["agent_version"] or "", row["model"] or ""] += sign
            self._slots[slot_of(began if row["started"] is None else row["started"])] += sign

    def write(self, connection: Connection, project: int) -> None:
        """Add the sums to those that are stored. Rows are locked in one order by all workers."""
        names = ("sender", "receiver", "agent_version", "model")
        edges = [
            {"project": project, **dict(zip(names, key, strict=True)), "dispatches": count}
            for key, count in sorted(self._edges.items())
            if count
        ]
        add_up(connection, issue_edge, ("project", *names), edges)
        slots = {EVERY_SLOT: sum(self._slots.values()), **self._slots}
        rows = [
            {"project": project, "slot": slot, "issue": 0, "agent": "",
             "dispatches": count, "failed": 0, "outages": 0}
            for slot, count in sorted(slots.items())
            if count
        ]  # fmt: skip
        add_up(connection, issue_slot, ("project", "slot", "issue", "agent"), rows)


EVERY_SLOT = -1
"""The slot with the total sums."""
_EDGE = ("from_agent", "to_agent", "agent_version", "evaluator")
