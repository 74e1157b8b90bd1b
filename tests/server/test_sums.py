"""Sums by day: of any time they are what its hours, or its conversations, add up to."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from baton.model.filter import Bound, Filter, Term
from baton.server import queries, sums
from baton.server.store import Store
from baton.testing.build import run, trace, turn

from .seeding import START, add_conversation, add_sum

HOUR, DAY = 3600, 86_400


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.heavy)])
def either(request: pytest.FixtureRequest) -> Store:
    name = "store" if request.param == "sqlite" else "postgres_store"
    opened: Store = request.getfixturevalue(name)
    return opened


def test_edges_and_trends_of_any_time_are_those_of_its_hours(either: Store) -> None:
    dice = random.Random(4)
    first = int(START // HOUR)
    counts = {first + n: dice.randint(1, 9) for n in range(0, 24 * 9, 5)}
    for hour, count in counts.items():
        add_sum(either, hour, "refunds", count=count)
    times = [None, *(START + dice.randrange(-1, 24 * 10) * HOUR + 60 for _ in range(6))]
    for since in times:
        for until in times:
            low = 0 if since is None else since // HOUR
            high = 10**9 if until is None else until // HOUR
            there = {hour: count for hour, count in counts.items() if low <= hour <= high}
            listed = sums.edges(either, 1, since=since, until=until)
            assert sum(edge.dispatches for edge in listed) == sum(there.values()), (since, until)
            if since is not None:
                last = START + 20 * DAY
                points = sums.trends(either, 1, since=since, until=until or last)
                days: Counter[int] = Counter()
                for hour, count in there.items():
                    days[hour // 24 * DAY] += count
                assert {int(one.at.timestamp()): one.count for one in points} == days


def test_sums_over_conversations_since_any_time_are_those_of_a_look_at_each(either: Store) -> None:
    dice = random.Random(5)
    for number in range(60):
        at = START + dice.random() * 5 * DAY
        about: dict[str, Any] = {"cost_usd": 0.25, "input_tokens": 10} if number % 3 else {}
        if number % 20 == 0:
            about["started"] = None
        about["verdict"] = dice.choice(["passed", "failed", "error", None])
        about["state"] = dice.choice(["open", "complete"])
        add_conversation(either, trace(turn("hi", run("desk")), id=f"c{number}"), at=at, **about)
    add_conversation(either, trace(turn("hi", run("desk")), id="other"), project=2)
    every = Term(field="turns", bounds=((Bound(">=", 0),),))  # all have turns, so all are examined
    for since in (
        None,
        0.0,
        START,
        START + DAY,
        *(START + dice.random() * 6 * DAY for _ in range(6)),
    ):
        terms = () if since is None else (Term(field="started", bounds=((Bound(">=", since),),)),)
        quick = queries.conversation_sums(either, 1, Filter(terms=terms))
        looked = queries.conversation_sums(either, 1, Filter(terms=(*terms, every)))
        assert quick == looked, since
    assert queries.conversation_sums(either, 1, Filter()).conversations == 60


def test_more_than_a_page_adds_up_is_counted_where_days_are_whole(store: Store) -> None:
    for number in range(5):
        add_conversation(store, trace(turn("hi", run("desk")), id=f"c{number}"))
    assert queries.conversation_sums(store, 1, Filter(), most=3).conversations == 5
    late = Filter(terms=(Term(field="started", bounds=((Bound(">=", START - 60),),)),))
    told = queries.conversation_sums(store, 1, late, most=3)
    assert (told.conversations, told.more) == (5, False)
    part = Filter(terms=(Term(field="started", bounds=((Bound(">=", START - 0.5),),)),))
    assert queries.conversation_sums(store, 1, part, most=9).conversations == 5
