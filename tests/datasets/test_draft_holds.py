"""A drafted case passes with the run it was drafted from, whatever framework that is of."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import ROOT

import baton
from baton.datasets.draft import draft_yaml
from baton.model import InputError

OTEL = ROOT / "tests" / "data" / "otel"
FRAMEWORKS = sorted(path.name for path in OTEL.iterdir() if path.is_dir())
CHECKED = ["agent_chain", "dispatch_routing", "tool_calls", "response"]


def traces(framework: str) -> list[baton.Trace]:
    found = []
    for file in sorted((OTEL / framework).rglob("*")):
        if file.is_file() and "truth" not in file.name:
            try:
                found += baton.load_traces(file)
            except InputError:
                continue  # other tests are about what is refused
    return found


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_run_meets_the_case_that_was_drafted_from_it(framework: str, tmp_path: Path) -> None:
    recorded = traces(framework)
    assert recorded
    path = tmp_path / "case.yaml"
    for trace in recorded:
        path.write_text(draft_yaml([trace]), encoding="utf-8")
        (result,) = baton.score([trace], path, evaluators=CHECKED)
        failed = [score.reason for score in result.scores if score.status == "failed"]
        assert failed == [], trace.source.location
