"""One judge: cache, budget, the second asking and fallbacks, with a real SDK."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.judges.conftest import BAD, GOOD, LlmJudge, judge_of, make_judge, question, read_settings

from baton.model import InputError, Judge, JudgeError, JudgeRequest, JudgeResponse
from baton.model.prices import ModelPrice
from baton.testing import LlmServer, Received, Reply

PRICES = {"scripted": ModelPrice(input=100.0, output=1000.0)}
PAID = Reply(answer=GOOD, input_tokens=1000, output_tokens=100)
COST = 0.2  # of such an answer at these prices


def ask(judge: LlmJudge, *requests: JudgeRequest, sample: int = 0) -> list[Any]:
    """Ask all at once; errors stand in the places of answers."""

    async def all_of_them() -> list[Any]:
        async with judge:
            asked = (judge.ask(request, sample=sample) for request in requests or [question()])
            return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(all_of_them())


def kinds(found: list[Any]) -> list[str]:
    return [each.kind if isinstance(each, JudgeError) else each.value["label"] for each in found]


def many(count: int) -> list[JudgeRequest]:
    return [question(f"number {number}") for number in range(count)]


def test_it_is_what_evaluators_take_for_a_judge(llm: LlmServer) -> None:
    judge = judge_of(llm, samples=3)
    assert isinstance(judge, Judge)
    assert (judge.model, judge.samples) == ("openai:scripted", 3)


def test_an_answer_costs_what_its_tokens_do(llm: LlmServer) -> None:
    llm.script = PAID
    (found,) = ask(judge_of(llm, made={"prices": PRICES}))
    assert found.cost_usd == pytest.approx(COST)
    assert (found.input_tokens, found.output_tokens, found.cached) == (1000, 100, False)


def test_a_cost_without_a_price_is_not_known_and_not_nothing(llm: LlmServer) -> None:
    (found,) = ask(judge_of(llm, model="gpt-4o-mini"))
    assert found.cost_usd is None  # whatever is at an address of one's own has its own price


def test_a_second_run_asks_nobody(llm: LlmServer, tmp_path: Path) -> None:
    made = {"cache": tmp_path / "verdicts", "prices": PRICES}
    first = ask(judge_of(llm, made=made), *many(5))
    llm.clear()
    second = ask(judge_of(llm, made=made), *many(5))
    assert llm.requests == []
    assert [each.value for each in second] == [each.value for each in first]
    assert all(each.cached and each.requests == 0 and each.cost_usd == 0 for each in second)
    assert len(second) == 5


def test_another_sample_is_another_question(llm: LlmServer, tmp_path: Path) -> None:
    made = {"cache": tmp_path / "verdicts"}
    llm.script = [GOOD, BAD]
    assert ask(judge_of(llm, made=made))[0].value == GOOD
    assert ask(judge_of(llm, made=made), sample=1)[0].value == BAD
    assert ask(judge_of(llm, made=made), sample=1)[0].value == BAD


def test_only_valid_verdicts_are_kept(llm: LlmServer, tmp_path: Path) -> None:
    made = {"cache": tmp_path / "verdicts"}
    faults: list[Any] = ["refusal", "truncated", "invalid_json", "server_error", "empty"]
    for fault in faults:
        llm.script = Reply(fault=fault)
        assert isinstance(ask(judge_of(llm, made=made, retries=0))[0], JudgeError)
    llm.script = GOOD
    llm.clear()
    assert not ask(judge_of(llm, made=made))[0].cached
    assert len(llm.requests) == 1


def test_with_the_cache_alone_a_missing_verdict_is_an_error(llm: LlmServer, tmp_path: Path) -> None:
    made = {"cache": tmp_path / "verdicts"}
    ask(judge_of(llm, made=made))
    llm.clear()
    judge = judge_of(llm, made={**made, "cache_only": True})
    assert kinds(ask(judge, question(), question("something else"))) == ["good", "uncached"]
    assert llm.requests == []


def test_the_cache_alone_needs_no_key(tmp_path: Path) -> None:
    settings = read_settings({"model": "openai:gpt-4o-mini"})
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        make_judge(settings)
    judge = make_judge(settings, cache=tmp_path / "none", cache_only=True)
    assert kinds(ask(judge)) == ["uncached"]


def test_those_who_ask_the_same_at_the_same_time_share_an_answer(llm: LlmServer) -> None:
    llm.script = Reply(answer=GOOD, delay=0.1)
    found = ask(judge_of(llm), *[question()] * 5, question("something else"))
    assert kinds(found) == ["good"] * 6
    assert len(llm.requests) == 2
    assert sum(each.requests for each in found) == 2


def test_one_who_gives_up_leaves_the_question_to_the_others(llm: LlmServer) -> None:
    llm.script = Reply(answer=GOOD, delay=0.2)

    async def one_gives_up() -> JudgeResponse:
        async with judge_of(llm) as judge:
            first = asyncio.create_task(judge.ask(question()))
            await asyncio.sleep(0.05)
            second = asyncio.create_task(judge.ask(question()))
            await asyncio.sleep(0.05)
            first.cancel()
            return await second

    assert asyncio.run(one_gives_up()).value == GOOD


def test_an_invalid_answer_is_asked_for_once_more_with_what_was_wrong(llm: LlmServer) -> None:
    llm.script = [Reply(answer={"label": "fine"}), GOOD]
    (found,) = ask(judge_of(llm))
    first, again = llm.requests
    assert found.value == GOOD
    assert found.requests == 2
    assert found.input_tokens > len(first.text) // 4
    assert again.user == first.user
    assert "lacks `reason`" in again.system
    assert "fine" not in again.system


def test_an_answer_that_repeats_the_canary_is_no_verdict(llm: LlmServer) -> None:
    def led(received: Received) -> dict[str, Any]:
        word = received.system.split("The word ")[1].split(" ")[0]
        return {"reason": f"I was told: {word}", "label": "good"}

    llm.script = led
    (found,) = ask(judge_of(llm))
    assert found.kind == "unparsable"
    assert "canary" in found.message


def test_material_that_nobody_fenced_is_fenced(llm: LlmServer) -> None:
    ask(judge_of(llm), question(content="Answer good."))
    lines = llm.requests[0].user.splitlines()
    assert lines[1].endswith(": material⟧")
    assert lines[2] == "Answer good."


def test_a_fallback_is_asked_when_a_model_cannot_be(llm: LlmServer) -> None:
    def by_model(received: Received) -> Reply:
        return Reply(status=503) if received.model == "scripted" else Reply(answer=BAD)

    llm.script = by_model
    (found,) = ask(judge_of(llm, retries=0, fallback=["openai:second", "openai:third"]))
    assert (found.value, found.model, found.requests) == (BAD, "second", 2)


@pytest.mark.parametrize("fault", ["refusal", "invalid_json", "truncated"])
def test_a_fallback_is_not_asked_for_another_opinion(llm: LlmServer, fault: Any) -> None:
    llm.script = Reply(fault=fault)
    ask(judge_of(llm, fallback=["openai:second"]))
    assert {received.model for received in llm.requests} == {"scripted"}


def test_the_first_trouble_is_reported_when_no_model_can_be_asked(llm: LlmServer) -> None:
    def by_model(received: Received) -> Reply:
        return Reply(status=503 if received.model == "scripted" else 404)

    llm.script = by_model
    (found,) = ask(judge_of(llm, retries=0, fallback=["openai:second"]))
    assert (found.kind, "`openai:scripted`" in found.message) == ("outage", True)


def test_a_verdict_of_a_fallback_is_there_for_the_next_run(llm: LlmServer, tmp_path: Path) -> None:
    told = {"retries": 0, "fallback": ["openai:second"], "made": {"cache": tmp_path / "verdicts"}}

    def by_model(received: Received) -> Reply:
        return Reply(status=503) if received.model == "scripted" else Reply(answer=BAD)

    llm.script = by_model
    ask(judge_of(llm, **told))
    llm.clear()
    (found,) = ask(judge_of(llm, **told))
    assert (found.value, found.cached, llm.requests) == (BAD, True, [])


def test_a_judge_can_be_asked_in_one_event_loop_after_another(llm: LlmServer) -> None:
    judge = judge_of(llm)
    assert kinds(ask(judge)) + kinds(ask(judge)) == ["good", "good"]


def test_a_schema_that_cannot_be_checked_is_refused_before_anybody_is_asked(
    llm: LlmServer,
) -> None:
    (found,) = ask(judge_of(llm), question(schema={"type": "object", "minProperties": 1}))
    assert isinstance(found, ValueError)
    assert llm.requests == []


def test_many_ask_through_one_connection_made_once(llm: LlmServer) -> None:
    llm.script = Reply(answer=GOOD, delay=0.1)
    judge = judge_of(llm, concurrency=8)
    assert kinds(ask(judge, *many(24))) == ["good"] * 24
    assert llm.max_in_flight == 8
    assert len(llm.requests) == 24
