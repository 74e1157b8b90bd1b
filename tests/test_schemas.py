"""The JSON Schemas in the docs are those of the types."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.schemas import FILES, schema_text

DOCS = Path(__file__).parent.parent / "docs" / "schemas"


@pytest.mark.parametrize("name", FILES)
def test_a_schema_is_up_to_date(name: str) -> None:
    """`make schemas` writes them."""
    assert (DOCS / name).read_text(encoding="utf-8") == schema_text(FILES[name])
