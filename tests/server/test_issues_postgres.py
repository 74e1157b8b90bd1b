"""Workers that follow, group and mark issues at once, on PostgreSQL: nothing is counted twice."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Literal

import pytest
from sqlalchemy import func, select

from baton.server.access import Caller
from baton.server.issue_list import StateChange, change_state
from baton.server.issues import index_issues, regroup
from baton.server.schema import issue, issue_count, issue_due, issue_event, issue_member, issue_slot
from baton.server.store import Store, open_store

from .conftest import Opening
from .postgres import Postgres
from .test_issues import (
    DEAD,
    NOW,
    OUTSIDE,
    Scored,
    arrive,
    collected,
    fails,
    judged,
    of,
    passes,
    rows,
    shown,
)

pytestmark = pytest.mark.heavy
AGENTS = ("refunds", "billing", "search", "mail")
SAYS = ("the reply is rude", "a rude reply", "rude it is", "it searched the wrong city",
        "the wrong city was searched", "another city, the wrong one")  # fmt: skip


def _versions(seed: int, thread: int) -> list[list[Scored]]:
    """Three versions of 60 conversations, all of which may fail in several ways."""
    drawn = Random(seed)
    made: list[list[Scored]] = []
    for _ in range(3):
        some: list[Scored] = []
        for number in range(60):
            # A third comes while all agents fail.
            outage = number % 3 == 0
            at = NOW - 90_000 if outage else NOW - 300.0 * number
            record = of(f"c{thread}.{number}", drawn.choice(AGENTS), at=at)
            scores = drawn.choice(
                [fails(record, DEAD, by="dispatch_completed"), fails(record, DEAD)]
                if outage
                else [
                    fails(record, OUTSIDE),
                    fails(record, OUTSIDE, {**OUTSIDE, "tool": "Write"}),
                    fails(record, {**OUTSIDE, "tool": "Write"}),
                    passes(record),
                    judged(record, f"{drawn.choice(SAYS)} {number}"),
                ]
            )
            some.append((record, scores))
        made.append(some)
    return made


def test_workers_that_do_all_at_once_count_each_failure_once(
    postgres: Postgres, opening: Opening
) -> None:
    pytest.importorskip("sklearn")
    url = postgres.database()
    store = opening(url)
    arriving = [_versions(thread, thread) for thread in range(2)]
    marked: dict[str, str] = {}
    busy = threading.Event()
    problems: list[BaseException] = []

    def at_once(work: Callable[[Store], None]) -> threading.Thread:
        def run() -> None:
            own = open_store(url)
            try:
                work(own)
            except BaseException as error:
                problems.append(error)
                busy.set()
                raise
            finally:
                own.close()

        return threading.Thread(target=run)

    def arrivals(thread: int) -> Callable[[Store], None]:
        def work(own: Store) -> None:
            for version in arriving[thread]:
                for at in range(0, len(version), 10):
                    arrive(own, version[at : at + 10], index=False)

        return work

    def follow(own: Store) -> None:
        while not busy.wait(0.001):
            index_issues(own, NOW)

    def group(own: Store) -> None:
        while not busy.wait(0.02):
            regroup(own, 1, NOW)

    def mark(own: Store) -> None:
        drawn = Random(5)
        person = Caller(1, "Ana", frozenset({"review"}))
        while not busy.wait(0.002):
            with own.read() as connection:
                query = select(issue.c.key, issue.c.state).where(
                    issue.c.project == 1, issue.c.proven
                )
                there = dict(connection.execute(query).all())
            # What a person said is not written over by who counts meanwhile.
            assert {key: there[key] for key in marked} == marked
            keys = sorted(there)
            if keys:
                states: list[Literal["open", "muted"]] = ["open", "muted"]
                key, state = drawn.choice(keys), drawn.choice(states)
                change_state(own, person, key, StateChange(state=state))
                marked[key] = state

    first = [at_once(arrivals(thread)) for thread in range(2)]
    beside = [at_once(work) for work in (follow, follow, follow, group, mark)]
    for one in (*first, *beside):
        one.start()
    for one in first:
        one.join()
    busy.set()
    for one in beside:
        one.join()
    assert problems == []
    while index_issues(store, NOW):
        pass
    regroup(store, 1, NOW)
    assert rows(store, issue_due) == []

    last = [scored for thread in arriving for scored in thread[-1]]
    proven = [(one, scores) for one, scores in last if not any(s.judge for s in scores)]
    found = [row for row in shown(store) if row[2] != "tone"]
    assert found == [row for row in collected(proven) if row[2] != "tone"]
    tone = [row for row in rows(store) if row["fault"] == "tone"]
    assert sum(row["count"] for row in tone) == len(last) - len(proven)
    with store.read() as connection:
        for table, figure in ((issue_member, func.count()), (issue_count, None)):
            counted = figure if figure is not None else func.sum(issue_count.c.failed)
            query = select(table.c.issue, counted).where(table.c.project == 1)
            sums = dict(connection.execute(query.group_by(table.c.issue)).all())
            there = {row["id"]: row["count"] for row in rows(store)}
            assert {id_: int(sums.get(id_, 0)) for id_ in there} == there
        slots = select(func.sum(issue_slot.c.failed)).where(
            issue_slot.c.project == 1, issue_slot.c.issue != 0
        )
        assert connection.scalar(slots) == sum(row["count"] for row in rows(store))
    assert any(row["infrastructure"] for row in rows(store))
    states = {row["key"]: row["state"] for row in rows(store)}
    assert len(marked) > 5
    assert {key: states[key] for key in marked} == marked
    told = Counter(row["issue"] for row in rows(store, issue_event) if row["kind"] == "state")
    assert sum(told.values()) >= len(marked)
