"""Rules that are applied to what is stored: the same as if they had been there before."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, update

from baton import connect
from baton.model import InputError
from baton.server import queries
from baton.server.conversations import Recorded, encode, record_of
from baton.server.database import Unavailable
from baton.server.inbox import Inbox, entry_of
from baton.server.judging import judge_waiting
from baton.server.rescores import (
    Rescores,
    alone,
    ask,
    rescore_here,
    rescore_of,
    rescores_of,
)
from baton.server.rescoring import Counts, RescoreRequest
from baton.server.rows import Reading, write
from baton.server.schema import conversation, dispatch, judging, rollup, score, spending
from baton.server.settings import Settings
from baton.server.store import Store
from baton.server.worker_jobs import Live
from baton.session.server_rows import Rescore
from baton.testing import llm_server

from .conftest import Opening
from .seeding import assert_days_follow
from .serving import api
from .test_rule_scoring import conversation as conversation_of

NOW = 1_790_000_000.0
SCOPE = {"name": "scope", "evaluators": ["dispatch_scope"]}
DONE = {"name": "done", "evaluators": ["dispatch_target_known"]}
JUDGED: dict[str, Any] = {"name": "judged", "evaluators": [{"type": "ScopeFidelity", "judge": "x"}]}
INSIDE = {"reason": "it kept to the order", "quote": "", "label": "inside"}
OUTSIDE = {"reason": "it did more", "quote": "", "label": "outside"}
HERE = {"type": "local", "workers": 1}


class Server:
    """A store with conversations, and the settings of its server."""

    def __init__(self, store: Store, folder: Path, *rules: Any, judge: Any = None) -> None:
        self.store, self.folder = store, folder
        self.judge = judge or {"model": "openai:gpt-5"}
        self.follow(*rules)

    def follow(self, *rules: Any) -> None:
        """Let other rules hold from now on."""
        self.settings = Settings(
            folder=str(self.folder), rules=list(rules), judges={"x": self.judge}
        )

    def arrives(
        self, *ids: str, now: float = NOW, named: Any = (), spans: int = 3, **more: Any
    ) -> None:
        """Read conversations, and score them as they arrive."""
        readings = []
        live = Live(self.store, self.settings)
        for id_ in ids:
            record = conversation_of(id=id_, **more)
            told = Recorded(record, [id_], spans, None, {}, frozenset(named))
            rows, waiting = live.score(1, record, told, "complete")
            readings.append(
                Reading(
                    trace=record,
                    place=self.store.bodies.put("2026-09-21", [encode(record)])[0],
                    state="complete",
                    traces=[id_],
                    spans=spans,
                    seen=now,
                    scores=rows,
                    waiting=waiting,
                    named_rules=told.rules,
                )
            )
        with self.store.write() as connection:
            write(connection, 1, readings, now, traces=ids)

    def rescores(self, rule: str, *, tell: Any = lambda _: None, **more: Any) -> Rescore:
        """Apply a rule."""
        request = RescoreRequest(rule=rule, **more)
        return rescore_here(self.store, self.settings, 1, request, HERE, tell)

    def judges(self, now: float = NOW * 2, **more: Any) -> int:
        """Ask judges what waits."""
        rules = self.settings.live_rules
        return judge_waiting(self.store, rules, now, read=record_of, **more)

    def rows(self, table: Any) -> list[dict[str, Any]]:
        """Return all rows of a table."""
        with self.store.read() as connection:
            query = select(table).where(table.c.project == 1)
            return [dict(row) for row in connection.execute(query).mappings()]

    @property
    def shown(self) -> list[Any]:
        """What of conversations, dispatches, scores and sums can be seen, times apart."""
        scores = queries.scores(self.store, 1, RescoreRequest(rule="").chosen, limit=500).items
        keys = {row["id"]: row["key"] for row in self.rows(conversation)}
        counted = sorted(
            (keys[each.conversation_id], each.rule, each.evaluator, each.subject, each.status,
             each.threshold)
            for each in scores
        )  # fmt: skip
        verdicts = sorted(
            (row["key"], row["verdict"], row["failed"]) for row in self.rows(conversation)
        )
        of_dispatches = sorted(
            (keys[row["conversation"]], row["id"], row["verdict"]) for row in self.rows(dispatch)
        )
        assert_days_follow(self.store)
        sums = sorted(tuple(row.values()) for row in self.rows(rollup))
        return [counted, verdicts, of_dispatches, sums]

    @property
    def figures(self) -> dict[str, tuple[int, int]]:
        """How many scores of each evaluator passed and failed, by the hourly sums."""
        sums: dict[str, tuple[int, int]] = {}
        for row in self.rows(rollup):
            if row["evaluator"]:
                before = sums.get(row["evaluator"], (0, 0))
                sums[row["evaluator"]] = before[0] + row["passed"], before[1] + row["failed"]
        return sums


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.heavy)])
def either(request: pytest.FixtureRequest) -> Store:
    name = "store" if request.param == "sqlite" else "postgres_store"
    opened: Store = request.getfixturevalue(name)
    return opened


def test_a_new_rule_scores_what_is_stored_as_if_it_had_been_there(
    either: Store, tmp_path: Path, opening: Opening
) -> None:
    server = Server(either, tmp_path, SCOPE)
    server.arrives("a", "b")
    server.follow(SCOPE, DONE)
    done = server.rescores("done")
    assert (done.state, done.conversations, done.added, done.replaced) == ("done", 2, 4, 0)
    other = opening(tmp_path / "other")
    live = Server(other, tmp_path, SCOPE, DONE)
    live.arrives("a", "b")
    assert server.shown == live.shown
    other.close()
    marked = {row["rule"]: row["rescore"] for row in server.rows(score)}
    assert marked == {"scope": None, "done": done.id}


def test_the_same_again_changes_nothing(either: Store, tmp_path: Path) -> None:
    server = Server(either, tmp_path, SCOPE)
    server.arrives("a", "b")
    server.follow(SCOPE, DONE)
    server.rescores("done")
    before = [server.rows(table) for table in (score, rollup, conversation, dispatch)]
    for rule in ("done", "scope"):
        again = server.rescores(rule)
        assert (again.state, again.conversations, again.added, again.replaced) == ("done", 2, 0, 0)
    assert [server.rows(table) for table in (score, rollup, conversation, dispatch)] == before


def test_a_changed_rule_replaces_scores_and_corrects_sums_and_keeps_the_old_rows(
    either: Store, tmp_path: Path
) -> None:
    limit: dict[str, Any] = {"type": "dispatch_limits", "config": {"max_dispatches": 1}}
    server = Server(either, tmp_path, {"name": "few", "on": "conversation", "evaluators": [limit]})
    server.arrives("a")
    assert server.figures == {"dispatch_limits": (0, 1)}
    before = server.rows(score)
    other = {**limit, "config": {"max_dispatches": 5}}
    server.follow({"name": "few", "on": "conversation", "evaluators": [other]})
    done = server.rescores("few")
    assert done.replaced == len(before) == done.added
    assert server.figures == {"dispatch_limits": (1, 0)}
    (row,) = server.rows(conversation)
    assert (row["verdict"], row["failed"]) == ("passed", 0)
    old = [row for row in server.rows(score) if row["replaced_by"] == done.id]
    assert [{**row, "replaced_by": None} for row in old] == before
    every = queries.scores(either, 1, RescoreRequest(rule="").chosen, every_version=True, limit=100)
    assert len(every.items) == 2 * len(before)


def test_an_evaluator_of_a_newer_version_replaces_its_scores(either: Store, tmp_path: Path) -> None:
    server = Server(either, tmp_path, SCOPE)
    server.arrives("a")
    with either.write() as connection:  # as an earlier Baton made them
        early = update(score).where(score.c.project == 1)
        connection.execute(early.values(evaluator_version="0", made_by=None))
    done = server.rescores("scope")
    assert (done.added, done.replaced) == (2, 2)
    assert server.figures == {"dispatch_scope": (1, 1)}


def test_what_a_rule_scores_no_more_no_longer_counts(either: Store, tmp_path: Path) -> None:
    server = Server(either, tmp_path, SCOPE)
    server.arrives("a")
    server.follow({**SCOPE, "where": {"to": "billing"}})
    done = server.rescores("scope")
    assert (done.added, done.replaced) == (0, 1)
    assert server.figures == {"dispatch_scope": (1, 0)}
    assert {row["verdict"] for row in server.rows(dispatch)} == {"passed", None}


def test_times_and_filters_choose_conversations(store: Store, tmp_path: Path) -> None:
    server = Server(store, tmp_path)
    server.arrives("a", "b", "other")
    with store.write() as connection:
        late = update(conversation).where(conversation.c.project == 1, conversation.c.key == "b")
        connection.execute(late.values(started=NOW + 86_400 * 10))
        early = update(conversation).where(conversation.c.project == 1, conversation.c.key != "b")
        connection.execute(early.values(started=NOW))
    server.follow(DONE)
    assert server.rescores("done", since="2026-09-25").conversations == 1
    assert server.rescores("done", until="2026-09-25T00:00:00Z").conversations == 2
    assert server.rescores("done", filter="conversation:o*").conversations == 1
    with pytest.raises(InputError, match="no rule `don`; it has: `done`"):
        server.rescores("don")
    with pytest.raises(InputError, match="colour"):
        server.rescores("done", filter="colour:red")


def test_an_open_conversation_and_one_of_other_tags_are_left_out(
    store: Store, tmp_path: Path
) -> None:
    server = Server(store, tmp_path)
    server.arrives("a", "b")
    server.arrives("asks", named=["done"])
    with store.write() as connection:
        mine = update(conversation).where(conversation.c.project == 1)
        connection.execute(mine.where(conversation.c.key == "a").values(named_rules=None))
    server.follow({**DONE, "tagged": True})
    done = server.rescores("done")
    assert (done.conversations, done.added, done.untold) == (3, 2, 1)
    with store.write() as connection:
        connection.execute(mine.values(state="open"))
    server.follow(SCOPE)
    assert server.rescores("scope").added == 0
    server.follow({**SCOPE, "open": True})
    assert server.rescores("scope").added == 6


def test_beyond_its_sample_a_rule_scores_what_others_failed(store: Store, tmp_path: Path) -> None:
    sampled = {**DONE, "sample": "1 %"}
    server = Server(store, tmp_path, SCOPE)
    ids = [f"c{n}" for n in range(20)]
    server.follow(SCOPE, sampled)
    rule = server.settings.live_rules.rules[1]
    outside = [id_ for id_ in ids if not rule.samples(id_)]
    server.follow(SCOPE)
    server.arrives(*outside[:2])
    server.arrives(outside[2], inside=True)
    server.follow(SCOPE, sampled)
    done = server.rescores("done")
    assert (done.conversations, done.added) == (3, 2)
    made = [row for row in server.rows(score) if row["rule"] == "done"]
    assert {row["sampled"] for row in made} == {False}
    assert "dispatch_target_known" not in server.figures


def test_what_retention_deleted_is_counted_and_others_go_on(store: Store, tmp_path: Path) -> None:
    server = Server(store, tmp_path)
    server.arrives("a", "b")
    with store.write() as connection:
        gone = update(conversation).where(conversation.c.project == 1, conversation.c.key == "a")
        connection.execute(gone.values(place=999))
    server.follow(DONE)
    done = server.rescores("done")
    assert (done.deleted, done.added) == (1, 2)


def test_a_record_that_cannot_be_scored_is_counted_and_others_go_on(
    store: Store, tmp_path: Path
) -> None:
    server = Server(store, tmp_path)
    server.arrives("a", "b")
    (place,) = store.bodies.put("2026-09-21", [b"\xc1 no record"])
    with store.write() as connection:
        broken = update(conversation).where(conversation.c.project == 1, conversation.c.key == "a")
        connection.execute(broken.values(place=place.number))
    server.follow(DONE)
    done = server.rescores("done")
    assert (done.state, done.failed, done.added) == ("done", 1, 2)
    assert done.error is not None
    assert "conversation 1:" in done.error


def test_a_conversation_that_changed_meanwhile_is_left_to_the_server(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(store, tmp_path)
    server.arrives("a", "b")
    server.follow(DONE)
    get = store.bodies.get

    def late(places: Any) -> Any:  # a late span, after the record was taken
        bodies = get(places)
        server.arrives("a", inside=True)
        return bodies

    monkeypatch.setattr(store.bodies, "get", late)
    done = server.rescores("done")
    assert (done.moved, done.added) == (1, 2)
    made = {(row["conversation"], row["version"], row["rescore"]) for row in server.rows(score)}
    assert made == {(1, 2, None), (2, 1, done.id)}


def test_a_late_span_takes_the_scores_of_a_rescore_out_of_the_sums(
    either: Store, tmp_path: Path
) -> None:
    server = Server(either, tmp_path, SCOPE)
    server.arrives("a")
    server.follow({**SCOPE, "where": {"to": "billing"}}, DONE)
    server.rescores("done")
    server.rescores("scope")
    server.arrives("a")
    assert server.figures == {"dispatch_scope": (1, 0), "dispatch_target_known": (2, 0)}


class _StopError(Exception):
    """Ends a rescore after a transaction, as a kill does."""


def test_one_that_was_interrupted_continues_where_it_was(either: Store, tmp_path: Path) -> None:
    server = Server(either, tmp_path)
    # Some forty in a transaction; after the first one, more than a page of 200 is left.
    server.arrives(*(f"c{n}" for n in range(250)), spans=50)
    server.follow(DONE)
    heard: list[int] = []

    def stop(counts: Counts) -> None:
        heard.append(counts.conversations)
        if len(heard) in (1, 8):
            raise _StopError

    ended = None
    while ended is None:
        try:
            ended = server.rescores("done", tell=stop)
        except _StopError:
            (row,) = rescores_of(either, 1)
            assert (row.state, row.conversations) == ("stopped", heard[-1])
    assert heard == sorted(set(heard))
    assert (ended.conversations, ended.added) == (250, 500)
    assert len(server.rows(score)) == 500
    assert [each.id for each in rescores_of(either, 1)] == [ended.id]


def test_a_rule_that_changed_meanwhile_starts_again(store: Store, tmp_path: Path) -> None:
    server = Server(store, tmp_path)
    server.arrives("a")
    server.follow(DONE)

    def stop(_: Counts) -> None:
        raise _StopError

    with pytest.raises(_StopError):
        server.rescores("done", tell=stop)
    server.follow({**DONE, "evaluators": ["dispatch_target_known", "dispatch_scope"]})
    done = server.rescores("done")
    assert (done.conversations, done.added) == (1, 2)
    assert server.figures == {"dispatch_target_known": (2, 0), "dispatch_scope": (1, 1)}


def test_what_nobody_reads_is_waited_for_once(store: Store, tmp_path: Path) -> None:
    server = Server(store, tmp_path)
    server.arrives(*(f"c{n}" for n in range(10)), spans=2000)  # each is a transaction
    Inbox(store).put([entry_of(1, "traces", "json", b"{}", received=time.time() - 60)])
    server.follow(DONE)
    began = time.monotonic()
    assert server.rescores("done").added == 20
    assert time.monotonic() - began < 12


def test_one_at_a_time(either: Store, tmp_path: Path) -> None:
    server = Server(either, tmp_path, DONE)
    with alone(either, server.settings) as first:
        assert first
        with pytest.raises(InputError, match="another rescore"):
            server.rescores("done")
    assert server.rescores("done").state == "done"


def test_judges_are_asked_by_their_queue_after_what_arrives_and_once(
    either: Store, tmp_path: Path
) -> None:
    with llm_server(lambda _: INSIDE) as llm:
        server = Server(either, tmp_path, judge=llm.judge(retries=0))
        server.arrives("a", inside=True)
        server.follow(JUDGED)
        done = server.rescores("judged")
        assert (done.added, done.asked, done.waiting) == (0, 1, 1)
        assert llm.requests == []
        server.arrives("b", inside=True, now=time.time() + 60)  # later, and asked first
        assert server.judges(limit=1) == 1
        assert {row["conversation"] for row in server.rows(score)} == {2}
        assert server.judges(limit=1) == 1
        assert len(llm.requests) == 4
        marked = {row["conversation"]: row["rescore"] for row in server.rows(score)}
        assert marked == {1: done.id, 2: None}
        assert server.figures == {"ScopeFidelity": (4, 0)}
        again = server.rescores("judged")
        assert (again.added, again.asked, again.waiting) == (0, 0, 0)
        assert server.judges() == 0
        assert rescores_of(either, 1)[1].waiting == 0


def test_another_judge_takes_the_place_of_the_first_one_and_what_is_settled_stays(
    either: Store, tmp_path: Path
) -> None:
    answers = [INSIDE]
    with llm_server(lambda _: answers[0]) as llm:
        server = Server(either, tmp_path, JUDGED, judge=llm.judge(retries=0))
        server.arrives("a")  # `refunds` used a tool that it may not: no judge is asked of that
        server.judges()
        assert server.figures == {"ScopeFidelity": (1, 1)}
        assert len(llm.requests) == 1
        answers[0] = OUTSIDE
        server.judge = llm.judge(retries=0, samples=3)
        server.follow(JUDGED)
        done = server.rescores("judged")
        assert (done.asked, done.added) == (1, 1)
        assert server.judges() == 1
    assert server.figures == {"ScopeFidelity": (0, 2)}
    assert len(server.rows(score)) == 4
    assert (server.rows(conversation)[0]["failed"], len(llm.requests)) == (2, 3)


def test_a_budget_holds_for_rescores_too(store: Store, tmp_path: Path) -> None:
    with llm_server(lambda _: INSIDE) as llm:
        server = Server(store, tmp_path, judge=llm.judge(retries=0))
        server.arrives("a", inside=True)
        server.follow({**JUDGED, "budget": {"cost_usd": 0.01, "per": "day"}})
        server.rescores("judged")
        with store.write() as connection:
            row = {"project": 1, "rule": "judged", "period": "2026-09-21", "cost_usd": 0.01}
            connection.execute(spending.insert().values(row))
            connection.execute(update(judging).where(judging.c.project == 1).values(due=NOW))
        assert server.judges(NOW) == 1
        assert llm.requests == []
    assert [row["state"] for row in server.rows(judging)] == ["budget"]


def test_over_the_api_it_is_done_by_the_worker(store: Store, tmp_path: Path) -> None:
    server = Server(store, tmp_path / "server")
    server.arrives("a", "b")
    server.follow(DONE)
    with api(store, live_settings=lambda: server.settings) as url:
        asked = connect(url).rescore("done", filter="conversation:*")
        assert (asked.state, asked.filter, asked.by) == ("waiting", "conversation:*", "local")
        with pytest.raises(InputError, match="no rule `nope`"):
            connect(url).rescore("nope")
        work = Rescores(store, server.settings)
        until = time.monotonic() + 60
        while connect(url).rescores()[0].state != "done" and time.monotonic() < until:
            work.work(time.time())
            time.sleep(0.05)
        work.stop()
        (one,) = connect(url).rescores()
    assert (one.state, one.conversations, one.added) == ("done", 2, 4)
    assert server.figures == {"dispatch_target_known": (4, 0)}


@pytest.mark.heavy
def test_over_the_api_the_backend_of_the_settings_computes(store: Store, tmp_path: Path) -> None:
    server = Server(store, tmp_path / "server")
    server.arrives(*(f"c{n}" for n in range(60)))
    server.follow(DONE)
    settings = msgspec.structs.replace(server.settings, backend={"type": "local", "workers": 2})
    number = ask(store, 1, "ann", RescoreRequest(rule="done"), settings).id
    work = Rescores(store, settings)
    most = 0
    until = time.monotonic() + 200
    while rescore_of(store, 1, number).state != "done" and time.monotonic() < until:
        work.work(time.time())
        most = max(most, len(_below(os.getpid())))
        time.sleep(0.02)
    work.stop()
    assert rescore_of(store, 1, number).added == 120
    assert most >= 3  # the one that reads and writes, and two that score


def _below(pid: int) -> list[int]:
    """Return the processes that one started, and those that they started."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(child) for child in file.read_text().split()]
    return [*found, *(each for child in found for each in _below(child))]


