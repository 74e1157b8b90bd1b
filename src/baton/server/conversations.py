"""Which traces belong together, and the records made from them.

A trace is joined with others through a session, a conversation id, or a linked trace. Joined traces
are read at once, exactly like a file with the same spans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, bindparam, delete, exists, func, select, update

from baton import __version__
from baton.model import AgentCard, Dropped, InputError, Problem, Trace
from baton.model.prices import Prices
from baton.model.redact import ON, Redaction
from baton.readers.otlp.reader import traces_of
from baton.readers.otlp.span import Conversation, Event, Span, tame
from baton.readers.otlp.wire.conversations import components, group
from baton.runner.costs import fill_costs

from .bodies import BodyGone, Place, get_one
from .database import EVERY_PROJECT
from .rows import Row, State, narrow, slices, upsert
from .rules import rules_named
from .schema import being_read, chunk, conversation, tie, trace
from .span_chunks import LINK, open_chunk
from .store import Store


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """When conversations are read, and how much of one.

    ``quiet`` sets the silence in seconds that completes a conversation; otherwise it is learnt. An
    open one is read every ``show`` seconds; one that is never quiet counts as complete every
    ``max_age`` seconds. At most ``spans`` spans and ``bytes`` bytes of a conversation are read,
    from its beginning and its end.
    """

    quiet: float | None = None
    show: float = 30.0
    max_age: float = 3600.0
    spans: int = 100_000
    bytes: int = 64 << 20
    redaction: Redaction = ON
    prices: Prices | None = None


DEFAULT = Bounds()


class Member(NamedTuple):
    """A trace of a conversation, from its row."""

    trace_id: str
    first_seen: float
    last_seen: float
    spans: int
    root: bool
    changed: bool
    read: float | None
    shown: float | None


_MEMBER = [trace.c[name] for name in Member._fields]


class Component(NamedTuple):
    """Traces that belong together, in the order they were first seen."""

    project: int
    members: list[Member]

    @property
    def ids(self) -> list[str]:
        """The ids of the traces."""
        return [member.trace_id for member in self.members]

    @property
    def spans(self) -> int:
        """How many spans arrived; spans that came twice count twice."""
        return sum(member.spans for member in self.members)

    @property
    def last_seen(self) -> float:
        """When its last span arrived."""
        return max(member.last_seen for member in self.members)


class Recorded(NamedTuple):
    """A record that was read, with further data for its rows."""

    trace: Trace
    traces: list[str]
    spans: int
    service: str | None
    agent_versions: dict[str, str]
    rules: frozenset[str]


class ReadAll(NamedTuple):
    """The records of a component. ``gone``: retention deleted some of its spans."""

    records: list[Recorded]
    gone: bool


_IS_BEING_READ = exists().where(
    being_read.c.project == trace.c.project, being_read.c.trace_id == trace.c.trace_id
)


def take(connection: Connection, horizon: float, limit: int) -> list[Component]:
    """Return conversations with new spans that are due.

    Those during which a worker died come from :func:`take_suspect`. With PostgreSQL their rows are
    locked until the transaction ends; those of which another worker has some rows are skipped.
    """
    candidates = (
        select(trace.c.project, trace.c.trace_id)
        .where(trace.c.changed, trace.c.due <= horizon, ~_IS_BEING_READ)
        .order_by(trace.c.due)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    by_project: dict[int, list[str]] = defaultdict(list)
    for project, id_ in connection.execute(candidates, execution_options=EVERY_PROJECT):
        by_project[project].append(id_)
    return [
        component
        for project, ids in by_project.items()
        for component in _components(connection, project, ids)
    ]


def _components(connection: Connection, project: int, ids: Sequence[str]) -> Iterator[Component]:
    together = closures(connection, project, ids)
    members = _members(connection, project, [id_ for some in together for id_ in some])
    for some in together:
        if all(id_ in members for id_ in some):
            listed = sorted(
                (members[id_] for id_ in some), key=lambda one: (one.first_seen, one.trace_id)
            )
            yield Component(project, listed)


def take_suspect(connection: Connection, horizon: float) -> Component | None:
    """Return a due conversation during which a worker died: the one that was begun least often.

    A conversation that another worker is reading looks the same; it is locked, and skipped.
    """
    query = select(being_read.c.begun, being_read.c.project, being_read.c.trace_id)
    query = query.order_by(being_read.c.begun)
    suspects: dict[tuple[int, int], list[str]] = defaultdict(list)
    for begun, project, id_ in connection.execute(query, execution_options=EVERY_PROJECT):
        suspects[begun, project].append(id_)
    for (_, project), ids in suspects.items():
        for some in slices(ids):
            due = (
                select(trace.c.trace_id)
                .where(
                    trace.c.project == project,
                    trace.c.trace_id.in_(some),
                    trace.c.changed,
                    trace.c.due <= horizon,
                )
                .order_by(trace.c.due)
                .limit(1)
                .with_for_update(skip_locked=True)
            )
            for id_ in connection.execute(due).scalars().all():
                for component in _components(connection, project, [id_]):
                    return component
    return None


def begun(connection: Connection, components: Sequence[Component]) -> list[int]:
    """Return, for each conversation, how many workers began to read it and did not finish."""
    counts: dict[tuple[int, str], int] = {}
    by_project: dict[int, list[str]] = defaultdict(list)
    for component in components:
        by_project[component.project] += component.ids
    for project, ids in by_project.items():
        for some in slices(ids):
            query = select(being_read.c.trace_id, being_read.c.begun).where(
                being_read.c.project == project, being_read.c.trace_id.in_(some)
            )
            counts.update(((project, id_), count) for id_, count in connection.execute(query))
    return [max(counts.get((one.project, id_), 0) for id_ in one.ids) for one in components]


def begin(connection: Connection, counts: Iterable[tuple[Component, int]]) -> None:
    """Record how many workers began to read conversations, including the current one."""
    noted = [
        {"project": one.project, "trace_id": id_, "begun": count}
        for one, count in counts
        for id_ in one.ids
    ]
    added = upsert(connection, being_read)
    keys = [being_read.c.project, being_read.c.trace_id]
    change = {"begun": added.excluded.begun}
    connection.execute(added.on_conflict_do_update(index_elements=keys, set_=change), noted)


def end(connection: Connection, components: Iterable[Component]) -> None:
    """Record that reading conversations ended, with any result: no worker died of them."""
    by_project: dict[int, list[str]] = defaultdict(list)
    for component in components:
        by_project[component.project] += component.ids
    for project, ids in by_project.items():
        for some in slices(ids):
            gone = delete(being_read).where(
                being_read.c.project == project, being_read.c.trace_id.in_(some)
            )
            connection.execute(gone)


def closures(connection: Connection, project: int, ids: Sequence[str]) -> list[list[str]]:
    """Return the sets of traces that belong together and can be reached from ``ids``."""
    keys: dict[str, None] = dict.fromkeys(ids)
    pairs: list[tuple[str, str]] = []
    requested: set[str] = set()
    new = list(keys)
    while new:
        others: dict[str, None] = {}
        for some in slices(new):
            query = select(tie.c.trace_id, tie.c.other).where(
                tie.c.project == project, tie.c.trace_id.in_(some)
            )
            for id_, other in connection.execute(query):
                pairs.append((id_, other))
                others[other] = None
        # A link may lead here as well as from here.
        others.update(dict.fromkeys(LINK + id_ for id_ in new))
        unasked = [other for other in others if other not in requested]
        requested.update(unasked)
        tied = list(_tied(connection, project, unasked))
        pairs += tied
        linked = [other.removeprefix(LINK) for other in unasked if other.startswith(LINK)]
        known = _known(connection, project, [id_ for id_ in linked if id_ not in keys])
        new = [id_ for id_ in dict.fromkeys([*(id_ for id_, _ in tied), *known]) if id_ not in keys]
        keys.update(dict.fromkeys(new))
    own = [(id_, LINK + id_) for id_ in keys]
    nodes = dict.fromkeys([*keys, *(other for pair in (*pairs, *own) for other in pair)])
    groups = components(nodes, [*pairs, *own])
    sets = [[node for node in nodes_ if node in keys] for nodes_ in groups]
    return [some for some in sets if some]


_MOST_TRACES = 10_000
"""Maximum traces of a conversation to examine: for a session that never ends, the newest."""


def _tied(connection: Connection, project: int, others: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the traces that share a session, id or link with others."""
    for some in slices(others):
        query = (
            select(tie.c.trace_id, tie.c.other)
            .join(trace, (trace.c.project == project) & (trace.c.trace_id == tie.c.trace_id))
            .where(tie.c.project == project, tie.c.other.in_(some))
            .order_by(trace.c.last_seen.desc())
            .limit(_MOST_TRACES)
        )
        yield from connection.execute(query)


