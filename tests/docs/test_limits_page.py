"""SECURITY.md shows every limit as it is."""

from __future__ import annotations

from pathlib import Path

from baton.model.limits import limits_table

PAGE = Path(__file__).parents[2] / "SECURITY.md"


def test_the_page_on_limits_has_the_table_of_limits() -> None:
    assert limits_table() in PAGE.read_text(encoding="utf-8")
