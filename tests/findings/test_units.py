"""The table of units says what Pint and CLDR say."""

from __future__ import annotations

import pytest

from . import units


@pytest.mark.heavy  # loads Pint
def test_the_table_of_units_is_what_pint_and_babel_have() -> None:
    assert units.FILE.read_text("utf-8") == units.written(units.table())
