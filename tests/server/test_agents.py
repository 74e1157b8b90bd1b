"""What a server knows of agents: counts, versions, scores by checkpoint, and the worst dispatches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import update

from baton.model import AgentCard, Trace
from baton.server.agents import agents, axes, versions, worst_dispatches
from baton.server.schema import run as runs
from baton.server.store import Store, open_store
from baton.testing.build import delegate, run, trace, turn

from .seeding import START, add_conversation, add_score, add_sum
from .serving import api

DAY = 86400


def desk(id_: str, instructions: str) -> Trace:
    """A desk that gives a refund to an agent with these instructions."""
    made = trace(
        turn(
            "Refund.", run("desk", delegate("refunds", "Refund it.")), run("refunds"), output="Ok."
        ),
        id=id_,
    )
    made.agents = {"refunds": AgentCard(instructions=instructions, tools=["refund"])}
    return made


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Six days: the instructions change on the third, the model on the fifth."""
    opened = open_store(tmp_path_factory.mktemp("store") / "server")
    for day in range(6):
        words = "Be kind." if day < 2 else "Be kind and quick."
        model = "small-1" if day < 4 else "small-2"
        failed: dict[str, Any] = {"verdict": "failed"} if day == 5 else {"verdict": "passed"}
        id_ = add_conversation(opened, desk(f"c{day}", words), at=START + day * DAY, **failed)
        with opened.write() as connection:
            mine = (runs.c.project == 1, runs.c.conversation == id_, runs.c.agent == "refunds")
            connection.execute(update(runs).where(*mine).values(model=model, cost_usd=0.1))
        status: dict[str, Any] = {
            "status": failed["verdict"],
            "to_agent": "refunds",
            "at": START + day * DAY + 9,
        }
        dispatch: dict[str, Any] = {"dispatch": "d1"}
        add_score(opened, id_, **status, **dispatch, reason="asked for more than it may")
        if day == 5:
            add_score(opened, id_, **status, **dispatch, evaluator="follow_through")
        add_sum(opened, int(START // 3600) + day * 24, "refunds", count=1, passed=1, failed=0)
    yield opened
    opened.close()


def test_agents_are_listed_with_what_they_did(store: Store) -> None:
    refunds, first = agents(store, 1)[1], agents(store, 1)[0]
    assert (first.name, first.runs, first.sent, first.received) == ("desk", 6, 6, 0)
    assert (refunds.name, refunds.runs, refunds.received) == ("refunds", 6, 6)
    assert refunds.cost_usd == pytest.approx(3.0)
    late = agents(store, 1, since=START + 4 * DAY)
    assert [(each.name, each.runs) for each in late] == [("desk", 2), ("refunds", 2)]


def test_a_version_starts_where_instructions_or_model_changed(store: Store) -> None:
    made = versions(store, 1, "refunds")
    told = [(each.model, each.card and each.card.instructions) for each in made]
    assert told == [
        ("small-2", "Be kind and quick."),
        ("small-1", "Be kind and quick."),
        ("small-1", "Be kind."),
    ]
    assert made[0].runs == 2
    assert made[1].runs is None, "of two versions of one model the runs are not told apart"
    assert versions(store, 1, "nobody") == []


def test_axes_are_split_by_model(store: Store) -> None:
    made = axes(store, 1, "refunds", now=START + 10 * DAY)
    scope = {each.model: each.points for each in made if each.evaluator == "dispatch_scope"}
    assert [(p.at, p.passed, p.failed) for p in scope["small-2"]] == [
        (START + 4 * DAY, 1, 0),
        (START + 5 * DAY, 0, 1),
    ]
    assert sum(point.passed for point in scope["small-1"]) == 4
    assert axes(store, 1, "refunds", since=START + 9 * DAY, now=START + 10 * DAY) == []


def test_the_worst_dispatch_comes_with_its_reasons(store: Store) -> None:
    (worst,) = worst_dispatches(store, 1, "refunds")
    assert worst.dispatch.conversation == "c5"
    assert [each.evaluator for each in worst.scores] == ["dispatch_scope", "follow_through"]
    assert worst.scores[0].reason == "asked for more than it may"


def test_the_api_has_the_same(store: Store) -> None:
    with api(store) as url:

        def get(path: str, **params: Any) -> Any:
            return httpx2.get(f"{url}/api/v1/agents{path}", params=params).json()["items"]

        assert [each["name"] for each in get("")] == ["desk", "refunds"]
        assert len(get("/versions", agent="refunds")) == 3
        span = {"since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00Z"}
        assert len(get("/axes", agent="refunds", interval="week", **span)) == 3
        assert len(get("/worst", agent="refunds")) == 1


def test_another_project_shows_nothing(tmp_path: Path, store: Store) -> None:
    other = store.project("other", create=True)
    assert agents(store, other) == []
    assert versions(store, other, "refunds") == []
    assert axes(store, other, "refunds", now=START + 10 * DAY) == []
    assert worst_dispatches(store, other, "refunds") == []
