"""The key of a judge is in no error, however short it is."""

from __future__ import annotations

import pytest

from baton.judges.judge_settings import Endpoint
from baton.judges.llm_client import call_error


@pytest.mark.parametrize("key", ["k7", "abc", "sk-0123456789abcdef"])
def test_a_key_stays_in_no_error_also_inside_of_a_word(key: str) -> None:
    error = call_error(
        RuntimeError(f"refused: token{key}end"), Endpoint(model="openai:m", api_key=key)
    )
    assert key not in str(error)
    assert "***" in str(error)
