"""What a crew was asked: its task, without what CrewAI adds for the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from baton.readers import load_traces

DATA = Path(__file__).parents[2] / "data" / "otel" / "crewai"
ASKED = {
    name: scenario["input"]
    for scenario in json.loads((DATA / "truth.json").read_text())["scenarios"].values()
    for name in scenario["files"]
    if name.endswith("_events.json") and "input" in scenario
}


@pytest.mark.parametrize("file", ASKED)
def test_a_crew_that_is_known_by_its_events_was_asked_its_task_alone(file: str) -> None:
    (trace,) = load_traces(DATA / file)
    assert trace.turns[0].input is not None
    assert trace.turns[0].input.text == ASKED[file]
