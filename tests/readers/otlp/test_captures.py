"""Real runs of the frameworks are read as what really happened.

``untold`` in a ``truth.json`` names, by file, the facts that this recording does not hold. It is
exact: a fact that is listed and comes out right fails as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from baton import load_traces
from baton.model import AgentCard, InputError, integrity_problems

from .truth import CAPTURES, captures, differences

ALL = list(captures())


@pytest.mark.parametrize(
    ("file", "scenario"), ALL, ids=[str(file.relative_to(CAPTURES)) for file, _ in ALL]
)
def test_a_recorded_run_is_read_as_it_happened(file: Path, scenario: dict[str, Any]) -> None:
    untold = set(scenario.get("untold", {}).get(file.name, []))
    if untold == {"agents"}:
        with pytest.raises(InputError, match="agent, model or tool"):
            load_traces(file)
        return
    traces = load_traces(file)
    assert [problem for trace in traces for problem in integrity_problems(trace)] == []
    for trace in traces:  # nodes of graphs and hooks may look like agents, and say nothing
        worked = {run.agent for turn in trace.turns for run in turn.runs}
        assert {name for name, card in trace.agents.items() if card == AgentCard()} <= worked
    found = differences(scenario, traces)
    assert set(found) == untold, found


def test_every_recorded_file_belongs_to_a_scenario() -> None:
    known = {file for file, _ in ALL}
    stored = {file for file in CAPTURES.glob("*/*.json") if file.name != "truth.json"}
    assert stored == known
