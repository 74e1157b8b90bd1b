"""Traces and rows for the tests of the gate."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.model import Status, Trace
from baton.store import IndexRow
from baton.testing import build
from baton.testing.build import run


def by_desk(name: str, agent: str = "desk") -> Trace:
    """Make a trace of one turn by one agent."""
    return build.trace(run(agent), id=name)


def row(case: str, status: Status = "passed", repeat: int = 0, **more: Any) -> IndexRow:
    """Make a row of an index."""
    plain = {"position": 0, "case_id": case, "repeat": repeat, "status": status, "scores": []}
    return msgspec.convert({**plain, "offset": 0, "length": 0, **more}, IndexRow)
