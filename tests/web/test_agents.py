"""The pages of agents: who hands to whom, and what is known of one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape

import pytest
from tests.server.seeding import add_conversation, add_score, add_sum

from baton.model import AgentCard
from baton.server.store import Store, open_store
from baton.testing.build import delegate, run, trace, turn

from .asking import Visitor
from .serving import web

DAY = 86400
NOW = 1_767_225_600.0
"""2026-01-01: the pages are asked for all time."""
EVIL = 'quote"<script>alert(1)</script>\u202e/x'


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """A server on which `refunds` got other instructions and a tool after a while."""
    store = open_store(tmp_path_factory.mktemp("web") / "server")
    fill(store)
    with web(store) as address:
        yield Visitor(address)
    store.close()


def fill(store: Store) -> None:
    for day, (words, tools) in enumerate(
        [("Be kind.\nBe slow.", ["refund"]), ("Be kind.\nBe quick.", ["refund", "look_up"])]
    ):
        made = trace(
            turn("Hi", run("desk", delegate("refunds", "Do it.")), run("refunds"), output="Ok."),
            id=f"c{day}",
        )
        made.agents = {"refunds": AgentCard(instructions=words, tools=tools)}
        id_ = add_conversation(store, made, at=NOW + day * DAY, verdict="failed")
        add_score(store, id_, status="failed", to_agent="refunds", reason="<b>too much</b>", at=NOW)
    made = trace(
        turn("Hi", run("desk", delegate(EVIL, "Do it.")), run(EVIL), output="Ok."), id="evil"
    )
    add_conversation(store, made, at=NOW)
    hour = int(NOW // 3600)
    add_sum(store, hour, "refunds", count=1200, passed=1200, failed=0, cost_usd=3.5)
    add_sum(store, hour, "refunds", "dispatch_scope", passed=3, failed=1, cost_usd=0)
    add_sum(store, hour, "refunds", "follow_through", passed=4, failed=0, cost_usd=0)
    add_sum(store, hour, EVIL, count=2)
    # Scores of a run, and of a whole conversation: nobody dispatched anything there.
    about: dict[str, object] = {"from_agent": "", "count": 4, "cost_usd": 0}
    add_sum(store, hour, "refunds", "answer_right", **about)
    add_sum(store, hour, "", "answer_right", **about)


def graph(text: str) -> dict[str, list[dict[str, object]]]:
    found = re.search(r'id="graph-data">(.*?)</script>', text)
    assert found is not None
    drawn: dict[str, list[dict[str, object]]] = json.loads(found[1])
    return drawn


def test_edges_have_counts_pass_rates_and_cost(visitor: Visitor) -> None:
    page = visitor.get("/agents?days=all")
    assert page.status == 200
    edge = next(one for one in graph(page.text)["edges"] if one["to"] == "refunds")
    assert (edge["from"], edge["count"], edge["cost"]) == ("desk", 1200, 3.5)
    assert (edge["passed"], edge["failed"]) == (7, 1)
    assert edge["href"] == "/conversations?filter=from%3Adesk+to%3Arefunds"
    one = graph(visitor.get("/agents?days=all&evaluator=dispatch_scope").text)
    assert {(e["passed"], e["failed"]) for e in one["edges"] if e["to"] == "refunds"} == {(3, 1)}
    assert "1.2k" in page.text  # in the routing matrix
    assert {(e["from"], e["to"]) for e in graph(page.text)["edges"]} == {
        ("desk", "refunds"),
        ("desk", EVIL),
    }
    assert {each["name"] for each in graph(page.text)["agents"]} == {"desk", "refunds", EVIL}
    assert "No agent ran" in visitor.get("/agents?days=1").text
    assert visitor.get("/agents?days=soon").status == 400


def test_a_hostile_name_is_text_everywhere(visitor: Visitor) -> None:
    page = visitor.get("/agents?days=all").text
    assert "<script>alert" not in page
    assert any(one["name"] == EVIL for one in graph(page)["agents"])
    address = next(str(one["href"]) for one in graph(page)["agents"] if one["name"] == EVIL)
    own = visitor.get(address)
    assert own.status == 200
    assert "<script>alert" not in own.text
    assert "\u202e" not in own.text


def test_an_agent_has_its_versions_with_what_changed(visitor: Visitor) -> None:
    text = unescape(visitor.get("/agents/refunds?days=all").text)
    assert "instructions changed" in text
    assert "tools changed" in text
    assert '<span class="lost">− Be slow.' in text
    assert '<span class="added">+ Be quick.' in text
    assert '<span class="added">+ look_up</span>' in text
    assert "baton show 'server://" in text
    worst = visitor.get("/agents/refunds?days=all").text
    assert "&lt;b&gt;too much&lt;/b&gt;" in worst
    assert 'href="/conversations/2#d-d1"' in worst


def test_pass_rates_over_time_are_data(visitor: Visitor) -> None:
    answer = visitor.get("/data/agents/axes?agent=refunds&days=all", accept="application/json")
    (line,) = json.loads(answer.text)
    assert (line["evaluator"], sum(each["failed"] for each in line["points"])) == (
        "dispatch_scope",
        2,
    )
    assert visitor.get("/agents/nobody?days=all").status == 404
