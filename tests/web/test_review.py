"""The review page: a queue, a dispatch with its labels, and how far people agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from tests.server.seeding import START, add_conversation, add_score

import baton
from baton.server.access import create_key
from baton.server.labels import labels_of
from baton.server.store import Store
from baton.testing.build import call, delegate, run, trace, turn

from .asking import Visitor
from .serving import web

RUBRIC = "dispatch_correctness"
EVIL = "<script>alert(1)</script>\u202e\x1b[31m"


def desk(id_: str, asked: str = "Refund order 42.") -> Any:
    return trace(
        turn(
            "My money back!",
            run(
                "desk", "I look.", call("find", {"id": 42}, result=EVIL), delegate("refunds", asked)
            ),
            run("refunds", "Checking.", input=asked, output="Done."),
        ),
        id=id_,
    )


@pytest.fixture
def filled(store: Store) -> Store:
    for n in range(3):
        number = add_conversation(store, desk(f"c{n}"), at=START + n, verdict="failed")
        judged = {"evaluator": RUBRIC, "type": RUBRIC, "dispatch": "d1"}
        add_score(
            store,
            number,
            status="failed",
            reason="too thin, said the judge",
            details='{"label": "weak"}',
            **judged,  # type: ignore[arg-type]
        )
    return store


@pytest.fixture
def visitor(filled: Store) -> Iterator[Visitor]:
    with web(filled) as address:
        yield Visitor(address, "/review")


def state(**more: Any) -> dict[str, Any]:
    return {"rubric": RUBRIC, **more}


def test_the_queue_tells_what_waits_and_why(visitor: Visitor) -> None:
    text = visitor.get("/review").text
    assert "3 to label" in text
    assert text.count("data-row") == 3
    assert "baton calibrate dispatch_correctness server://127.0.0.1" in text
    assert "0 to label" in visitor.get("/review?why=votes&filter=to:refunds").text
    assert visitor.get("/review?filter=too:x").status == 400
    assert visitor.get("/review?rubric=nothing").status == 400


def test_a_dispatch_is_labelled_and_the_next_one_comes(visitor: Visitor, filled: Store) -> None:
    first = visitor.post("/review/next", state())
    assert first.status == 303
    where = first.headers["Location"]
    assert where.startswith("/review/3/d1?rubric=dispatch_correctness")
    page = visitor.get(where).text
    assert "Refund order 42." in page
    assert "My money back!" in page
    assert "too thin, said the judge" not in page, "the judge does not sway who labels"
    assert "<kbd>1</kbd><span><b>correct</b>" in page
    assert EVIL not in page
    assert "&lt;script&gt;" in page
    item = {"conversation_id": 3, "subject": "d1", "value": "correct", "note": "fine <b>"}
    answer = visitor.post("/review/label", state(**item))
    assert answer.headers["Location"].startswith("/review/2/d1?")
    after = unescape(visitor.get(answer.headers["Location"]).text)
    assert "You said <b>correct</b>" in after
    assert 'The judge said <b>weak</b>: <span dir="auto">too thin, said the judge' in after
    (kept,) = labels_of(filled, 1).items
    assert (kept.trace, kept.subject, kept.value, kept.by) == ("c2", "d1", "correct", "local")
    assert (kept.note, kept.origin) == ("fine <b>", "review")


def test_a_wrong_label_or_dispatch_is_refused(visitor: Visitor, filled: Store) -> None:
    item = state(conversation_id=3, subject="d1")
    assert visitor.post("/review/label", {**item, "value": "nice"}).status == 400
    assert visitor.post("/review/label", {**item, "value": "weak", "subject": "d9"}).status == 404
    assert visitor.post("/review/label", {**item, "value": "weak", "csrf": "x"}).status == 403
    assert visitor.get("/review/99/d1").status == 404
    assert labels_of(filled, 1).items == []


def test_two_people_get_different_dispatches_and_see_how_they_agree(
    visitor: Visitor, filled: Store
) -> None:
    other = Visitor(visitor.address, "/review")
    for who, name in ((visitor, "Kim"), (other, "Zoë")):
        answer = who.post("/review/name", state(by=name))
        assert answer.status == 303
    where = [each.post("/review/next", state()).headers["Location"] for each in (visitor, other)]
    assert where[0].partition("?")[0] != where[1].partition("?")[0]
    both = state(people=2)
    for number, said in ((1, "correct"), (2, "wrong"), (3, "correct")):
        item = {"conversation_id": number, "subject": "d1"}
        visitor.post("/review/label", {**both, **item, "value": said})
        other.post("/review/label", {**both, **item, "value": said if number > 1 else "weak"})
    assert {one.by for one in labels_of(filled, 1).items} == {"Kim", "Zoë"}
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", visitor.get("/review").text))
    assert "Kim, Zoë 3 67 % 0.50 [" in page.replace("Zoë, Kim", "Kim, Zoë")
    assert "1 without a majority" in page


def test_what_is_skipped_goes_to_the_end(visitor: Visitor) -> None:
    where = visitor.post("/review/next", state()).headers["Location"]
    assert where.startswith("/review/3/")
    after = visitor.post("/review/skip", state(conversation_id=3, subject="d1"))
    assert after.headers["Location"].startswith("/review/2/")
    done = visitor.post("/review/next", state(filter="to:nobody"))
    assert "done=1" in done.headers["Location"]
    assert "Everything here is labelled" in visitor.get(done.headers["Location"]).text


def test_who_may_only_read_labels_nothing(filled: Store) -> None:
    key = create_key(filled, "default", "reader", ["read"])
    with web(filled) as address:
        reader = Visitor(address, "/sign-in")
        reader.post("/sign-in", {"key": key})
        page = reader.get("/review").text
        assert "3 to label" in page
        assert "Label the next one" not in page
        assert reader.post("/review/next", state()).status == 403


def test_a_choice_is_saved_as_a_view_for_all(visitor: Visitor) -> None:
    path = f"/review?rubric={RUBRIC}&filter=to%3Arefunds&why=failed&people=2"
    page = visitor.get(path).text
    query = unescape(re.search(r'name="query" value="([^"]+)"', page)[1])  # type: ignore[index]
    saved = visitor.post("/review/views", {"name": "Refunds <b>", "query": query})
    assert saved.status == 303
    assert "people=2" in saved.headers["Location"]
    page = visitor.get(saved.headers["Location"]).text
    assert "Refunds &lt;b&gt;" in page
    assert 'aria-current="true" title="Saved by local"' in page
    wrong = visitor.post("/review/views", {"name": "w", "query": f"rubric={RUBRIC}&filter=depht:2"})
    assert (wrong.status, "did you mean <code>depth</code>" in wrong.text) == (400, True)
    (number,) = set(re.findall(r"/review/views/(\d+)/delete", page))
    assert visitor.post(f"/review/views/{number}/delete", {}).status == 303
    assert "Refunds &lt;b&gt;" not in visitor.get("/review").text


def test_python_reviews_as_the_page_does(visitor: Visitor) -> None:
    server = baton.connect(visitor.address)
    seen = server.review(RUBRIC, why=["failed"], filter="to:refunds")
    assert (len(seen.items), seen.waiting) == (3, {"failed": 3})
    one = server.review_next(RUBRIC, by="ana")
    assert one is not None
    server.review_skip(RUBRIC, one.dispatch.conversation_id, one.dispatch.id, by="ana")
    other = server.review_next(RUBRIC, by="ana")
    assert other is not None
    assert other.dispatch.conversation != one.dispatch.conversation
    subject = other.dispatch.id
    server.label(other.dispatch.conversation, "weak", rubric=RUBRIC, subject=subject, by="ana")
    assert server.review(RUBRIC).by == {"ana": 1}
    with pytest.raises(baton.InputError, match="there is no rubric"):
        server.review("dispatch_corectness")
