"""What judges may cost, and how fast they may be asked, with a real SDK."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from tests.judges.conftest import GOOD, judge_of, make_judge, question, read_settings
from tests.judges.test_judge import COST, PAID, PRICES, ask, kinds, many

from baton.model import InputError
from baton.testing import LlmServer, Received, Reply


def test_no_more_requests_are_sent_than_may_be(llm: LlmServer) -> None:
    judge = judge_of(llm, made={"max_calls": 7})
    found = kinds(ask(judge, *many(20)))
    assert (found.count("good"), found.count("budget")) == (7, 13)
    assert len(llm.requests) == 7


def test_what_is_sent_again_counts_as_well(llm: LlmServer) -> None:
    llm.script = Reply(fault="invalid_json")
    assert kinds(ask(judge_of(llm, max_calls=1))) == ["budget"]
    assert len(llm.requests) == 1


def test_no_more_is_spent_than_may_be(llm: LlmServer) -> None:
    llm.script = PAID
    judge = judge_of(llm, max_cost=5 * COST, concurrency=4, made={"prices": PRICES})
    answers = ask(judge, *many(20))
    found = kinds(answers)
    assert 3 <= found.count("good") <= 5
    assert found.count("budget") == 20 - found.count("good")
    assert len(llm.requests) == found.count("good")
    spent = sum(getattr(each, "cost_usd", None) or 0.0 for each in answers)
    assert spent == pytest.approx(COST * found.count("good"))
    assert spent <= 5 * COST


def test_a_limit_of_the_cost_needs_prices(llm: LlmServer) -> None:
    with pytest.raises(InputError, match="needs the price of `openai:scripted`"):
        judge_of(llm, max_cost=1)
    with pytest.raises(InputError, match="`openai:second`"):
        judge_of(llm, fallback=["openai:second"], made={"max_cost": 1.0, "prices": PRICES})


def test_a_limit_of_the_cost_is_kept_by_listed_prices_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-tests")
    judge = make_judge(read_settings({"model": "openai:gpt-4o-mini"}), max_cost=0.0)
    assert kinds(ask(judge)) == ["budget"]


def test_the_limit_of_one_evaluator_is_part_of_that_of_all(llm: LlmServer) -> None:
    judge = judge_of(llm, made={"max_calls": 5})
    own = judge.with_options({"max_calls": 2})
    assert judge.with_options({"max_calls": 2}) is own
    assert kinds(ask(own, *many(4))).count("good") == 2
    assert kinds(ask(own.with_options({"samples": 3}), question("new"))) == ["budget"]
    assert kinds(ask(judge, *many(9))).count("good") == 3


def test_other_options_change_what_is_asked_and_share_the_rest(
    llm: LlmServer, tmp_path: Any
) -> None:
    judge = judge_of(llm, made={"cache": tmp_path / "verdicts"})
    warmer = judge.with_options({"temperature": 0.7, "samples": 3})
    assert judge.with_options({}) is judge
    assert (warmer.samples, judge.samples) == (3, 1)
    ask(judge)
    ask(warmer)
    assert [received.body["temperature"] for received in llm.requests] == [0.0, 0.7]
    assert ask(judge.with_options({"samples": 5}))[0].cached
    with pytest.raises(InputError, match="temperature"):
        judge.with_options({"temprature": 0.7})


def test_a_server_that_asks_for_patience_is_left_alone_by_everybody(llm: LlmServer) -> None:
    def once_busy(received: Received) -> Reply:
        busy = received.number == 5
        return Reply(status=429, retry_after=1) if busy else Reply(answer=GOOD, delay=0.02)

    llm.script = once_busy
    assert kinds(ask(judge_of(llm, concurrency=2), *many(12))) == ["good"] * 12
    times = [received.at for received in llm.requests]
    assert len(times) == 13
    waited = max(after - before for before, after in itertools.pairwise(times))
    assert waited >= 0.9
    assert sum(at > times[4] + 0.9 for at in times) >= 7


def test_requests_a_minute_hold_for_all_who_ask(llm: LlmServer) -> None:
    async def for_a_moment() -> None:
        judge = judge_of(llm, requests_per_minute=3)
        async with asyncio.timeout(1.5):
            async with judge:
                await asyncio.gather(*(judge.ask(request) for request in many(9)))

    with pytest.raises(TimeoutError):
        asyncio.run(for_a_moment())
    assert len(llm.requests) == 3


def test_a_fault_that_passes_is_not_noticed(llm: LlmServer) -> None:
    llm.script = [Reply(status=500), Reply(status=429, retry_after=0), Reply(answer=GOOD)]
    (found,) = ask(judge_of(llm))
    assert (found.value, found.requests) == (GOOD, 3)


def test_settings_of_the_run_go_before_those_of_the_config(llm: LlmServer) -> None:
    judge = judge_of(llm, max_calls=9, made={"max_calls": 0})
    assert kinds(ask(judge, question())) == ["budget"]
