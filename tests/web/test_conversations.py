"""The list of conversations: filters as text and chips, a place in the list, views, sums, news."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape

import pytest
from tests.server.seeding import START, add_conversation, add_score

from baton.model import Trace
from baton.server.access import create_key
from baton.server.store import Store
from baton.session.server_source import source_of
from baton.testing.build import delegate, run, trace, turn

from .asking import Visitor, ask
from .serving import web

HOSTILE = "<script>alert(1)</script>\u202egpj.exe \x1b[2J\"'&"


def desk(id_: str, to: str = "refunds") -> Trace:
    return trace(turn("hi", run("desk", delegate(to, "Refund it.")), run(to)), id=id_)


def names(page: str) -> list[str]:
    """The conversations that a page shows."""
    return [unescape(each) for each in re.findall(r'<a class="name"[^>]*>([^<]*)</a>', page)]


def fill(store: Store, count: int = 6) -> None:
    for n in range(count):
        to = "refunds" if n % 2 else "billing desk"
        verdict = {"verdict": "failed", "failed": 1} if n % 3 == 0 else {"verdict": "passed"}
        add_conversation(store, desk(f"c{n}", to), at=START + n * 60, cost_usd=0.5, **verdict)


def test_the_newest_come_first_and_a_filter_leaves_out_the_others(
    store: Store, address: str
) -> None:
    fill(store)
    assert names(ask(address + "/conversations").text) == ["c5", "c4", "c3", "c2", "c1", "c0"]
    page = ask(address + "/conversations?filter=to:refunds+verdict:passed").text
    assert names(page) == ["c5", "c1"]
    by_field = ask(address + "/conversations?to=refunds&verdict=passed").text
    assert names(by_field) == ["c5", "c1"]


def test_each_word_of_a_filter_can_be_taken_out_again(store: Store, address: str) -> None:
    fill(store)
    page = ask(address + "/conversations?filter=to:refunds+verdict:passed&since=2025-01-01").text
    links = [unescape(each) for each in re.findall(r'class="chip">.*?href="([^"]*)"', page)]
    assert len(links) == 2
    assert names(ask(address + links[0]).text) == ["c5", "c4", "c2", "c1"]
    assert "since=2025-01-01" in links[0]


def test_a_filter_is_added_by_field_and_value(store: Store, address: str) -> None:
    fill(store)
    added = ask(address + "/conversations?filter=verdict:passed&field=to&value=billing+desk")
    assert added.status == 303
    assert names(ask(address + added.headers["Location"]).text) == ["c4", "c2"]
    offered = json.loads(ask(address + "/data/conversations/values?field=to", accept="*/*").text)
    assert offered == {"values": ["billing desk", "refunds"]}


def test_a_filter_that_is_wrong_says_how_it_is_written_and_stays(address: str) -> None:
    page = ask(address + "/conversations?filter=agnet:x")
    assert page.status == 400
    assert "did you mean `agent`" in page.text
    assert 'value="agnet:x"' in page.text


def test_a_list_continues_where_the_page_before_ended(store: Store, address: str) -> None:
    fill(store, 60)
    first = ask(address + "/conversations?filter=cost:%3E0").text
    (next_page,) = re.findall(r'href="([^"]*cursor[^"]*)"', first)
    assert len(names(first)) == 50
    second = ask(address + unescape(next_page)).text
    assert names(second) == [f"c{n}" for n in range(9, -1, -1)]
    assert "cursor" not in re.findall(r'href="([^"]*)"[^>]*>Newest', second)[0]


def test_sums_are_of_what_the_filter_leaves(store: Store, address: str) -> None:
    fill(store)
    sums = ask(address + "/parts/conversations/sums?filter=to:refunds").text
    told = re.sub(r"<[^>]+>|\s+", " ", sums)
    assert re.search(r"conversations\s+3", told)
    assert re.search(r"failed\s+1\s+33 %", told)
    assert "$1.50" in told


def test_what_came_since_is_counted(store: Store, address: str) -> None:
    fill(store, 2)
    page = ask(address + "/conversations").text
    (after,) = re.findall(r'data-after="(\d+)"', page)
    path = f"{address}/data/conversations/new?filter=to:refunds&after={after}"
    assert json.loads(ask(path, accept="*/*").text) == {"new": 0}
    add_conversation(store, desk("late"), at=START)
    add_conversation(store, desk("other", "billing"), at=START)
    assert json.loads(ask(path, accept="*/*").text) == {"new": 1}


def test_the_command_beside_a_list_asks_for_the_same(store: Store, address: str) -> None:
    fill(store)
    page = ask(
        address + "/conversations?filter=to:%22billing+desk%22+cost:%3E%3D0.1&since=2025-01-01"
    )
    (line,) = re.findall(r'data-copy="(baton show[^"]*)"', page.text)
    verb = shlex.split(unescape(line))
    assert verb[:2] == ["baton", "show"]
    source = source_of(verb[2])
    assert source.fields["filter"] == ['to:"billing desk"', "cost:>=0.1"]
    assert source.most == 50
    assert str(source.fields["since"]).startswith("['2025-01-01")


def test_a_view_is_saved_for_all_and_deleted(store: Store, address: str) -> None:
    fill(store)
    visitor = Visitor(address, "/conversations?filter=to:refunds")
    query = unescape(re.findall(r'name="query" value="([^"]*)"', visitor.get(
        "/conversations?filter=to:refunds").text)[0])  # fmt: skip
    saved = visitor.post("/conversations/views", {"query": query, "name": "Refunds <b>"})
    assert (saved.status, saved.headers["Location"]) == (303, "/conversations?filter=to%3Arefunds")
    page = visitor.get("/conversations").text
    assert "Refunds &lt;b&gt;</a>" in page
    again = visitor.post("/conversations/views", {"query": query, "name": "Refunds <b>"})
    assert again.status == 400
    assert "view <code>Refunds &lt;b&gt;</code> already exists" in again.text
    (delete,) = re.findall(r'action="(/conversations/views/\d+/delete)"', page)
    assert visitor.post(delete, {}).status == 303
    assert "Refunds" not in visitor.get("/conversations").text


def test_who_may_only_read_saves_no_view(store: Store) -> None:
    fill(store)
    key = create_key(store, "default", "ana", ["read"])
    with web(store) as address:
        visitor = Visitor(address, "/sign-in")
        visitor.post("/sign-in", {"key": key})
        page = visitor.get("/conversations?filter=to:refunds").text
        assert "Save this filter as" not in page
        refused = visitor.post("/conversations/views", {"query": "filter=to:x", "name": "x"})
        assert refused.status == 403


def test_texts_of_traces_are_text_and_hide_nothing(store: Store, address: str) -> None:
    add_conversation(
        store, desk("c1"), preview=HOSTILE, service=HOSTILE, agents=json.dumps([HOSTILE])
    )
    page = ask(address + "/conversations").text
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "\\u202egpj.exe \\u001b[2J" in page


def test_another_project_shows_its_own(store: Store, address: str) -> None:
    fill(store, 1)
    other = store.project("shop", create=True)
    add_conversation(store, desk("theirs"), project=other)
    page = ask(address + "/conversations?project=shop").text
    assert names(page) == ["theirs"]
    assert all(
        "project=shop" in unescape(link)
        for link in re.findall(r'href="(/conversations/[^"]*)"', page)
    )


def test_an_empty_list_says_what_to_do_first(store: Store, address: str) -> None:
    page = ask(address + "/conversations").text
    lines = [unescape(each) for each in re.findall(r'data-copy="([^"]*)"', page)]
    assert f"baton record --server {address} -- python app.py" in lines
    assert f"baton hook claude push --server {address}" in lines
    assert f"OTEL_EXPORTER_OTLP_ENDPOINT={address} your-program" in lines
    store.project("shop", create=True)
    shop = unescape(ask(address + "/conversations?project=shop").text)
    assert f"baton push runs/ --server {address} --project shop" in shop
    fill(store, 1)
    none = ask(address + "/conversations?filter=to:nobody").text
    assert "No conversation matches this filter." in none


def test_a_list_can_be_searched_for_what_was_said(store: Store, address: str) -> None:
    fill(store, 3)
    page = ask(address + "/conversations?text=refund+IT").text
    assert names(page) == ["c2", "c1", "c0"]
    assert '<span class="match" dir="auto">Refund it.</span>' in page
    assert ask(address + "/conversations?text=x").status == 400


@pytest.mark.parametrize("field", ["evaluator", "finding", "rule", "service", "kind", "cost"])
def test_values_are_offered_for_each_field(store: Store, address: str, field: str) -> None:
    id_ = add_conversation(store, desk("c1"), service="desk-service")
    add_score(store, id_, finding="scope_exceeded", status="failed")
    answer = ask(f"{address}/data/conversations/values?field={field}", accept="*/*")
    offered = json.loads(answer.text)["values"]
    expected = {
        "evaluator": ["dispatch_scope"],
        "finding": ["scope_exceeded"],
        "rule": ["all"],
        "service": ["desk-service"],
        "kind": ["transfer", "delegate", "sequence", "return"],
        "cost": [],
    }
    assert sorted(offered) == sorted(expected[field])