def _known(connection: Connection, project: int, ids: Sequence[str]) -> Iterator[str]:
    for some in slices(ids):
        query = select(trace.c.trace_id).where(
            trace.c.project == project, trace.c.trace_id.in_(some)
        )
        yield from connection.execute(query).scalars()


def _members(connection: Connection, project: int, ids: Sequence[str]) -> dict[str, Member]:
    members = {}
    for some in slices(ids):
        query = (
            select(*_MEMBER)
            .where(trace.c.project == project, trace.c.trace_id.in_(some))
            .with_for_update(skip_locked=True)
        )
        members.update({row.trace_id: Member(*row) for row in connection.execute(query)})
    return members


class _ChunkRow(NamedTuple):
    id: int
    place: Place
    spans: int
    bytes: int


class Chosen(NamedTuple):
    """The chunks of a component to read; spans ``beyond`` the limits, and deleted ones."""

    chunks: list[_ChunkRow]
    beyond: int
    missing: int


def choose(
    connection: Connection, project: int, together: Sequence[Component], bounds: Bounds
) -> list[Chosen]:
    """Choose the chunks to read of each component."""
    ids = [id_ for component in together for id_ in component.ids]
    by_trace: dict[str, list[_ChunkRow]] = defaultdict(list)
    columns = (
        chunk.c.trace_id,
        chunk.c.id,
        chunk.c.day,
        chunk.c.place,
        chunk.c.spans,
        chunk.c.bytes,
    )
    for some in slices(ids):
        query = select(*columns).where(chunk.c.project == project, chunk.c.trace_id.in_(some))
        for id_, number, day, place, spans, size in connection.execute(query):
            by_trace[id_].append(_ChunkRow(number, Place(day, place), spans, size))
    chosen = []
    for component in together:
        chunks = sorted(each for id_ in component.ids for each in by_trace[id_])
        kept, beyond = _within(chunks, bounds)
        missing = component.spans - sum(each.spans for each in chunks)
        chosen.append(Chosen(kept, beyond, max(0, missing)))
    return chosen


