"""How problems and reports are worded."""

from __future__ import annotations

import pytest

from baton.model import counted


@pytest.mark.parametrize(
    ("number", "what", "worded"),
    [
        (0, "error", "0 errors"),
        (1, "error", "1 error"),
        (1, "dispatch", "1 dispatch"),
        (3, "dispatch", "3 dispatches"),
        (2, "body", "2 bodies"),
        (30, "day", "30 days"),
        (20_279, "token", "20,279 tokens"),
    ],
)
def test_one_thing_is_not_described_in_the_plural(number: int, what: str, worded: str) -> None:
    assert counted(number, what) == worded
