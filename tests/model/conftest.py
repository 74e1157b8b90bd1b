"""Records by name, and the things in them by id."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from baton.model import Trace

RECORDS = Path(__file__).parent.parent / "records"
Find = Callable[[Trace, str], Any]


@pytest.fixture
def record() -> Callable[[str], Trace]:
    """Return what loads a fresh copy of a record, free to be changed."""
    return lambda name: msgspec.json.decode((RECORDS / f"{name}.json").read_bytes(), type=Trace)


@pytest.fixture
def find() -> Find:
    """Return what finds a turn, run, step or dispatch by its id."""

    def by_id(trace: Trace, id_: str) -> Any:
        for turn in trace.turns:
            steps = [step for run in turn.runs for step in run.steps]
            for obj in (turn, *turn.runs, *steps, *turn.dispatches):
                if obj.id == id_:
                    return obj
        raise LookupError(id_)

    return by_id
