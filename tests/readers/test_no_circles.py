"""Traces are given back to memory as soon as nobody uses them."""

from __future__ import annotations

import gc
from pathlib import Path

from baton.readers import iter_traces

ROOT = Path(__file__).parents[2]
RECORDINGS = [
    ROOT / "examples" / "adk" / "recordings" / "support_desk",
    ROOT / "examples" / "adk" / "recordings" / "report_pipeline",
    ROOT / "tests" / "data" / "claude" / "current",
]


def test_traces_of_events_leave_no_circles_of_objects_behind() -> None:
    """Commands look for circles seldom: what is in one would stay in memory until then."""
    assert all(list(iter_traces(folder)) for folder in RECORDINGS)  # and what is kept for all runs
    gc.collect()
    gc.disable()
    try:
        assert all(list(iter_traces(folder)) for folder in RECORDINGS)
        assert gc.collect() == 0
    finally:
        gc.enable()
