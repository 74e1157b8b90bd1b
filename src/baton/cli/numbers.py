"""Whole numbers on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """Read a whole number; left to itself, cyclopts rounds what is none."""
    return int(tokens[0].value)


Whole = Annotated[int, Parameter(converter=_whole)]
