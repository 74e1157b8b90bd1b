"""Lists, sums and labels of a PostgreSQL store are those of SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from baton.model import Trace
from baton.model.filter import filter_of
from baton.server import queries, sums
from baton.server.access import Access, Caller, create_key
from baton.server.labels import add_label, labels_of
from baton.server.store import Store
from baton.testing.build import delegate, run, trace, turn

from .conftest import Opening
from .seeding import START, add_conversation, add_score, add_sum

pytestmark = pytest.mark.heavy
CONVERSATIONS: list[dict[str, Any]] = [
    {},
    {"agent": "refunds"},
    {"agent": ["bil*"], "verdict": "failed"},
    {"agent": "[!r]*"},
    {"to": ["ref*", "nobody"], "kind": "delegate", "depth": ">=1"},
    {"from": "!desk"},
    {"evaluator": "dispatch_scope", "verdict": "failed"},
    {"finding": "scope_*"},
    {"conversation": "c[3-5]"},
    {"conversation": "c?"},
    {"conversation": ["!c1", "!c2"]},
    {"cost": ">=0.07"},
    {"tokens": ">1", "duration": "<3s"},
    {"started": ">=2026-01-01T05:00:00Z"},
    {"verdict": "failed"},
]
DISPATCHES: list[dict[str, Any]] = [
    {},
    {"to": "ref*", "verdict": "failed"},
    {"from": "desk", "to": ["refunds", "billing"]},
    {"finding": "scope_exceeded"},
    {"evaluator": "*", "verdict": "passed", "basis": "stated"},
]


def desk(id_: str, to: str) -> Trace:
    return trace(
        turn("Hi.", run("desk", delegate(to, "Größe XL.")), run(to, output="Done.")), id=id_
    )


def filled(store: Store) -> Store:
    for n in range(10):
        to = "refunds" if n % 2 else "billing"
        verdict = "passed" if n % 3 else "failed"
        id_ = add_conversation(
            store, desk(f"c{n}", to), at=START + n * 3600, cost_usd=n / 100, verdict=verdict
        )
        finding = None if n % 3 else "scope_exceeded"
        add_score(store, id_, status=verdict, at=START + n, to_agent=to, finding=finding)
        add_sum(store, int(START // 3600) + n, to)
    return store


def shown(store: Store) -> list[Any]:
    def fields(given: dict[str, Any], of: Any) -> Any:
        return filter_of(given, of)

    answers: list[Any] = []
    for given in CONVERSATIONS:
        page = queries.conversations(store, 1, fields(given, queries.CONVERSATION_FIELDS), limit=4)
        keys = [one.key for one in page.items]
        if page.next:
            rest = queries.conversations(
                store, 1, fields(given, queries.CONVERSATION_FIELDS), cursor=page.next
            )
            keys += [one.key for one in rest.items]
        answers.append(keys)
    for given in DISPATCHES:
        listed = queries.dispatches(store, 1, fields(given, queries.DISPATCH_FIELDS)).items
        answers.append([one.conversation for one in listed])
    for given in ({}, {"evaluator": "dispatch_*", "verdict": "failed"}, {"rule": "all"}):
        scores = queries.scores(store, 1, fields(given, queries.SCORE_FIELDS)).items
        answers.append([one.at for one in scores])
    found = queries.conversations(store, 1, fields({}, {}), text="GRÖSSE")
    answers.append([one.match for one in found.items])
    answers.append(msgspec.to_builtins(sums.edges(store, 1)))
    end = START + 86_400
    answers.append(
        msgspec.to_builtins(
            sums.trends(store, 1, interval="week", by_version=True, since=START, until=end)
        )
    )
    one = queries.one_conversation(
        store, 1, queries.conversations(store, 1, fields({}, {})).items[0].id
    )
    assert one is not None
    answers.append(one.record)
    return answers


def test_the_same_is_answered_by_both(
    tmp_path: Path, postgres_store: Store, opening: Opening
) -> None:
    local = filled(opening(tmp_path / "server"))
    assert shown(filled(postgres_store)) == shown(local)


def test_keys_and_labels_work_there_too(postgres_store: Store) -> None:
    add_conversation(postgres_store, desk("c0", "refunds"))
    key = create_key(postgres_store, "default", "kim", ["review"])
    caller = Access(postgres_store).caller({"authorization": f"Bearer {key}"}, "203.0.113.9")
    assert caller == Caller(1, "kim", frozenset({"review", "read"}))
    given = add_label(postgres_store, caller, b'{"trace": "c0", "rubric": "r", "value": "right"}')
    assert labels_of(postgres_store, 1, rubric="r").items == [given]
