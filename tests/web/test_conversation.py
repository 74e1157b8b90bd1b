"""The page of a conversation: what it holds, what it loads later, and what people add to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from sqlalchemy import update
from tests.reports.hostile import hostile_texts
from tests.server.seeding import START, add_conversation, add_score

import baton
from baton.datasets.draft_case import draft_yaml
from baton.model import Content, Said, Trace
from baton.model.redact import ON
from baton.server.bodies import day_of
from baton.server.schema import conversation as conversation_table
from baton.server.store import Store
from baton.testing.build import call, delegate, run, said, trace, turn

from .asking import Answer, Visitor
from .serving import web

HUGE = "x" * 1_000_000


def conversation(id: str = "order", answer: str = "You get 48.20 EUR, REF-9.") -> Trace:
    return trace(
        turn(
            "Refund order A-17.",
            run("desk", said("I ask billing."), delegate("billing", "Refund order A-17.", result=answer),
                said(answer)),
            run("billing", call("lookup", {"id": "A-17"}, result=answer), said(answer)),
            output=answer,
        ),
        id=id,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "refunds.yaml").write_text("cases:\n- {id: first, input: Hi, response: Hello}\n")
    return folder


@pytest.fixture
def visitor(store: Store, folder: Path) -> Iterator[Visitor]:
    judged = {"name": "judged", "evaluators": [{"type": "DispatchCorrectness", "judge": "x"}]}
    judges = {"x": {"model": "openai:gpt-x", "api_key": "${BATON_TEST_KEY}"}}
    with web(store, {"datasets": [str(folder)], "rules": [judged], "judges": judges}) as address:
        yield Visitor(address)


def data_of(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200
    (packed,) = re.findall(r'id="conversation-data">(.*?)</script>', answer.text, re.DOTALL)
    assert not set("<>&") & set(packed)
    data: dict[str, Any] = json.loads(packed)
    return data


def fetched(visitor: Visitor, path: str) -> dict[str, Any]:
    answer = visitor.get(path, accept="application/json")
    assert answer.status == 200, answer.text
    data: dict[str, Any] = json.loads(answer.text)
    return data


def test_it_holds_what_happened_with_verdicts_at_the_steps(store: Store, visitor: Visitor) -> None:
    made = conversation()
    dispatch = made.turns[0].dispatches[0].id
    number = add_conversation(store, made, framework="test-framework", cost_usd=0.25)
    add_score(store, number, subject=json.dumps([dispatch]), dispatch=dispatch, status="failed",
              value=0.0, reason="`billing` did too much")  # fmt: skip
    page = visitor.get(f"/conversations/{number}")
    assert "test-framework" in page.text
    assert "$0.25" in page.text
    assert "baton show &#39;server://" in page.text
    data = data_of(page)
    assert data["trace"]["short"]["edges"][0]["to"] == "billing"
    assert data["trace"]["short"]["failing"]["path"] == [{"id": dispatch, "to": "billing"}]
    assert [(one["status"], one["subject"]) for one in data["scores"]] == [("failed", [dispatch])]
    card = fetched(visitor, f"/conversations/{number}/card?dispatch={dispatch}")
    assert (card["turn"], card["got"]) == ("t1", "nothing")
    found = fetched(visitor, f"/conversations/{number}/facts?dispatch={dispatch}")
    assert [fact["text"] for fact in found["facts"]][:2] == ["48.20", "REF-9"]
    assert visitor.get(f"/conversations/{number}/facts?dispatch=no").status == 404
    assert visitor.get(f"/conversations/{number}/card?dispatch=no").status == 404


def test_hostile_texts_stay_data(store: Store, visitor: Visitor) -> None:
    for place, text in enumerate(hostile_texts()):
        number = add_conversation(store, conversation(f"c{place}", text), preview=text)
        page = visitor.get(f"/conversations/{number}")
        data = data_of(page)
        bare = re.sub(r"<script\b.*?</script>", "", page.text, flags=re.DOTALL)
        assert "<img" not in bare
        assert "\u202e" not in page.text
        assert data["trace"]["turns"][0]["output"] in (text, text.replace("\x00", "\ufffd"))


def test_a_text_of_a_megabyte_comes_when_it_is_asked_for(store: Store, visitor: Visitor) -> None:
    number = add_conversation(store, conversation(answer=HUGE))
    page = visitor.get(f"/conversations/{number}")
    assert len(page.text) < 200_000
    output = data_of(page)["trace"]["turns"][0]["output"]
    assert (len(output["text"]), output["more"]) == (20_000, 980_000)
    assert fetched(visitor, f"/conversations/{number}/text?at={output['at']}")["text"] == HUGE
    assert visitor.get(f"/conversations/{number}/text?at=no/output").status == 404


def test_many_texts_are_cut_further_so_that_a_page_stays_light(
    store: Store, visitor: Visitor
) -> None:
    made = conversation()
    made.turns[0].runs[0].steps = [
        Said(id=f"s{n}", content=Content(text="word " * 200)) for n in range(2000)
    ]
    page = visitor.get(f"/conversations/{add_conversation(store, made)}")
    assert len(page.text) < 1_000_000
    steps = data_of(page)["trace"]["turns"][0]["runs"][0]["steps"]
    assert len(steps) == 2000
    assert steps[7]["text"]["at"] == "s7/content"


def test_an_open_conversation_is_followed_by_its_stamp(store: Store, visitor: Visitor) -> None:
    number = add_conversation(store, conversation(), state="open")
    page = visitor.get(f"/conversations/{number}")
    assert "in progress" in page.text
    stamp = data_of(page)["stamp"]
    path = f"/conversations/{number}/data"
    assert fetched(visitor, f"{path}?stamp={stamp}") == {"same": True}
    again = fetched(visitor, f"{path}?stamp=older")
    assert (again["state"], again["trace"]["id"]) == ("open", "order")
    assert "in progress" in visitor.get(f"/conversations/{number}/head").text


def test_right_and_wrong_are_labels_and_comments_name_their_steps(
    store: Store, visitor: Visitor
) -> None:
    number = add_conversation(store, conversation())
    path = f"/conversations/{number}"
    wrong = {"subject": "d1", "rubric": "dispatch_correctness", "value": "failed", "note": "No."}
    assert visitor.post(f"{path}/labels", wrong).status == 200
    comment = {"subject": "s1..s2", "rubric": "comment", "value": "comment", "note": "Look here."}
    assert visitor.post(f"{path}/labels", comment).status == 200
    assert visitor.post(f"{path}/labels", {**comment, "note": " "}).status == 400
    assert visitor.post(f"{path}/labels", {**comment, "note": "x" * 10_001}).status == 400
    data = data_of(visitor.get(path))
    (label,), (said_,) = data["labels"], data["comments"]
    assert (label["subject"], label["value"], label["note"]) == ("d1", "failed", "No.")
    assert (said_["subject"], said_["note"]) == ("s1..s2", "Look here.")
    kept = fetched(visitor, "/api/v1/labels")["items"]
    assert {(each["rubric"], each["origin"]) for each in kept} == {
        ("dispatch_correctness", "page"),
        ("comment", "page"),
    }
    visitor.csrf = "made up"
    assert visitor.post(f"{path}/labels", wrong).status == 403


def test_it_becomes_the_case_that_baton_draft_writes(
    store: Store, visitor: Visitor, folder: Path
) -> None:
    made = conversation()
    number = add_conversation(store, made)
    path = f"/conversations/{number}"
    assert "cases/refunds.yaml" in visitor.get(path).text
    given = {"dataset": "cases/refunds.yaml", "case": "refund again"}
    answer = visitor.post(f"{path}/cases", given)
    assert answer.status == 200, answer.text
    (drafted,) = yaml.safe_load(draft_yaml([ON.trace(made)]))["cases"]
    first, added = yaml.safe_load((folder / "refunds.yaml").read_text())["cases"]
    assert first["id"] == "first"
    assert added == {**drafted, "id": "refund again"}
    assert visitor.post(f"{path}/cases", given).status == 400  # the name is taken
    assert visitor.post(f"{path}/cases", {**given, "dataset": "../x.yaml"}).status == 400
    file = visitor.get(f"{path}/case.yaml")
    assert yaml.safe_load(file.text)["cases"] == [drafted]
    assert "attachment" in file.headers["Content-Disposition"]


def test_where_other_machines_reach_it_no_file_is_changed(store: Store, folder: Path) -> None:
    number = add_conversation(store, conversation())
    before = (folder / "refunds.yaml").read_text()
    with web(store, {"datasets": [str(folder)], "host": "0.0.0.0"}) as address:  # noqa: S104
        visitor = Visitor(address)
        page = visitor.get(f"/conversations/{number}")
        given = {"dataset": "cases/refunds.yaml", "case": "again"}
        answer = visitor.post(f"/conversations/{number}/cases", given)
    assert "cases/refunds.yaml" not in page.text
    assert answer.status == 403
    assert "--allow-run" in answer.text
    assert (folder / "refunds.yaml").read_text() == before


def test_what_retention_removed_is_reported_with_what_is_left(
    store: Store, visitor: Visitor
) -> None:
    number = add_conversation(store, conversation(), preview="Refund order A-17.")
    store.bodies.drop(day_of(START))
    page = visitor.get(f"/conversations/{number}")
    assert page.status == 200
    assert "The record of this conversation was deleted" in page.text
    assert "retention" in page.text
    assert "Refund order A-17." in page.text
    assert "conversation-data" not in page.text
    assert fetched(visitor, f"/conversations/{number}/data")["deleted"]
    assert visitor.get(f"/conversations/{number}/card?dispatch=d1").status == 404
    nowhere = visitor.get("/conversations/4711")
    assert nowhere.status == 404
    assert "4711" in nowhere.text


def test_a_page_that_was_shown_before_shows_what_changed_since(
    store: Store, visitor: Visitor
) -> None:
    made = conversation()
    dispatch = made.turns[0].dispatches[0].id
    number = add_conversation(store, made)
    path = f"/conversations/{number}"

    def shown() -> dict[str, Any]:
        return data_of(visitor.get(path))

    before = shown()
    assert shown() == before
    assert "failing" not in before["trace"]["short"]
    # A score: it is at the step, and what is drawn in short names the branch.
    failed: dict[str, Any] = {"dispatch": dispatch, "status": "failed"}
    add_score(store, number, subject=json.dumps([dispatch]), **failed)
    with store.write() as connection:
        mine = (conversation_table.c.project == 1, conversation_table.c.id == number)
        connection.execute(update(conversation_table).where(*mine).values(failed=1))
    page = visitor.get(path)
    assert data_of(page)["trace"]["short"]["failing"]["path"] == [{"id": dispatch, "to": "billing"}]
    assert "What made it fail" in page.text
    # A label of somebody.
    label = {"rubric": "dispatch_correctness", "value": "failed", "subject": dispatch}
    assert visitor.post(f"{path}/labels", label).status == 200
    assert [one["value"] for one in shown()["labels"]] == ["failed"]
    # Late spans: a new version of the conversation, in which the score does not count.
    late = msgspec.msgpack.encode(conversation(answer="You get nothing."))
    place = store.bodies.put(day_of(START), [late])[0]
    with store.write() as connection:
        new = {"version": 2, "place": place.number, "failed": 0, "read": START + 60}
        connection.execute(update(conversation_table).where(*mine).values(new))
    again = shown()
    assert again["trace"]["turns"][0]["output"] == "You get nothing."
    assert again["scores"] == []
    assert "failing" not in again["trace"]["short"]
    # Retention: nothing of it is left in memory that a page would still show.
    store.bodies.drop(day_of(START))
    page = visitor.get(path)
    assert "The record of this conversation was deleted" in page.text
    assert "You get nothing." not in page.text


def test_a_judge_shows_its_question_and_how_often_people_agree(
    store: Store, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATON_TEST_KEY", "k")
    made = conversation()
    dispatch = made.turns[0].dispatches[0].id
    number = add_conversation(store, made)
    judge = {"model": "gpt-x", "rubric_version": "1", "samples": 1}
    add_score(store, number, subject=json.dumps([dispatch]), dispatch=dispatch, rule="judged",
              evaluator="DispatchCorrectness", type="dispatch_correctness",
              judge=json.dumps(judge))  # fmt: skip
    path = f"/conversations/{number}"
    (one,) = data_of(visitor.get(path))["scores"]
    assert one["calibration"] == "nothing that it judges has been labelled here yet"
    asked = fetched(visitor, f"{path}/text?at={one['question']['at']}")["text"]
    assert "Refund order A-17." in asked
    for value in ("failed", "passed"):
        label = {"subject": dispatch, "rubric": "dispatch_correctness", "value": value}
        visitor.post(f"{path}/labels", label)
    (one,) = data_of(visitor.get(path))["scores"]
    assert one["calibration"] == "people said the same on 1 of 1 that they labelled here"
    for by, value in (("ana", "correct"), ("kim", "wrong")):
        baton.connect(visitor.address).label(
            made.id, value, rubric="dispatch_correctness", subject=dispatch, by=by
        )
    (one,) = data_of(visitor.get(path))["scores"]
    assert one["calibration"] == "people said the same on 2 of 3 that they labelled here"