def read(stored: Mapping[Place, bytes], chosen: Chosen, bounds: Bounds) -> ReadAll:
    """Read the conversations of a component from its chunks.

    Raises:
        InputError: records that Baton wrote as spans are incomplete, and there is nothing else.
    """
    beyond, missing = chosen.beyond, chosen.missing
    spans: list[Span] = []
    logs: list[Event] = []
    lost: list[Dropped] = []
    torn = False
    for each in chosen.chunks:
        data = stored.get(each.place)
        if data is None:
            missing += each.spans
            continue
        batch, opened = open_chunk(data)
        spans += batch.spans
        logs += batch.logs
        lost += opened.lost
        torn = torn or opened.torn
    if beyond:
        lost.append(Dropped(what=BEYOND, count=beyond))
    if missing > 0:
        lost.append(Dropped(what=DELETED, count=missing))
    problems: list[Problem] = []
    records: list[Recorded] = []
    torn = torn or beyond > 0 or missing > 0
    for one in group(spans, logs):
        for made in traces_of(one, None, {}, problems, torn=torn):
            made.dropped += lost
            lost = []
            if bounds.prices is not None:
                made = fill_costs(made, bounds.prices)  # noqa: PLW2901
            redacted = bounds.redaction.trace(made)
            records.append(_recorded(redacted, one))
    if problems and not records:
        raise InputError(problems)
    for problem in problems[:1]:
        broken = Dropped(what=ON.text(problem.message), count=len(problems))
        records[0].trace.dropped.append(broken)
    one_id_each(record.trace for record in records)
    return ReadAll(records, missing > 0)


