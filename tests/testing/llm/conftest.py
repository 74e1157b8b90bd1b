"""A scripted LLM for each test, and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from baton.testing import LlmServer, llm_server

VERDICT = {"verdict": "good", "score": 0.5}
VERDICT_JSON = '{"verdict": "good", "score": 0.5}'
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"verdict": {"type": "string"}, "score": {"type": "number"}},
    "required": ["verdict", "score"],
    "additionalProperties": False,
}


@pytest.fixture
def llm() -> Iterator[LlmServer]:
    """A server whose script the test sets."""
    with llm_server() as server:
        yield server
