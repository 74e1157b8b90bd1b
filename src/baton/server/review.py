"""The review queue: which dispatches people label next, who has them, and how far people agree.

The queue is computed on request, from scores and labels; only the assignments to people are stored.
A dispatch is reserved for some minutes for the person who took it, so that two people do not get
the same one. Labels are rows that are only added (:mod:`baton.server.labels`), so simultaneous or
repeated labels overwrite nothing.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Annotated, Any, NamedTuple, TypeVar, get_args
from weakref import WeakKeyDictionary

import msgspec
from sqlalchemy import Connection, Select, delete, func, insert, select, union_all

from baton.evaluators.judged import Judged
from baton.evaluators.judging.evidence import FINDINGS
from baton.evaluators.judging.rubric_files import names_of
from baton.evaluators.judging.verdicts import ballots_in, label_in
from baton.model import EvalContext, InputError, Problem
from baton.model.filter import Filter, Term
from baton.runner.judged_subjects import terms_of
from baton.session.server_rows import DispatchRow, Given, Queued, Review, Why
from baton.stats.calibration import (
    Opinion,
    Terms,
    Together,
    majority,
    people_class,
    scheme_of,
    together,
)

from . import queries
from .access import Caller
from .bodies import BodyGone
from .conversations import record_of
from .database import EVERY_PROJECT
from .paging import at_of
from .schema import conversation, label, review_hold, score
from .store import Store

WHYS: tuple[Why, ...] = get_args(Why)
LEASE = 600.0
"""Seconds for which a dispatch is reserved: long enough to read a long one."""
_NEWEST = 500
"""Scores of each evaluator and verdict that are searched for disagreements and close votes."""
_PAGE = 500
"""Maximum dispatches of one query. The first query asks for few, since the first ones often
suffice, and each further one for twice as many, up to this."""
_MOST_KEYS = 100_000
"""Dispatches that are examined for one reason."""
_COUNTED = 50
"""Dispatches up to which each reason is counted."""

Key = tuple[int, str]
"""The number of a conversation, and the id of a dispatch in it."""
_One = TypeVar("_One")
Labels = Mapping[Key, Mapping[str, str]]
"""The last label of each person, for each thing, as JSON."""


class Asked(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which dispatches to review, and by which rubric.

    ``why`` are reasons, by default all; ``share`` is the sampled share of dispatches without
    another reason; ``people`` is how many people label each dispatch. ``by`` is who labels, if it
    is not the owner of the key.
    """

    rubric: str
    filter: str | None = None
    why: list[Why] = []
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.1
    people: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1
    by: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None

    @property
    def chosen(self) -> Filter:
        """The filter over dispatches; raises InputError for a wrong one."""
        return queries.dispatch_filter(self.filter)


