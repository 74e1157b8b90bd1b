"""`dispatch_routing` on recordings of real agents, against what is known to have happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import baton
from baton.model import (
    Score,
    Trace,
)
from baton.testing import verdicts
from baton.testing.build import case

OTEL = Path(__file__).parents[2] / "data" / "otel"
FRAMEWORKS = sorted(path.parent.name for path in OTEL.glob("*/truth.json"))


def runs(framework: str) -> Iterator[tuple[Trace, list[str]]]:
    """Yield each trace of one turn that did not break, with the agents that got work."""
    folder = OTEL / framework
    for scenario in json.loads((folder / "truth.json").read_text("utf-8"))["scenarios"].values():
        receivers = [
            hand_off["to"]
            for hand_off in scenario.get("handoffs", ())
            if hand_off["kind"] in ("transfer", "delegate")
        ]
        untold = scenario.get("untold", {})
        for file in scenario.get("files", ()) if receivers else ():
            if "hand_offs" in untold.get(file, ()):
                continue
            # What cannot be read at all is told by other tests.
            traces = list(baton.iter_traces(folder / file, on_problem=lambda _: None))
            if len(traces) == 1 and [turn.status for turn in traces[0].turns] == ["completed"]:
                yield traces[0], receivers


def scores(trace: Trace, receivers: list[str]) -> list[Score]:
    return verdicts("dispatch_routing", trace, case(dispatches=receivers))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_really_happened_passes_and_another_target_does_not(framework: str) -> None:
    passed = failed = 0
    for trace, receivers in runs(framework):
        where = trace.source.location
        good = [score.status for score in scores(trace, receivers)]
        assert "failed" not in good, where
        bad = [score.status for score in scores(trace, ["nobody", *receivers[1:]])]
        assert bad != ["passed"] * len(bad), where
        passed += "passed" in good
        failed += "failed" in bad
    assert passed
    assert failed >= passed
