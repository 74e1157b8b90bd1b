"""SECURITY.md tells the limits that the code has."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.model.limits import LIMITS, Limit

PAGE = (Path(__file__).parents[2] / "SECURITY.md").read_text("utf-8")


def shown(limit: Limit) -> str:
    """Write a value as the page does: in GiB or seconds where that is what it counts."""
    if limit.value >= 1 << 30:
        return f"{limit.value >> 30} GiB"
    return f"{limit.value:,}"


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_every_limit_of_what_is_read_is_on_the_page_with_what_raises_it(limit: Limit) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and shown(limit) in line]
    assert rows, limit.name
    if limit.variable is not None:
        assert any(limit.variable in row for row in rows), limit.variable