BEYOND = "spans beyond the limit of a conversation"
DELETED = "spans that retention deleted"


def _within(chunks: list[_ChunkRow], bounds: Bounds) -> tuple[list[_ChunkRow], int]:
    """Choose the chunks to read, and count the spans of the others.

    If there are too many, the middle is left out: the beginning contains the request, and the roots
    and the answers come at the end.
    """
    spans, size = sum(each.spans for each in chunks), sum(each.bytes for each in chunks)
    if spans <= bounds.spans and size <= bounds.bytes:
        return chunks, 0
    left, right = 0, len(chunks)
    room, bytes_ = bounds.spans, bounds.bytes
    while left < right:
        from_start = left <= len(chunks) - right
        each = chunks[left] if from_start else chunks[right - 1]
        room, bytes_ = room - each.spans, bytes_ - each.bytes
        if room < 0 or bytes_ < 0:
            break
        left, right = (left + 1, right) if from_start else (left, right - 1)
    return [*chunks[:left], *chunks[right:]], sum(each.spans for each in chunks[left:right])


def _recorded(record: Trace, one: Conversation) -> Recorded:
    ids = dict.fromkeys(span.trace_id for span in one.spans)
    ids.update(dict.fromkeys(log.trace_id for log in one.logs if log.trace_id))
    # The spans of one program share the attributes of its resource.
    resources = {id(span.resource): span.resource for span in one.spans}.values()
    services = (_text(each.get("service.name")) for each in resources)
    service = next((name for name in services if name is not None), None)
    versions = (_text(each.get("service.version")) for each in resources)
    releases = {version for version in versions if version is not None}
    named: dict[str, str] = {}
    for span in one.spans:
        if "gen_ai.agent.version" not in span.attributes:
            continue
        version = _text(span.attributes["gen_ai.agent.version"])
        agent = _text(span.attributes.get("gen_ai.agent.name"))
        if version is not None and agent is not None:
            named[agent] = version
    rules = rules_named(
        *resources,
        *(span.attributes for span in one.spans),
        *(attributes for log in one.logs for attributes in (log.attributes, log.resource)),
    )
    if len(releases) == 1:  # of several services, it is unknown which agent is whose
        release = releases.pop()
        agents = (run.agent for turn in record.turns for run in turn.runs)
        named = {**dict.fromkeys(agents, release), **named}
    return Recorded(
        record, [narrow(id_) for id_ in ids], len(one.spans), service, named, frozenset(rules)
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def one_id_each(records: Iterable[Trace]) -> None:
    """Append numbers to the ids of records with the same id, so that each has its own row."""
    count: dict[str, int] = defaultdict(int)
    for record in records:
        count[record.id] += 1
        if count[record.id] > 1:
            record.id = f"{record.id}#{count[record.id]}"


def encode(record: Trace) -> bytes:
    """Return a record in the form of its body."""
    try:
        return msgspec.msgpack.encode(record)
    except OverflowError:  # an integer that only Python supports
        plain = tame(msgspec.to_builtins(record))
        return msgspec.msgpack.encode(plain)


class _Agents(msgspec.Struct):
    """The agents of a record: everything else in its body is skipped."""

    agents: dict[str, AgentCard] = {}


_TRACE = msgspec.msgpack.Decoder(Trace)
_CARDS = msgspec.msgpack.Decoder(_Agents)


def decode(body: bytes) -> Trace:
    """Return the record in a body."""
    return _TRACE.decode(body)


class Outcome(NamedTuple):
    """The result for a component: when to check it again, the records read from it, or an error."""

    component: Component
    state: State | None
    due: float
    error: str | None = None


def settle(connection: Connection, outcomes: Sequence[Outcome], now: float) -> None:
    """Record the results for components. After an error, one waits for spans or a newer Baton."""
    read: list[Row] = []
    shown: list[Row] = []
    later: list[Row] = []
    failed: list[Row] = []
    for component, state, due, error in outcomes:
        for id_ in component.ids:
            row = {"of_project": component.project, "of_trace": id_}
            if error is not None:
                failed.append({**row, "new_error": error.replace("\0", "\ufffd")})
            elif state == "complete":
                read.append({**row, "new_due": due})
            elif state == "open":
                shown.append({**row, "new_due": due})
            else:
                later.append({**row, "new_due": due})
    due_then: dict[str, Any] = {"due": bindparam("new_due")}
    fine = {"error": None, "reader": None}
    error_now = {"error": bindparam("new_error"), "reader": __version__}
    for rows, values in (
        (read, {**due_then, **fine, "changed": False, "read": now}),
        (shown, {**due_then, **fine, "shown": now}),
        (later, due_then),
        (failed, {**error_now, "changed": False}),
    ):
        if rows:
            change = update(trace).where(
                trace.c.project == bindparam("of_project"),
                trace.c.trace_id == bindparam("of_trace"),
            )
            connection.execute(change.values(values), rows)


class Unread(NamedTuple):
    """A trace whose conversation could not be read, and the version of Baton that tried."""

    trace_id: str
    spans: int
    last_seen: float
    error: str
    reader: str


def unread(store: Store, project: int, *, limit: int = 1000) -> list[Unread]:
    """List the traces whose conversations could not be read, the newest first."""
    query = (
        select(*(trace.c[name] for name in Unread._fields))
        .where(trace.c.project == project, trace.c.error.is_not(None))
        .order_by(trace.c.last_seen.desc())
        .limit(limit)
    )
    with store.read() as connection:
        return [Unread(*row) for row in connection.execute(query)]


def unreadable(store: Store) -> int:
    """Return how many traces of all projects have a conversation that could not be read."""
    query = select(func.count()).select_from(trace).where(trace.c.error.is_not(None))
    with store.read() as connection:
        return connection.execute(query, execution_options=EVERY_PROJECT).scalar() or 0


def reread(
    connection: Connection, now: float, project: int | None = None, *, older: bool = False
) -> int:
    """Have unreadable conversations read again; return how many traces they have.

    ``older`` leaves out those that this version of Baton could not read. Those that ended workers
    may be begun as often again.
    """
    which: list[ColumnElement[bool]] = [trace.c.error.is_not(None)]
    if project is not None:
        which.append(trace.c.project == project)
    if older:
        which.append(trace.c.reader != __version__)
    is_one = exists().where(
        trace.c.project == being_read.c.project, trace.c.trace_id == being_read.c.trace_id, *which
    )
    connection.execute(delete(being_read).where(is_one), execution_options=EVERY_PROJECT)
    values = {"changed": True, "due": now, "error": None, "reader": None}
    change = update(trace).where(*which).values(values)
    return connection.execute(change, execution_options=EVERY_PROJECT).rowcount


def record_of(store: Store, project: int, conversation_id: int) -> Trace:
    """Return the record of a conversation.

    Raises:
        KeyError: there is no such conversation.
        BodyGone: retention deleted it.
    """
    return decode(_body_of(store, project, conversation_id))


def cards_of(store: Store, project: int, conversation_id: int) -> dict[str, AgentCard]:
    """Return the agents in the record of a conversation, without reading the rest of it.

    Raises:
        KeyError: there is no such conversation.
        BodyGone: retention deleted it.
    """
    return _CARDS.decode(_body_of(store, project, conversation_id)).agents


def _body_of(store: Store, project: int, conversation_id: int) -> bytes:
    query = select(conversation.c.day, conversation.c.place).where(
        conversation.c.project == project, conversation.c.id == conversation_id
    )
    before: Place | None = None
    while True:
        with store.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise KeyError(conversation_id)
        place = Place(*row)
        try:
            return get_one(store.bodies, place)
        except BodyGone:
            # A worker may have written a new version between the two reads.
            if place == before:
                raise
            before = place