class Item(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A dispatch of a review."""

    rubric: str
    conversation_id: int
    subject: str
    by: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


def person(caller: Caller, stated: str | None) -> str:
    """Return who labels: the person from a proxy, else the named one, else the key's owner."""
    return caller.name if caller.proxied else stated or caller.name


def review(
    store: Store,
    project: int,
    evaluator: Judged,
    asked: Asked,
    by: str,
    *,
    limit: int = 50,
    now: float | None = None,
) -> Review:
    """Return the queue as a person sees it, the progress of labelling, and how people agree."""
    now = time.time() if now is None else now
    queue = Queue(store, project, evaluator, asked, by, now)
    keys = list(queue.keys_waiting(_COUNTED))
    counts = {reason: sum(why == reason for _, why in keys) for reason in queue.reasons}
    items = queue.queued(keys[:limit])
    people = queue.people
    return Review(
        rubric=evaluator.type,
        items=items,
        more=len(keys) > limit,
        waiting=counts,
        counted=_COUNTED,
        labelled=len(queue.labels),
        by=people.by,
        disputed=len(people.disputed),
        unknown=people.unknown,
        agreement=people.agreement,
    )


def take(
    store: Store,
    project: int,
    evaluator: Judged,
    asked: Asked,
    by: str,
    now: float | None = None,
) -> Queued | None:
    """Reserve the next dispatch for a person to label; ``None`` if all are labelled.

    A dispatch that is already reserved for them, and neither labelled nor skipped, comes first.
    """
    now = time.time() if now is None else now
    queue = Queue(store, project, evaluator, asked, by, now)
    skipped: list[Queued] = []
    for one in chain(queue.mine(), queue.waiting()):
        if one.skipped:
            skipped.append(one)
        elif queue.take(one):
            return one
    return next((one for one in skipped if queue.take(one)), None)


def skip(store: Store, project: int, evaluator: Judged, item: Item, by: str) -> None:
    """Put a dispatch at the end of a person's queue, and leave it to others."""
    key = (item.conversation_id, item.subject)
    with store.write() as connection:
        there = select(conversation.c.id).where(
            conversation.c.project == project, conversation.c.id == key[0]
        )
        if connection.execute(there).first() is None:
            raise InputError(f"there is no conversation {key[0]} in this project")
        _hold(connection, project, evaluator.type, key, by, skipped=True, until=time.time())


def let_go(connection: Connection, project: int, key: Key, by: str) -> None:
    """End the reservation of a dispatch that a person has labelled."""
    connection.execute(
        delete(review_hold).where(
            review_hold.c.project == project,
            review_hold.c.conversation == key[0],
            review_hold.c.subject == key[1],
            review_hold.c.by == by,
        )
    )


class Queue:
    """The dispatches that wait for a person, the most valuable labels first."""

    def __init__(
        self, store: Store, project: int, evaluator: Judged, asked: Asked, by: str, now: float
    ) -> None:
        """Read labels and reservations; raises InputError for a wrong filter, or another unit."""
        if evaluator.rubric.unit != "dispatch":
            message = f"`{evaluator.type}` is about a {evaluator.rubric.unit}, not about a dispatch"
            raise InputError(Problem(path="rubric", message=message))
        self._store, self._project, self._evaluator = store, project, evaluator
        self._asked, self._by, self._now = asked, by, now
        about = [Term(field="basis", any_of=("stated", "structure"))]
        if evaluator.options.order:
            about = []
        kinds = evaluator.rubric.kinds or ["transfer", "delegate", "sequence"]
        about.append(Term(field="kind", any_of=tuple(kinds)))
        self._chosen = Filter(terms=(*asked.chosen.terms, *about))
        with store.read() as connection:
            self._holds = _holds(connection, project, evaluator.type)
            cached = _cached_labels(store, connection, project, names_of(evaluator.shape))
        self.labels, self.people = cached.labels, cached.people(terms_of(evaluator))
        self._judged: tuple[list[Key], list[Key]] | None = None
        self._known: dict[Key, DispatchRow] = {}

    @property
    def reasons(self) -> list[Why]:
        """The requested reasons, the most valuable first."""
        return [why for why in WHYS if why in self._asked.why or not self._asked.why]

    def waiting(self, most: int | None = None) -> Iterator[Queued]:
        """Yield the dispatches that wait for the person, each once; at most ``most`` per reason."""
        # Without a number, usually only the next one is needed.
        for some in _batches(self.keys_waiting(most), most or 1):
            yield from self.queued(some)

    def keys_waiting(self, most: int | None = None) -> Iterator[tuple[Key, Why]]:
        """Yield which dispatches wait for the person, and why; see :meth:`waiting`."""
        seen: set[Key] = set()
        for why in self.reasons:
            yield from islice(self._waiting(why, seen, 8 if most is None else most), most)

    def _waiting(self, why: Why, seen: set[Key], first: int) -> Iterator[tuple[Key, Why]]:
        keys = self._keys(why)
        if why in ("failed", "sample"):  # they match the filter that found them
            for key in keys:
                if key not in seen and self._waits(key, why):
                    yield key, why
                seen.add(key)
            return
        for some in _batches(keys, first):
            waiting = [key for key in some if key not in seen and self._waits(key, why)]
            seen.update(some)
            self._read(waiting)
            for key in waiting:
                if key in self._known:
                    yield key, why

    def queued(self, some: Sequence[tuple[Key, Why]]) -> list[Queued]:
        """Return the rows of dispatches that wait."""
        self._read([key for key, _ in some])
        return [self._queued(self._known[key], why) for key, why in some if key in self._known]

    def _read(self, keys: Sequence[Key]) -> None:
        for row in self._rows([key for key in keys if key not in self._known]):
            self._known[row.conversation_id, row.id] = row

    def mine(self) -> Iterator[Queued]:
        """Yield the dispatches that are reserved for the person, if they are requested."""
        keys = [
            key
            for key, holds in self._holds.items()
            if (mine := holds.get(self._by)) and not mine.skipped and mine.until > self._now
        ]
        for row in self._rows(keys):
            if self._by not in self.labels.get((row.conversation_id, row.id), {}):
                yield self._queued(row, None)

    def take(self, one: Queued) -> bool:
        """Reserve a dispatch; ``False`` if another person was faster, or it cannot be read.

        Labels of things that the rubric is not about would stop ``baton calibrate``.
        """
        key = (one.dispatch.conversation_id, one.dispatch.id)
        try:
            record = record_of(self._store, self._project, key[0])
        except (BodyGone, KeyError):
            return False
        context = EvalContext(only=frozenset([key[1]]))
        if not self._evaluator.subjects(record, None, context):
            return False
        rubric = self._evaluator.type
        with self._store.write() as connection:
            if self._store.is_postgresql:
                # Two simultaneous requests are handled one after the other; SQLite has one writer.
                name = func.hashtext("baton review")
                connection.execute(select(func.pg_advisory_xact_lock(name, self._project)))
            self._holds = _holds(connection, self._project, rubric)
            names = names_of(self._evaluator.shape)
            self.labels = _cached_labels(self._store, connection, self._project, names).labels
            if not self._waits(key, one.why):
                return False
            until = self._now + LEASE
            _hold(connection, self._project, rubric, key, self._by, skipped=False, until=until)
        one.held_by, one.until = [self._by], at_of(until)
        return True

    def _waits(self, key: Key, why: Why | None) -> bool:
        labels = self.labels.get(key, {})
        if self._by in labels:
            return False
        # If people disagree, one more decides, whatever the requested number of people.
        return why == "disputed" or len({*labels, *self._others(key)}) < self._asked.people

    def _others(self, key: Key) -> list[str]:
        """Return who else has reserved it now."""
        return [
            by
            for by, hold in self._holds.get(key, {}).items()
            if by != self._by and not hold.skipped and hold.until > self._now
        ]

    def _queued(self, row: DispatchRow, why: Why | None) -> Queued:
        key = (row.conversation_id, row.id)
        mine = self._holds.get(key, {}).get(self._by)
        return Queued(
            dispatch=row,
            why=why,
            labels=len(self.labels.get(key, {})),
            held_by=self._others(key),
            skipped=mine is not None and mine.skipped,
        )

    def _keys(self, why: Why) -> Iterator[Key]:
        """Yield dispatches with a reason; for people and judges also some outside of the filter."""
        if why == "failed":
            failed = Term(field="verdict", any_of=("failed",))
            # Most of them wait: a few are enough at first.
            yield from self._listed(Filter(terms=(*self._chosen.terms, failed)), 2 * _COUNTED)
        elif why == "sample":
            for key in self._listed(self._chosen):
                if _in_sample(key, self._asked.share):
                    yield key
        elif why == "disputed":
            yield from self.people.disputed
        else:
            if self._judged is None:
                self._judged = _of_judges(self._store, self._project, self._evaluator)
            yield from self._judged[why == "votes"]

    def _listed(self, chosen: Filter, first: int = _PAGE) -> Iterator[Key]:
        after: Sequence[Any] | None = None
        size, seen = first, 0
        while seen < _MOST_KEYS:
            keys, after = queries.dispatch_keys(
                self._store, self._project, chosen, limit=size, after=after
            )
            yield from keys
            if after is None:
                return
            seen, size = seen + len(keys), min(2 * size, _PAGE)

    def _rows(self, keys: Sequence[Key]) -> list[DispatchRow]:
        """Return the dispatches that match the filter, in their order."""
        if not keys:
            return []
        rows = queries.dispatches_among(self._store, self._project, self._chosen, keys)
        place = {key: number for number, key in enumerate(keys)}
        return sorted(rows, key=lambda row: place[row.conversation_id, row.id])


def _batches(keys: Iterator[_One], size: int) -> Iterator[list[_One]]:
    """Yield batches: first of ``size``, then larger ones if that was not enough."""
    while some := list(islice(keys, size)):
        yield some
        size = min(2 * size, _PAGE)


class _Hold(NamedTuple):
    skipped: bool
    until: float


def _holds(connection: Connection, project: int, rubric: str) -> dict[Key, dict[str, _Hold]]:
    query = select(review_hold).where(
        review_hold.c.project == project, review_hold.c.rubric == rubric
    )
    holds: dict[Key, dict[str, _Hold]] = {}
    for row in connection.execute(query):
        key = (row.conversation, row.subject)
        holds.setdefault(key, {})[row.by] = _Hold(row.skipped, row.until)
    return holds


def _hold(
    connection: Connection,
    project: int,
    rubric: str,
    key: Key,
    by: str,
    *,
    skipped: bool,
    until: float,
) -> None:
    values = {"project": project, "rubric": rubric, "conversation": key[0], "subject": key[1]}
    same = [review_hold.c[name] == value for name, value in values.items()]
    connection.execute(delete(review_hold).where(*same, review_hold.c.by == by))
    row = {**values, "by": by, "skipped": skipped, "until": until}
    connection.execute(insert(review_hold).values(row))


class _People(NamedTuple):
    """A summary of labels.

    It has how many labels each person gave, on which dispatches they disagree, how far every two
    people agree, and how many labels the rubric does not have (or no longer has).
    """

    by: dict[str, int]
    disputed: list[Key]
    agreement: list[Together]
    unknown: int


class _Labels:
    """The labels of a rubric: the first ``count`` ones, up to the number ``last``.

    ``newest`` is the number of the last label in the store when they were read.
    """

    def __init__(self, count: int, last: int, labels: Labels, newest: int = 0) -> None:
        self.count, self.last, self.labels, self.newest = count, last, labels, newest
        self._people: tuple[Terms, _People] | None = None

    def people(self, terms: Terms) -> _People:
        """Return their summary, which is computed once for the answers of a rubric."""
        if self._people is None or self._people[0] != terms:
            self._people = terms, _people(self.labels, terms)
        return self._people[1]


_LABELS: WeakKeyDictionary[Store, OrderedDict[tuple[int, frozenset[str]], _Labels]] = (
    WeakKeyDictionary()
)
_RUBRICS = 8
"""The number of rubrics whose labels are kept in memory: some MB for 40,000 labels."""
_LOCK = threading.Lock()


def _cached_labels(
    store: Store, connection: Connection, project: int, names: Iterable[str]
) -> _Labels:
    """Return each person's last label of each dispatch, by a rubric under any of its names.

    Labels are only added, and all of them are needed after each new one. So they are cached, and
    only new ones are read. If another process committed a lower number later (PostgreSQL assigns
    numbers before a commit), all are read again.
    """
    key = project, frozenset(names)
    with _LOCK:
        kept = _LABELS.setdefault(store, OrderedDict())
        known = kept.get(key) or _Labels(0, 0, {})
    # Counting 40,000 labels takes 4 ms, the last of all rubrics and projects none.
    newest = connection.execute(select(func.max(label.c.id)), execution_options=EVERY_PROJECT)
    last_of_all = newest.scalar() or 0
    if known.newest == last_of_all and not store.is_postgresql:
        return known
    chosen = label.c.project == project, label.c.rubric.in_(sorted(names))
    how_many = select(func.count(), func.max(label.c.id)).where(*chosen)
    count, last = connection.execute(how_many).one()
    if (known.count, known.last) != (count, last or 0):
        read = (label.c.id, label.c.conversation, label.c.subject, label.c.by, label.c.value)
        query = select(*read).where(*chosen).order_by(label.c.id)
        rows = connection.execute(query.where(label.c.id > known.last)).all()
        if known.count + len(rows) != count:
            known, rows = _Labels(0, 0, {}), connection.execute(query).all()
        labels = dict(known.labels)  # other threads use the known ones
        for _, number, subject, by, value in rows:
            labels[number, subject] = {**labels.get((number, subject), {}), by: value}
        last = rows[-1].id if rows else known.last
        known = _Labels(known.count + len(rows), last, labels)
    known.newest = last_of_all
    with _LOCK:
        kept[key] = known
        kept.move_to_end(key)
        if len(kept) > _RUBRICS:
            kept.popitem(last=False)
    return known


def labels_of_dispatches(
    connection: Connection, project: int, evaluator: Judged, conversations: Iterable[int]
) -> dict[Key, dict[str, Given]]:
    """Return each person's last label of each dispatch in some conversations, by a rubric."""
    query = select(label).where(
        label.c.project == project,
        label.c.rubric.in_(names_of(evaluator.shape)),
        label.c.conversation.in_(set(conversations)),
    )
    labels: dict[Key, dict[str, Given]] = {}
    for row in connection.execute(query.order_by(label.c.id)):
        labels.setdefault((row.conversation, row.subject), {})[row.by] = Given(
            by=row.by, value=msgspec.json.decode(row.value), note=row.note, at=at_of(row.at)
        )
    return labels


def labels_of_dispatch(store: Store, project: int, evaluator: Judged, key: Key) -> dict[str, Given]:
    """Return each person's last label of one dispatch, by a rubric."""
    with store.read() as connection:
        return labels_of_dispatches(connection, project, evaluator, key[:1]).get(key, {})


class Verdict(NamedTuple):
    """A judge's verdict on a dispatch: a label of the rubric, or whether it passed, and why."""

    evaluator: str
    said: str
    reason: str | None


def verdicts_of_dispatch(
    store: Store, project: int, evaluator: Judged, key: Key, most: int = 4
) -> list[Verdict]:
    """Return the verdicts of judges on one dispatch by a rubric, the last one first."""
    query = (
        select(score.c.evaluator, score.c.status, score.c.reason, score.c.details)
        .where(
            score.c.project == project,
            score.c.conversation == key[0],
            score.c.dispatch == key[1],
            score.c.type == evaluator.type,
            score.c.replaced_by.is_(None),
        )
        .order_by(score.c.id.desc())
        .limit(most)
    )
    with store.read() as connection:
        return [
            Verdict(
                row.evaluator,
                label_in(row.details) or row.status,
                row.reason,
            )
            for row in connection.execute(query)
        ]


def labelled_rubrics(store: Store, project: int) -> dict[str, int]:
    """Return the names of rubrics with labels of people, each with the number of labels."""
    query = select(label.c.rubric, func.count()).where(label.c.project == project)
    with store.read() as connection:
        rows = connection.execute(query.group_by(label.c.rubric).order_by(label.c.rubric))
        return {str(name): int(count) for name, count in rows}


def verdict_counts(
    store: Store, project: int, evaluators: Sequence[str]
) -> dict[tuple[str, str], int]:
    """Return how often judges gave each status, by the type of evaluator and the status."""
    query = select(score.c.type, score.c.status, func.count()).where(
        score.c.project == project, score.c.evaluator.in_(evaluators)
    )
    with store.read() as connection:
        rows = connection.execute(query.group_by(score.c.type, score.c.status))
        return {(str(type_), str(status)): int(count) for type_, status, count in rows}


def _in_sample(key: Key, share: float) -> bool:
    """Return whether a dispatch is in the sample: the same ones each time, and for everybody."""
    name = f"{key[0]}\0{key[1]}".encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big") < share * 2**64


def _of_judges(store: Store, project: int, evaluator: Judged) -> tuple[list[Key], list[Key]]:
    """Return dispatches on which judges differ, from each other or the record; and close ones.

    A verdict is close if some samples, or judges of a panel, differ from it. The newest come first.
    """
    types = set(names_of(evaluator.shape))
    with store.read() as connection:
        every = queries.evaluators(connection, project)
        wanted = [name for name, type_ in every.items() if type_ in types]
        if not wanted:
            return [], []
        # Other evaluators only matter if they prove a fault that the rubric asks about: a receiver
        # that failed says nothing about whether it stayed inside its task.
        others = [name for name, type_ in every.items() if type_ not in types]
        kinds = {kind for name in evaluator.shape.findings for kind in FINDINGS[name][1]}
        of_judges = [(name, status) for status in ("passed", "failed") for name in wanted]
        verdicts = [_newest_scores(project, *each) for each in of_judges]
        proven = [_newest_scores(project, name, "failed", proving=kinds) for name in others]
        # The database compares some thousands of scores: few of them differ.
        verdict_rows = union_all(*verdicts, *proven).subquery().c
        differ = (
            select(verdict_rows.conversation, verdict_rows.dispatch)
            .group_by(verdict_rows.conversation, verdict_rows.dispatch)
            .having(
                func.min(verdict_rows.status) == "failed", func.max(verdict_rows.status) == "passed"
            )
            .order_by(
                func.max(verdict_rows.at).desc(),
                verdict_rows.conversation.desc(),
                verdict_rows.dispatch,
            )
        )
        differing = {(row.conversation, row.dispatch): None for row in connection.execute(differ)}
        whole = [_newest_scores(project, *each, details=True) for each in of_judges]
        voted = union_all(*whole).subquery().c
        votes = select(voted.conversation, voted.dispatch, voted.details)
        votes = votes.where(voted.details.contains('"votes"')).order_by(voted.at.desc())
        close = {
            (row.conversation, row.dispatch): None
            for row in connection.execute(votes)
            if _is_close(row.details)
        }
    return list(differing), [key for key in close if key not in differing]


def _newest_scores(
    project: int,
    evaluator: str,
    status: str,
    *,
    proving: Collection[str] | None = None,
    details: bool = False,
) -> Select[Any]:
    """Return the newest scores of an evaluator about dispatches, or those that prove a fault."""
    columns = [score.c.conversation, score.c.dispatch, score.c.status, score.c.at, score.c.finding]
    query = (
        select(*columns, *([score.c.details] if details else []))
        .join(conversation, conversation.c.id == score.c.conversation)
        .where(
            score.c.project == project,
            conversation.c.project == project,
            conversation.c.version == score.c.version,
            score.c.replaced_by.is_(None),
            score.c.evaluator == evaluator,
            score.c.status == status,
            score.c.dispatch.is_not(None),
        )
        .order_by(score.c.at.desc())
        .limit(_NEWEST)
    )
    # SQLite accepts no sorted part of a union without a query around it.
    newest = query.subquery().c
    return select(*newest).where(*([] if proving is None else [newest.finding.in_(proving)]))


def _is_close(details: str) -> bool:
    """Return whether samples, or judges of a panel, differ."""
    votes = ballots_in(details).votes
    return votes is not msgspec.UNSET and len(votes) > 1


def _people(labels: Labels, terms: Terms) -> _People:
    """Return a summary of labels in the terms that ``baton calibrate`` compares.

    These are the labels of the rubric, or passed and failed if people use them.
    """
    counts = Counter(chain.from_iterable(labels.values()))
    # There are few different answers, and many labels.
    values = {value for each in labels.values() for value in each.values()}
    opinions = {
        value: stated
        for value in values
        if (stated := opinion_of(msgspec.json.decode(value), terms)) is not None
    }
    scheme = scheme_of(list(opinions.values()), terms)
    classes = {
        value: label_text
        for value, opinion in opinions.items()
        if (label_text := people_class(opinion, scheme, terms)) is not None
    }
    unknown = sum(value not in classes for each in labels.values() for value in each.values())
    raters: dict[str, dict[tuple[str, str], str]] = {by: {} for by in counts}
    disputed = []
    for key, each in labels.items():
        if len(each) > 1:
            said_by = {by: classes[value] for by, value in each.items() if value in classes}
            for by, word in said_by.items():
                raters[by][str(key[0]), key[1]] = word
            if len(said_by) > 1 and majority(list(said_by.values())) is None:
                disputed.append(key)
    return _People(
        by=dict(sorted(counts.items(), key=lambda one: (-one[1], one[0]))),
        disputed=disputed,
        agreement=[pair for pair in together(raters) if pair.n],
        unknown=unknown,
    )


def opinion_of(value: str | float, terms: Terms) -> Opinion | None:
    """Return the meaning of a label; ``None`` for a number that is not on the (current) scale."""
    try:
        return Opinion(label=value) if isinstance(value, str) else Opinion(score=terms.score(value))
    except ValueError:
        return None