def test_what_cannot_be_done_has_failed_and_is_not_tried_again(
    store: Store, tmp_path: Path
) -> None:
    server = Server(store, tmp_path / "server")
    server.arrives("a")
    server.follow(DONE)
    number = ask(store, 1, "ann", RescoreRequest(rule="done"), server.settings).id
    work = Rescores(store, msgspec.structs.replace(server.settings, rules=[]))
    until = time.monotonic() + 60
    while rescore_of(store, 1, number).state != "failed" and time.monotonic() < until:
        work.work(time.time())
        time.sleep(0.05)
    one = rescore_of(store, 1, number)
    assert one.state == "failed"
    assert "no rule `done`" in str(one.error)
    assert not work.work(time.time())


def test_a_server_that_stops_continues_with_the_next_start(store: Store, tmp_path: Path) -> None:
    server = Server(store, tmp_path / "server")
    server.arrives("a")
    server.follow(DONE)
    number = ask(store, 1, "ann", RescoreRequest(rule="done"), server.settings).id
    first = Rescores(store, server.settings)
    first.work(time.time())
    assert rescore_of(store, 1, number).state == "running"
    first.stop()
    stopped = rescore_of(store, 1, number)
    assert stopped.state in ("waiting", "done")
    second = Rescores(store, server.settings)
    until = time.monotonic() + 60
    while rescore_of(store, 1, number).state != "done" and time.monotonic() < until:
        second.work(time.time())
        time.sleep(0.05)
    second.stop()
    assert rescore_of(store, 1, number).added == 2
    assert len(server.rows(score)) == 2


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_sums_are_right_while_conversations_arrive_and_rules_change(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    store: Store = request.getfixturevalue("store" if kind == "sqlite" else "postgres_store")
    server = Server(store, tmp_path, SCOPE)
    ids = [f"c{n}" for n in range(40)]
    server.arrives(*ids)
    stop = threading.Event()
    faults: list[BaseException] = []

    def arrive() -> None:
        live = Server(store, tmp_path, SCOPE)
        order = random.Random(7)
        while not stop.is_set():
            try:
                live.arrives(*order.sample(ids, 5), inside=order.random() < 0.5)
            except Unavailable:  # of two that wait for each other one is ended, as in the worker
                continue
            except BaseException as error:
                faults.append(error)
                raise

    arriving = threading.Thread(target=arrive)
    arriving.start()
    moved = 0
    try:
        for number in range(12):
            where = [{}, {"where": {"to": "billing"}}, {"where": {"to": "refunds"}}][number % 3]
            server.follow({**SCOPE, **where})
            moved += server.rescores("scope", filter=f"conversation:c* turns:<{99 + number}").moved
    finally:
        stop.set()
        arriving.join()
    assert faults == []
    counted: dict[str, int] = {}
    versions = {row["id"]: row["version"] for row in server.rows(conversation)}
    for row in server.rows(score):
        if row["replaced_by"] is None and row["version"] == versions[row["conversation"]]:
            counted[row["status"]] = counted.get(row["status"], 0) + 1
    assert server.figures == {
        "dispatch_scope": (counted.get("passed", 0), counted.get("failed", 0))
    }


SETTINGS = """\
folder: store
rules:
  - {name: known, evaluators: [dispatch_target_known]}
"""


def command(folder: Path, *more: str) -> subprocess.Popen[str]:
    """Start `baton serve rescore` in a folder."""
    line = [sys.executable, "-m", "baton", "serve", "rescore", "server.yaml", "--rule", "known"]
    return subprocess.Popen([*line, *more], cwd=folder, stdout=subprocess.PIPE, text=True)


@pytest.mark.heavy
@pytest.mark.timeout(1000)
def test_a_command_that_is_killed_continues_when_it_is_given_again(
    tmp_path: Path, opening: Opening
) -> None:
    folders = [tmp_path / "jobs", tmp_path / "ray"]
    folders[0].mkdir()
    (folders[0] / "server.yaml").write_text(SETTINGS)
    store = opening(folders[0] / "store")
    server = Server(store, tmp_path)
    server.arrives(*(f"c{n}" for n in range(300)))
    first = command(folders[0])
    until = time.monotonic() + 60
    while time.monotonic() < until and not any(each.added for each in rescores_of(store, 1)):
        time.sleep(0.02)
    first.kill()
    first.communicate()
    (killed,) = rescores_of(store, 1)
    assert (killed.state, 0 < killed.conversations < 300) == ("running", True)
    assert len(server.rows(score)) == killed.added
    store.close()  # an open one cannot be copied
    shutil.copytree(folders[0], folders[1])
    others = [["--jobs", "2"], ["--backend", "ray", "--jobs", "1"]]
    for folder, how in zip(folders, others, strict=True):
        with command(folder, *how) as second:
            try:
                said, _ = second.communicate(timeout=450)  # Ray takes minutes where all is busy
            finally:
                second.kill()
        assert (second.returncode, said) == (
            0, "project default: 300 conversations; 600 scores added, 0 replaced\n",
        )  # fmt: skip
        server = Server(opening(folder / "store"), folder)
        assert len({(row["conversation"], row["subject"]) for row in server.rows(score)}) == 600
        assert server.figures == {"dispatch_target_known": (600, 0)}
