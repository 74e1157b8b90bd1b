"""Traces and rows for the tests of the gate."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.model import AgentRun, Source, Status, Trace, Turn
from baton.store import IndexRow


def trace(name: str, agent: str = "desk") -> Trace:
    """Make a trace of one turn by one agent."""
    turn = Turn(id="t", runs=[AgentRun(id="r", agent=agent)])
    return Trace(schema_version=1, id=name, source=Source(format="test"), turns=[turn])


def row(case: str, status: Status = "passed", repeat: int = 0, **more: Any) -> IndexRow:
    """Make a row of an index."""
    plain = {"position": 0, "case_id": case, "repeat": repeat, "status": status, "scores": []}
    return msgspec.convert({**plain, "offset": 0, "length": 0, **more}, IndexRow)
