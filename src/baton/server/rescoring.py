"""Rescores: applies a rule to stored conversations.

This process reads conversations, the newest first. The workers of a backend
(:mod:`baton.runner.backends`) score them with the function that also scores arriving ones. This
process writes the scores: several conversations per transaction, with the cursor to continue from.
Scores that need a judge go into the queue of judges.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection, RowMapping, select, update

from baton import __version__
from baton.model import InputError
from baton.model.filter import Filter, filter_of, term_of
from baton.model.subjects import Origin
from baton.runner.backends.distribute import finished, in_order
from baton.runner.backends.registry import make_backend

from . import queries
from .bodies import Place
from .conversations import decode
from .database import EVERY_PROJECT, Unavailable
from .inbox import Inbox
from .judging import agent_versions, is_up_to_date, wait_for_judge
from .rows import Row, Sums, narrow
from .rule_scoring import score_rule
from .rules import Rule, read_rules
from .schema import rescore, score
from .score_rows import Key, current_scores, key_of, lock, replace_scores
from .settings import Settings
from .span_chunks import crash
from .store import Store

T = TypeVar("T")
_PAGE = 200
"""The number of conversations to look up together."""
_AT_ONCE = 50
"""Conversations that are scored and written together: other writers wait for a transaction."""
_WEIGHT = 2000
"""The maximum number of their spans, runs and dispatches together, about a megabyte."""
_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Seconds between attempts while the store is not available."""
_LONGEST_REST = 1.0
"""Maximum seconds of the pause after a transaction, which is as long as the transaction."""
_BEHIND = 1.0
"""If a body waits longer in the inbox (seconds), reading does not keep up with receiving."""
_LONGEST_WAIT, _LOOK = 2.0, 0.2
"""Maximum seconds of a pause until reading keeps up again, and seconds between two checks."""
_OF_JUDGES = ("model", "samples", "temperature")
"""The settings of a judge that decide about scores; see ``made_by`` of rules."""
_UNDIGESTED = 60
"""Letters of an id that rows contain unchanged; see :func:`baton.server.rows.narrow`."""


class RescoreRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The rule to apply, and to which conversations: by default to all.

    ``since`` and ``until`` limit their start (dates or RFC 3339 times); ``filter`` is a filter as
    for lists of conversations.
    """

    rule: str
    since: str | None = None
    until: str | None = None
    filter: str | None = None

    @property
    def chosen(self) -> Filter:
        """The complete filter; raises InputError if it is wrong."""
        fields = queries.CONVERSATION_FIELDS
        terms = [*filter_of(self.filter, fields).terms]
        for sign, at in ((">=", self.since), ("<", self.until)):
            if at is not None:
                terms.append(term_of(f"started:{sign}{at}", fields))
        return Filter(terms=tuple(terms))

    def checked(self, settings: Settings, project: str) -> Rule:
        """Return the rule of this request.

        Raises:
            InputError: the project has no such rule, or the filter or a time is wrong.
        """
        _ = self.chosen  # raises if the filter is wrong
        rules = settings.live_rules
        rule = rules.named(self.rule)
        if rule is None or rule.spec.project not in (None, project):
            known = ", ".join(f"`{name}`" for name in rules.names(project)) or "none"
            raise InputError(f"project `{project}` has no rule `{self.rule}`; it has: {known}")
        return rule


class Counts(msgspec.Struct, kw_only=True):
    """The counts of a rescore so far.

    ``conversations`` counts the examined ones, ``asked`` those that judges are asked about. These
    conversations are left out: ``deleted`` ones (retention deleted the record), ``moved`` ones (a
    late span changed them meanwhile, and they are scored as they arrive), ``untold`` ones (it is
    unknown which rules their program named), and ``failed`` ones (they could not be scored).
    """

    conversations: int = 0
    added: int = 0
    replaced: int = 0
    asked: int = 0
    deleted: int = 0
    moved: int = 0
    untold: int = 0
    failed: int = 0


class _SentRule(msgspec.Struct, frozen=True, kw_only=True):
    """The data from which a worker makes a rule; without keys and addresses of judges."""

    baton: str
    folder: str
    file: str
    rule: dict[str, Any]
    judges: dict[str, dict[str, Any]]
    prices: dict[str, Any] | None


class _Sent(msgspec.Struct, kw_only=True):
    """A conversation for a worker; ``failed`` are the scores that other rules failed."""

    id: int
    version: int
    body: bytes
    service: str | None
    versions: dict[str, str]
    open: bool
    failed: list[dict[str, Any]]


class _Batch(msgspec.Struct, kw_only=True):
    """Conversations to score; ``cursor`` is after the last one, ``counts`` has those left out."""

    rule: _SentRule
    conversations: list[_Sent]
    cursor: str
    counts: Counts
    now: float


class _Answer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The scores of a conversation; no ``rows`` if the rule leaves it out or after an error.

    ``unsettled`` are the questions for a judge.
    """

    rows: list[dict[str, Any]] | None = None
    unsettled: list[Key] = []
    error: str | None = None


