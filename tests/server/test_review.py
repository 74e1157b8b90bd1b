"""The review queue: what waits for a label, who has it, and how people agree."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import update

import baton
from baton.evaluators.judged import Judged
from baton.evaluators.judging.rubric_files import shipped
from baton.model import InputError
from baton.server.access import Caller, create_key
from baton.server.labels import add_label, labels_of
from baton.server.review import LEASE, Asked, Item, review, skip, take
from baton.server.schema import label
from baton.server.store import Store
from baton.testing.build import delegate, run, trace, turn

from .conftest import Opening
from .seeding import START, add_conversation, add_score
from .serving import api

RUBRIC = "dispatch_correctness"
JUDGE: dict[str, Any] = {"evaluator": RUBRIC, "type": RUBRIC, "unit": "dispatch", "dispatch": "d1"}


def desk(id_: str, to: str = "refunds") -> baton.Trace:
    return trace(
        turn("Hi.", run("desk", delegate(to, "Do it.", result="Done.")), run(to, output="Done.")),
        id=id_,
    )


def evaluator() -> Judged:
    return Judged(shipped()[RUBRIC])


def fill(store: Store, count: int, verdict: str | None = None) -> list[int]:
    return [
        add_conversation(store, desk(f"c{n}"), at=START + n, verdict=verdict) for n in range(count)
    ]


def asked(**more: Any) -> Asked:
    return Asked(**{"rubric": RUBRIC, "share": 1.0, **more})


def say(store: Store, trace_id: str, value: str | float, by: str, **more: Any) -> None:
    line = {"trace": trace_id, "subject": "d1", "rubric": RUBRIC, "value": value, **more}
    add_label(store, Caller(1, by, frozenset({"review"})), json.dumps(line).encode())


def next_for(store: Store, by: str, now: float = START, **more: Any) -> str | None:
    one = take(store, 1, evaluator(), asked(**more), by, now)
    return None if one is None else one.dispatch.conversation


def waiting(store: Store, by: str = "kim", **more: Any) -> list[tuple[str, str | None]]:
    items = review(store, 1, evaluator(), asked(**more), by, now=START).items
    return [(one.dispatch.conversation, one.why) for one in items]


def test_what_a_label_is_worth_most_for_comes_first(store: Store) -> None:
    ids = fill(store, 2)
    failed = add_conversation(store, desk("failed"), at=START - 9, verdict="failed")
    add_score(store, failed, evaluator="dispatch_scope", dispatch="d1", status="failed")
    close = add_conversation(store, desk("close"), at=START - 8)
    votes = json.dumps({"label": "wrong", "votes": {"wrong": 2, "correct": 1}})
    add_score(store, close, **JUDGE, status="failed", details=votes)
    sure = json.dumps({"label": "wrong", "votes": {"wrong": 3}})
    add_score(store, ids[0], **JUDGE, status="failed", details=sure)
    models = add_conversation(store, desk("models"), at=START - 7)
    add_score(store, models, **JUDGE, status="failed")
    add_score(store, models, **{**JUDGE, "evaluator": "by_another_model"}, status="passed")
    proven = add_conversation(store, desk("proven"), at=START - 6)
    add_score(store, proven, **JUDGE, status="passed")
    add_score(store, proven, dispatch="d1", status="failed", finding="unknown_target")
    other = add_conversation(store, desk("other question"), at=START - 6)
    add_score(store, other, **JUDGE, status="passed")
    add_score(store, other, dispatch="d1", status="failed", finding="receiver_failed")
    add_conversation(store, desk("people"), at=START - 5)
    say(store, "people", "wrong", "ann")
    say(store, "people", "correct", "bob")
    found = waiting(store)
    assert found[0] == ("people", "disputed")
    assert set(found[1:3]) == {("models", "judges"), ("proven", "judges")}
    assert found[3:] == [
        ("close", "votes"),
        ("failed", "failed"),
        ("c1", "sample"),
        ("c0", "sample"),
        ("other question", "sample"),
    ]
    counts = review(store, 1, evaluator(), asked(), "kim").waiting
    assert counts == {"disputed": 1, "judges": 2, "votes": 1, "failed": 1, "sample": 3}
    assert waiting(store, why=["votes", "failed"]) == [("close", "votes"), ("failed", "failed")]


def test_a_sample_is_the_same_for_everybody(store: Store) -> None:
    fill(store, 60)
    some = waiting(store, share=0.2)
    assert some == waiting(store, "ann", share=0.2)
    assert 3 < len(some) < 25
    assert set(some) < set(waiting(store, share=0.5))


def test_filters_choose_what_is_reviewed(store: Store) -> None:
    fill(store, 2, "failed")
    add_conversation(store, desk("bill", "billing"), at=START - 1, verdict="failed")
    assert waiting(store, filter="to:bill*") == [("bill", "failed")]
    assert next_for(store, "kim", filter="to:billing") == "bill"
    with pytest.raises(InputError, match="`too:x`: unknown field; did you mean `to`"):
        waiting(store, filter="too:x")
    with pytest.raises(InputError, match="`conciseness` is about a turn"):
        review(store, 1, Judged(shipped()["conciseness"]), asked(), "kim")


def test_what_one_person_took_nobody_else_gets(store: Store) -> None:
    fill(store, 3)
    assert [next_for(store, by) for by in ("kim", "ann", "bob", "joe")] == ["c2", "c1", "c0", None]
    assert next_for(store, "kim", START + 60) == "c2", "it is still theirs when they come back"
    assert next_for(store, "joe", START + LEASE + 61) == "c2", "until they have had it too long"
    say(store, "c0", "correct", "ann")
    seen = review(store, 1, evaluator(), asked(people=2), "ann", now=START + LEASE + 62)
    held = {one.dispatch.conversation: one.held_by for one in seen.items}
    assert held == {"c2": ["joe"], "c1": []}, "ann labelled c0; kim and bob had theirs too long"


def test_a_label_ends_the_hold_and_a_second_one_is_kept_as_well(store: Store) -> None:
    fill(store, 1)
    assert next_for(store, "kim") == "c0"
    say(store, "c0", "correct", "kim")
    assert next_for(store, "kim") is None
    assert next_for(store, "ann") is None, "one label is enough"
    assert next_for(store, "ann", people=2) == "c0"
    say(store, "c0", "wrong", "ann", note="it knew the answer")
    say(store, "c0", "weak", "ann")
    every = labels_of(store, 1).items
    assert [(one.by, one.value) for one in every] == [
        ("ann", "weak"),
        ("ann", "wrong"),
        ("kim", "correct"),
    ], "nothing is overwritten"
    assert next_for(store, "joe") == "c0", "where two differ, a third decides"


def test_who_skips_gets_it_last_and_others_get_it_first(store: Store) -> None:
    ids = fill(store, 2)
    assert next_for(store, "kim") == "c1"
    skip(store, 1, evaluator(), Item(rubric=RUBRIC, conversation_id=ids[1], subject="d1"), "kim")
    assert next_for(store, "ann") == "c1"
    assert next_for(store, "kim") == "c0"
    say(store, "c0", "correct", "kim")
    assert next_for(store, "kim") is None, "ann has it"
    assert next_for(store, "kim", START + LEASE + 1) == "c1"
    with pytest.raises(InputError, match="no conversation 99"):
        skip(store, 1, evaluator(), Item(rubric=RUBRIC, conversation_id=99, subject="d1"), "kim")


def test_what_a_rubric_is_not_about_is_not_asked(store: Store) -> None:
    add_conversation(store, desk("gone"), at=START)
    store.bodies.drop("2026-01-01")
    add_conversation(store, desk("there"), at=START + 86_400)
    assert next_for(store, "kim") == "there"
    assert next_for(store, "ann") is None


def _at_once(store: Store, people: Sequence[str]) -> list[str]:
    given: list[str] = []

    def work(by: str) -> None:
        while (one := next_for(store, by)) is not None:
            say(store, one, "correct", by)
            given.append(one)

    threads = [threading.Thread(target=work, args=(by,)) for by in people]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return given


def test_people_who_label_at_once_lose_nothing_and_share_the_work(store: Store) -> None:
    fill(store, 12)
    given = _at_once(store, ("kim", "ann", "bob"))
    assert sorted(given) == sorted(f"c{n}" for n in range(12))
    assert len(labels_of(store, 1).items) == 12


@pytest.mark.heavy
def test_people_who_label_at_once_share_the_work_in_postgresql(postgres_store: Store) -> None:
    fill(postgres_store, 8)
    given = _at_once(postgres_store, ("kim", "ann", "bob"))
    assert sorted(given) == sorted(f"c{n}" for n in range(8))


def test_the_agreement_of_two_people_is_kappa_with_its_interval(store: Store) -> None:
    fill(store, 20)
    for n in range(20):
        say(store, f"c{n}", "correct" if n < 10 else "wrong", "ann")
        if n != 19:
            say(store, f"c{n}", "correct" if n < 9 else "wrong", "bob")
    say(store, "c0", "no such label", "cid")
    seen = review(store, 1, evaluator(), asked(), "kim")
    (pair,) = seen.agreement
    assert (pair.first, pair.second, pair.n) == ("ann", "bob", 19)
    assert pair.agreement is not None
    assert pair.agreement.value == pytest.approx(18 / 19)
    assert pair.kappa is not None
    assert pair.kappa.low is not None
    assert pair.kappa.value == pytest.approx(0.8950, abs=1e-4)
    assert pair.kappa.low < pair.kappa.value - 0.05
    assert (seen.labelled, seen.by, seen.unknown) == (20, {"ann": 20, "bob": 19, "cid": 1}, 1)
    assert seen.disputed == 1


def test_programs_review_over_the_api(store: Store) -> None:
    (number,) = fill(store, 1, "failed")
    with api(store) as url:

        def post(path: str, **body: Any) -> httpx2.Response:
            return httpx2.post(f"{url}/api/v1/review/{path}", json={"rubric": RUBRIC, **body})

        seen = httpx2.get(f"{url}/api/v1/review", params={"rubric": RUBRIC, "why": "failed"}).json()
        assert [one["why"] for one in seen["items"]] == ["failed"]
        (one,) = post("next", by="kim").json()["items"]
        assert one["dispatch"]["id"] == "d1"
        assert one["until"] is not None
        assert post("next", by="ann").json()["items"] == []
        assert post("skip", conversation_id=number, subject="d1", by="kim").status_code == 200
        assert len(post("next", by="ann").json()["items"]) == 1
        assert post("next", rubric="nothing").status_code == 400
        assert post("next", why=["x"]).status_code == 400
        key = create_key(store, "default", "reader", ["read"])
        refused = httpx2.post(
            f"{url}/api/v1/review/next",
            json={"rubric": RUBRIC},
            headers={"Authorization": f"Bearer {key}"},
        )
        assert (refused.status_code, "right to review" in refused.text) == (403, True)


def test_right_or_wrong_and_labels_of_the_rubric_go_together(store: Store) -> None:
    fill(store, 3)
    for n, (one, other) in enumerate(
        (("passed", "correct"), ("failed", "weak"), ("passed", "weak"))
    ):
        say(store, f"c{n}", one, "ann")
        say(store, f"c{n}", other, "bob")
    seen = review(store, 1, evaluator(), asked(), "kim")
    (pair,) = seen.agreement
    assert pair.agreement is not None
    assert pair.n == 3
    assert pair.agreement.value == pytest.approx(2 / 3)
    assert (seen.disputed, seen.unknown) == (1, 0)
    assert waiting(store) == [("c2", "disputed")]


def test_labels_of_other_processes_are_seen_in_whatever_order_they_are_committed(
    store: Store, tmp_path: Path, opening: Opening
) -> None:
    fill(store, 4)
    say(store, "c0", "correct", "ann")
    assert review(store, 1, evaluator(), asked(), "kim").by == {"ann": 1}
    other = opening(tmp_path / "server")
    try:
        say(other, "c1", "correct", "bob")
        say(other, "c0", "wrong", "ann")  # the same one again: the last counts
        seen = review(store, 1, evaluator(), asked(people=2), "kim")
        assert (seen.labelled, seen.by) == (2, {"ann": 1, "bob": 1})
        # A transaction that took its number first and is committed last, as in PostgreSQL.
        with other.write() as connection:
            moved = update(label).where(label.c.project == 1, label.c.by == "bob")
            connection.execute(moved.values(id=99))
        say(other, "c2", "correct", "cid")
        assert review(store, 1, evaluator(), asked(), "kim").by == {"ann": 1, "bob": 1, "cid": 1}
        with other.write() as connection:
            late = update(label).where(label.c.project == 1, label.c.by == "cid")
            connection.execute(late.values(id=50))
        say(other, "c3", "correct", "dan")
        with other.write() as connection:
            moved = update(label).where(label.c.project == 1, label.c.by == "dan")
            connection.execute(moved.values(id=60))
        seen = review(store, 1, evaluator(), asked(), "kim")
        assert seen.by == {"ann": 1, "bob": 1, "cid": 1, "dan": 1}
        assert [one.dispatch.conversation for one in seen.items] == []
    finally:
        other.close()
