"""Questions, judges and servers for the tests of judges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from baton.judges.fenced_prompts import fenced, is_fenced, neutral
from baton.judges.judge import LlmJudge, make_judge
from baton.judges.judge_settings import read_settings
from baton.model import JudgeRequest
from baton.testing import LlmServer, llm_server

# What the tests of this area take from inside Baton: a reorganisation changes it here alone.
__all__ = ["LlmJudge", "fenced", "is_fenced", "make_judge", "neutral", "read_settings"]

GOOD = {"reason": "as told", "label": "good"}
BAD = {"reason": "not as told", "label": "bad"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "label": {"type": "string", "enum": ["good", "bad"]},
    },
    "required": ["reason", "label"],
    "additionalProperties": False,
}


def question(text: str = "it did as it was told", **fields: Any) -> JudgeRequest:
    """Ask whether something went well."""
    asked: dict[str, Any] = {
        "rubric": "r",
        "version": "1",
        "instructions": "Did it go well?",
        "content": fenced([("what happened", text)]),
        "schema": SCHEMA,
    }
    return JudgeRequest(**{**asked, **fields})


def judge_of(server: LlmServer, *, api: Any = "openai", made: Any = None, **told: Any) -> LlmJudge:
    """Make a judge that asks a server; ``made`` are the arguments of ``make_judge``."""
    return make_judge(read_settings(server.judge(api, **told)), **(made or {}))


@pytest.fixture
def llm() -> Iterator[LlmServer]:
    """A server whose script the test sets; at first it finds all good."""
    with llm_server(GOOD) as server:
        yield server


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key of the machine's, and those that AWS wants even on loopback."""
    for name in ("OPENAI", "ANTHROPIC", "GOOGLE", "GEMINI", "MISTRAL"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-tests")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