class _Answers(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The results of a batch, in its order; ``fault`` is an error of the worker itself."""

    answers: list[_Answer] = []
    fault: str | None = None


class RescoreWorker:
    """Scores batches, in a process of a backend."""

    def __init__(self) -> None:
        self._sent: _SentRule | None = None
        self._rule: Rule | None = None

    def do(self, text: bytes) -> bytes:
        """Score a batch (JSON); return the answers (JSON)."""
        try:
            batch = msgspec.json.decode(text, type=_Batch)
            if self._rule is None or batch.rule != self._sent:
                self._rule, self._sent = _rule_of(batch.rule), batch.rule
        except (InputError, OSError, msgspec.DecodeError) as error:
            return msgspec.json.encode(_Answers(fault=str(error)))
        answers = [_answer(self._rule, each, batch.now) for each in batch.conversations]
        return msgspec.json.encode(_Answers(answers=answers))

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _rule_of(sent: _SentRule) -> Rule:
    if sent.baton != __version__:
        raise InputError(f"Baton is {__version__} here, and {sent.baton} where it was started")
    os.chdir(sent.folder)  # paths in rules start here, also on other machines
    stated = {"rules": [sent.rule], "judges": sent.judges, "prices": sent.prices}
    return read_rules(None, stated, file=sent.file).rules[0]


def _answer(rule: Rule, sent: _Sent, now: float) -> _Answer:
    origin = Origin(service=sent.service, versions=sent.versions, open=sent.open)
    try:
        scored = score_rule(decode(sent.body), rule, origin, sent.failed, now=now)
    except Exception as error:  # noqa: BLE001 - it is recorded, and the others continue
        return _Answer(error=crash(error))
    if scored is None:
        return _Answer()
    return _Answer(rows=scored.rows, unsettled=list(scored.unsettled))


def _read_answers(text: bytes) -> _Answers:
    """Decode a worker's answers; raises InputError if the worker cannot work."""
    answers = msgspec.json.decode(text, type=_Answers)
    if answers.fault is not None:
        raise InputError(f"a worker cannot work: {answers.fault}")
    return answers


def run_rescore(
    store: Store,
    settings: Settings,
    number: int,
    backend: Mapping[str, Any],
    tell: Callable[[Counts], None] = lambda _: None,
) -> Counts:
    """Run a rescore, or continue an interrupted one; return its total counts.

    If the rule was changed in between, the rescore starts again. ``tell`` is called with the
    progress after each transaction.

    Raises:
        InputError: the rule no longer exists, or workers cannot work.
        Unavailable: the store is not available for a long time.
    """
    of = select(rescore).where(rescore.c.id == number)
    with store.read() as connection:
        row = connection.execute(of, execution_options=EVERY_PROJECT).mappings().one()
    project = int(row["project"])
    names = {each: name for name, each in store.projects().items()}
    request = msgspec.json.decode(row["request"], type=RescoreRequest)
    rule = request.checked(settings, names[project])
    counts, cursor = msgspec.json.decode(row["counts"], type=Counts), row["cursor"]
    if row["made_by"] != rule.made_by:
        counts, cursor = Counts(), None
        _note(store, project, number, made_by=rule.made_by, counts=counts)
    run = _Run(store, settings, project, rule, number)
    stuck: float | None = None
    with make_backend(backend, Path(), RescoreWorker) as workers:
        batches = run.batches(request.chosen, cursor)
        for done in in_order(finished(workers, batches, _read_answers)):
            answers = done.outcome.answers if done.outcome is not None else None
            began = time.monotonic()
            counts = _patiently(lambda: run.keep(done.job, answers, done.lost, counts))  # noqa: B023
            tell(counts)
            # SQLite has one writer at a time and no queue: the pause lets others write.
            time.sleep(min(time.monotonic() - began, _LONGEST_REST))
            stuck = _give_way(store, stuck)
    _note(store, project, number, state="done", ended=time.time())
    return counts


def _give_way(store: Store, stuck: float | None) -> float | None:
    """Wait a moment if bodies arrive faster than they are read.

    ``stuck`` is the arrival time of a body that was not read during an earlier wait, and is not
    waited for again: if no server is running, bodies are never read. Returns the new value.
    """
    until = time.monotonic() + _LONGEST_WAIT
    oldest = None
    while time.monotonic() < until:
        oldest = _patiently(Inbox(store).depth).oldest
        if oldest is None or oldest == stuck or time.time() - oldest < _BEHIND:
            break
        time.sleep(_LOOK)
    return oldest


def _note(store: Store, project: int, number: int, **values: Any) -> None:
    with store.write() as connection:
        _write_note(connection, project, number, values)


def _write_note(connection: Connection, project: int, number: int, values: dict[str, Any]) -> None:
    if "counts" in values:
        values["counts"] = msgspec.json.encode(values["counts"]).decode()
    mine = (rescore.c.project == project) & (rescore.c.id == number)
    connection.execute(update(rescore).where(mine).values(**values))


def _patiently(work: Callable[[], T]) -> T:
    """Do work as soon as the store is available; raises Unavailable after about a minute."""
    for pause in _PAUSES:
        try:
            return work()
        except Unavailable:
            time.sleep(pause)
    return work()


class _Run:
    """A running rescore: its reads and writes."""

    def __init__(
        self, store: Store, settings: Settings, project: int, rule: Rule, number: int
    ) -> None:
        self._store = store
        self._project = project
        self._rule = rule
        self._number = number
        spec = msgspec.to_builtins(msgspec.structs.replace(rule.spec, alert=None))
        self._sent = _SentRule(
            baton=__version__,
            folder=str(Path.cwd()),
            file=settings.file or "server.yaml",
            rule=spec,
            judges={
                name: {"model": stated}
                if isinstance(stated, str)
                else {key: stated[key] for key in _OF_JUDGES if key in stated}
                for name, stated in settings.judges.items()
            },
            prices=msgspec.to_builtins(settings.prices),
        )

    def batches(self, chosen: Filter, cursor: str | None) -> Iterator[_Batch]:
        """Yield the conversations to score in batches, each when it is requested."""
        while True:
            rows = _patiently(lambda: self._page(chosen, cursor))  # noqa: B023
            some: list[RowMapping] = []
            weight = 0
            for row in rows:
                some.append(row)
                weight += row["spans"] + row["runs"] + row["dispatches"] + 1
                if weight >= _WEIGHT or len(some) == _AT_ONCE:
                    yield _patiently(lambda: self._batch(some))  # noqa: B023
                    some, weight = [], 0
            if some:
                yield _patiently(lambda: self._batch(some))  # noqa: B023
            if len(rows) < _PAGE:
                return
            cursor = queries.after_row(rows[-1])

    def _page(self, chosen: Filter, cursor: str | None) -> list[RowMapping]:
        return queries.conversation_rows(
            self._store, self._project, chosen, limit=_PAGE, cursor=cursor
        )

    def _batch(self, rows: Sequence[RowMapping]) -> _Batch:
        """Read some conversations, without those that the rule leaves out."""
        counts = Counts(conversations=len(rows))
        wanted = []
        for row in rows:
            if row["state"] == "open" and not self._rule.spec.open:
                continue
            if self._rule.spec.tagged:
                if row["named_rules"] is None:
                    counts.untold += 1
                    continue
                if narrow(self._rule.name) not in msgspec.json.decode(row["named_rules"]):
                    continue
            wanted.append(row)
        ids = {row["id"]: row["version"] for row in wanted}
        with self._store.read() as connection:
            versions = agent_versions(connection, self._project, list(ids))
            failed = self._failed_by_others(connection, ids) if self._rule.sample < 1 else {}
        wanted = [
            row
            for row in wanted
            if failed.get(row["id"])
            or len(row["key"]) > _UNDIGESTED
            or self._rule.samples(row["key"])
        ]
        bodies = self._store.bodies.get([Place(row["day"], row["place"]) for row in wanted])
        sent = []
        for row in wanted:
            body = bodies.get(Place(row["day"], row["place"]))
            if body is None:
                counts.deleted += 1
                continue
            sent.append(
                _Sent(
                    id=row["id"],
                    version=row["version"],
                    body=body,
                    service=row["service"],
                    versions=versions.get(row["id"], {}),
                    open=row["state"] == "open",
                    failed=failed.get(row["id"], []),
                )
            )
        cursor = queries.after_row(rows[-1])
        return _Batch(
            rule=self._sent, conversations=sent, cursor=cursor, counts=counts, now=time.time()
        )

    def _failed_by_others(
        self, connection: Connection, versions: Mapping[int, int]
    ) -> dict[int, list[dict[str, Any]]]:
        """Return the scores that other rules failed, by conversation.

        A rule also scores these outside of its sample.
        """
        names = ("conversation", "version", "rule", "status", "unit", "subject")
        query = select(*(score.c[name] for name in names)).where(
            score.c.project == self._project,
            score.c.conversation.in_(list(versions)),
            score.c.rule != self._rule.name,
            score.c.status == "failed",
            score.c.replaced_by.is_(None),
        )
        failed: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in connection.execute(query).mappings():
            if row["version"] == versions[row["conversation"]]:
                failed[row["conversation"]].append(dict(row))
        return failed

    def keep(
        self, batch: _Batch, answers: Sequence[_Answer] | None, lost: str, before: Counts
    ) -> Counts:
        """Write the results of a batch in one transaction; return the new counts."""
        counts = msgspec.structs.replace(before)
        for name in counts.__struct_fields__:
            setattr(counts, name, getattr(counts, name) + getattr(batch.counts, name))
        if answers is None:
            answers = [_Answer(error=lost) for _ in batch.conversations]
        values: dict[str, Any] = {"cursor": batch.cursor, "counts": counts, "attempts": 0}
        ids = {each.id: each.version for each in batch.conversations}
        sums = Sums()
        with self._store.write() as connection:
            locked = lock(connection, self._project, list(ids))
            current = current_scores(connection, self._project, self._rule.name, ids.items())
            for sent, answer in zip(batch.conversations, answers, strict=True):
                of = locked.get(sent.id)
                if answer.error is not None:
                    counts.failed += 1
                    values["error"] = f"conversation {sent.id}: {answer.error}"[:2000]
                elif of is None or of["version"] != sent.version:
                    counts.moved += 1
                elif answer.rows is not None:
                    self._keep_one(connection, of, current.get(sent.id, []), answer, sums, counts)
            sums.write(connection, self._project)
            _write_note(connection, self._project, self._number, values)
        return counts

    def _keep_one(
        self,
        connection: Connection,
        of: Row,
        current: Sequence[Row],
        answer: _Answer,
        sums: Sums,
        counts: Counts,
    ) -> None:
        unsettled = set(answer.unsettled)
        change = replace_scores(
            connection, of, current, answer.rows or (), unsettled, sums, self._number
        )
        counts.added += change.added
        counts.replaced += change.replaced
        judged = {key_of(row) for row in current if is_up_to_date(row, self._rule)}
        if unsettled - judged:
            counts.asked += 1
            wait_for_judge(
                connection,
                self._project,
                of["id"],
                of["version"],
                self._rule.name,
                time.time(),
                self._number,
            )
