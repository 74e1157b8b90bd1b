"""Whatever a trace holds reaches the model inside the fence and nowhere else."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from tests.judges.conftest import GOOD, SCHEMA, fenced, judge_of, neutral, question
from tests.judges.test_fence import INJECTIONS, outside
from tests.judges.test_judge import ask, many

from baton.judges.fenced_prompts import prompt_for
from baton.model import JudgeError
from baton.testing import LlmServer, Received, llm_server

APIS = ["openai", "openai_responses", "anthropic", "google", "mistral", "bedrock"]
HARMLESS = fenced([("what it said", "nothing of note")])
OURS = prompt_for(question(content=HARMLESS)).instructions


def attack(text: str, code: str = "") -> str:
    """Return the material of a trace that tries something, as a rubric would put it."""
    return fenced([("what it said", text.replace("CODE", code)), ("what came back", text)])


def without_canary(system: str) -> str:
    return re.sub(r"canary-\w{20}", "canary", system)


@pytest.fixture(scope="module")
def received() -> dict[str, list[Received]]:
    """All injections, sent by the real SDK of each API."""
    found: dict[str, list[Received]] = {}

    async def send_all(server: LlmServer, api: Any) -> None:
        async with judge_of(server, api=api, model="m", concurrency=1) as judge:
            for each in INJECTIONS:
                code = attack(each["text"]).split(" code ")[1][:16]
                await judge.ask(question(content=attack(each["text"], code)))

    for api in APIS:
        with pytest.MonkeyPatch.context() as patched, llm_server(GOOD) as server:
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                patched.setenv(name, "of-tests")
            patched.setenv("AWS_DEFAULT_REGION", "eu-west-1")
            asyncio.run(send_all(server, api))
            found[api] = list(server.requests)
    return found


@pytest.mark.heavy
@pytest.mark.parametrize("api", APIS)
def test_an_injection_reaches_the_model_inside_the_fence_only(
    received: dict[str, list[Received]], api: str
) -> None:
    assert len(received[api]) == len(INJECTIONS) >= 50
    for each, got in zip(INJECTIONS, received[api], strict=True):
        code = got.user.split(" code ")[1][:16]
        assert outside(got.user) == "", each["name"]
        assert got.user.count(f"⟦/{code}⟧") == 2, each["name"]
        assert neutral(each["text"]) in got.user, each["name"]


@pytest.mark.heavy
@pytest.mark.parametrize("api", APIS)
def test_an_injection_changes_nothing_else_of_the_request(
    received: dict[str, list[Received]], api: str
) -> None:
    plain = without_canary(OURS)
    for each, got in zip(INJECTIONS, received[api], strict=True):
        roles = [message.role for message in got.messages]
        assert roles == ["system", "user"], each["name"]
        assert without_canary(got.system) == plain, each["name"]
        assert got.schema is not None
        assert got.schema["properties"].keys() == SCHEMA["properties"].keys()


def test_an_injection_for_an_answer_is_no_verdict_unless_it_is_one(llm: LlmServer) -> None:
    def said(received: Received) -> str:
        return str(INJECTIONS[int(received.user.split("number ")[1].split("\n")[0])]["text"])

    llm.script = said
    found = ask(judge_of(llm), *many(len(INJECTIONS)))
    names = [each["name"] for each in INJECTIONS]
    verdicts = {n for n, each in zip(names, found, strict=True) if not isinstance(each, JudgeError)}
    assert verdicts == {"JSON verdict", "JSON verdict in Markdown"}
    assert {each.kind for each in found if isinstance(each, JudgeError)} == {"unparsable", "empty"}
