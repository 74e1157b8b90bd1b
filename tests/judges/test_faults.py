"""Real SDKs against a server with faults: each of them has its kind, and none is a verdict."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.judges.conftest import GOOD, judge_of, question
from tests.judges.test_client import APIS, asked

from baton.model import JudgeError
from baton.testing import LlmServer, Reply

FAULTS: dict[Any, tuple[str, int]] = {
    "refusal": ("refusal", 1),
    "filtered": ("refusal", 1),
    "empty": ("empty", 2),
    "wrong_schema": ("unparsable", 2),
    "invalid_json": ("unparsable", 2),
    "truncated": ("truncated", 1),
    "rate_limit": ("rate_limit", 1),
    "server_error": ("outage", 1),
    "cut": ("outage", 1),
    "disconnect": ("outage", 1),
    "garbage": ("outage", 1),
}
SAID_AS_TEXT = {("mistral", "refusal"): ("unparsable", 2), ("mistral", "filtered"): ("empty", 2)}
"""Mistral's API has no way to say that it refuses."""


def fails(llm: LlmServer, api: str = "openai", **told: Any) -> JudgeError:
    with pytest.raises(JudgeError) as error:
        asyncio.run(asked(llm, api, **told))
    return error.value


@pytest.mark.parametrize("api", APIS)
def test_every_fault_of_every_api_has_its_kind(llm: LlmServer, api: str) -> None:
    async def ask_all() -> dict[str, tuple[str, int]]:
        found = {}
        async with judge_of(llm, api=api, retries=0) as judge:
            for fault in FAULTS:
                llm.clear()
                llm.script = Reply(fault=fault)
                with pytest.raises(JudgeError) as error:
                    await judge.ask(question())
                found[fault] = (str(error.value.kind), len(llm.requests))
        return found

    wanted = {fault: SAID_AS_TEXT.get((api, fault), kind) for fault, kind in FAULTS.items()}
    assert asyncio.run(ask_all()) == wanted


@pytest.mark.parametrize("api", APIS)
def test_a_request_that_is_refused_is_not_sent_again(llm: LlmServer, api: str) -> None:
    llm.script = Reply(status=401, message="who are you?")
    error = fails(llm, api)
    assert error.kind == "rejected"
    assert "status 401: who are you?" in error.message
    assert len(llm.requests) == 1


@pytest.mark.parametrize("api", APIS)
def test_the_sdk_itself_sends_nothing_twice(llm: LlmServer, api: str) -> None:
    llm.script = Reply(status=503, retry_after=0)
    assert fails(llm, api, retries=2).kind == "outage"
    assert len(llm.requests) == 3


@pytest.mark.parametrize("api", APIS)
def test_an_answer_that_takes_too_long_is_its_own_error(llm: LlmServer, api: str) -> None:
    llm.script = Reply(answer=GOOD, delay=3)
    assert fails(llm, api, timeout=0.3, retries=0).kind == "timeout"


def test_a_key_is_in_no_message(llm: LlmServer) -> None:
    llm.script = Reply(status=401, message="wrong key sk-of-mine-12345")
    assert "sk-of-mine" not in fails(llm, api_key="sk-of-mine-12345").message


def test_a_model_that_cannot_be_reached_is_an_outage() -> None:
    from baton.judges.judge import make_judge
    from baton.judges.judge_settings import read_settings

    async def ask() -> None:
        told = {"model": "openai:m", "base_url": "http://127.0.0.1:1/v1", "retries": 0}
        async with make_judge(read_settings(told)) as judge:
            await judge.ask(question())

    with pytest.raises(JudgeError) as error:
        asyncio.run(ask())
    assert error.value.kind == "outage"
