"""What judging would take is found out without asking anybody."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.judges.conftest import SCHEMA, judge_of, question
from tests.judges.test_judge import PRICES, ask, many

from baton.judges.judge import Rehearsal, example
from baton.judges.parse_answer import faults
from baton.judges.votes import poll
from baton.model import Judge
from baton.testing import LlmServer

READ = lambda value: {"q": value["label"]}  # noqa: E731


def rehearse(llm: LlmServer, *requests: Any, samples: int = 1, **made: Any) -> Rehearsal:
    rehearsal = Rehearsal(judge_of(llm, made=made))

    async def all_of_them() -> None:
        for request in requests:
            await poll(rehearsal, request, READ, samples=samples)

    asyncio.run(all_of_them())
    return rehearsal


def test_it_stands_in_for_a_judge_and_asks_nobody(llm: LlmServer) -> None:
    rehearsal = rehearse(llm, *many(3), prices=PRICES)
    assert isinstance(rehearsal, Judge)
    found = rehearsal.estimate("these questions")
    assert (found.calls, found.cached, found.output_tokens) == (3, 0, 450)
    assert found.cost_usd == pytest.approx((found.input_tokens * 100 + 450 * 1000) / 1e6)
    assert llm.requests == []


def test_it_is_near_to_what_is_really_sent(llm: LlmServer) -> None:
    guessed = rehearse(llm, *many(3)).estimate("these questions").input_tokens
    found = ask(judge_of(llm), *many(3))
    assert sum(each.input_tokens for each in found) == pytest.approx(guessed, rel=0.25)


def test_votes_are_counted_to_the_last(llm: LlmServer) -> None:
    assert rehearse(llm, question(), samples=5).estimate("these questions").calls == 5


def test_a_cost_without_a_price_is_not_known(llm: LlmServer) -> None:
    assert rehearse(llm, question()).estimate("these questions").cost_usd is None
    assert rehearse(llm).estimate("these questions").cost_usd == 0


def test_verdicts_that_are_there_cost_nothing(llm: LlmServer, tmp_path: Path) -> None:
    ask(judge_of(llm, made={"cache": tmp_path / "v"}), *many(2))
    found = rehearse(llm, *many(3), question("number 0"), cache=tmp_path / "v").estimate(
        "these questions"
    )
    assert (found.calls, found.cached) == (1, 2)


def test_other_options_are_rehearsed_as_well(llm: LlmServer) -> None:
    rehearsal = Rehearsal(judge_of(llm))
    warmer = rehearsal.with_options({"temperature": 1.0, "samples": 2})
    asyncio.run(warmer.ask(question()))
    asyncio.run(rehearsal.ask(question()))
    asyncio.run(rehearsal.ask(question()))
    assert warmer.samples == 2
    assert (
        rehearsal.estimate("these questions").calls == warmer.estimate("these questions").calls == 2
    )


@pytest.mark.parametrize("number", range(4))
def test_made_up_answers_keep_to_their_schema(number: int) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "verdict": SCHEMA,
            "score": {"type": "integer", "minimum": 2, "maximum": 4},
            "share": {"type": "number"},
            "sure": {"type": "boolean"},
            "kind": {"const": "x"},
            "quotes": {"type": "array", "items": {"type": "string", "minLength": 3}, "minItems": 2},
            "maybe": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            "perhaps": {"type": ["null", "string"]},
        },
        "required": ["verdict", "score", "kind", "quotes"],
        "additionalProperties": False,
    }
    assert list(faults(example(schema, number), schema)) == []
