"""The content version of recordings that are scored without cases."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT, Baton

import baton as package
from baton.model import DatasetHash

CLAUDE = ROOT / "tests" / "data" / "claude" / "current"
SETS = [CLAUDE / "01_correct_dispatch" / "session", CLAUDE / "10_parallel" / "session"]


def version(*paths: Path) -> DatasetHash:
    evaluation = package.score(paths, evaluators=["handoff_loops"])
    made = evaluation.header.provenance
    assert made is not None
    assert made.recordings is not None
    return made.recordings


def test_the_version_of_a_set_is_that_of_its_content_in_any_order_and_place(
    tmp_path: Path,
) -> None:
    one = version(*SETS)
    assert one.cases == 2
    shutil.copytree(SETS[0], tmp_path / "moved")
    assert version(SETS[1], tmp_path / "moved") == one
    assert version(SETS[0]).hash != one.hash


def test_a_recorded_set_has_another_version_when_its_content_changes_and_only_then(
    tmp_path: Path,
) -> None:
    recorded = tmp_path / "set" / "desk.json"
    shutil.copytree(ROOT / "tests" / "records", recorded.parent)
    shutil.copy(recorded.parent / "claude_two_dispatches.json", recorded)
    text = recorded.read_text()
    before = version(recorded.parent)
    recorded.write_text(text.replace("refactor", "Refactor", 1))
    assert version(recorded.parent).hash != before.hash
    recorded.write_text(json.dumps(json.loads(text), indent=8))
    assert version(recorded.parent) == before


def test_cases_have_a_version_of_their_own() -> None:
    trace = package.load_traces(SETS[0])[0]
    turn = trace.turns[0].input
    assert turn is not None
    cases = [package.Case(id=trace.id, turns=[])]
    made = package.score(trace, cases, ["handoff_loops"]).header.provenance
    assert made is not None
    assert (made.dataset is not None, made.recordings) == (True, None)


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_thresholds_are_bound_to_the_version_of_a_set(
    baton: Baton, tmp_path: Path, jobs: tuple[str, ...]
) -> None:
    def run(hash_: str) -> Any:
        gate = {"thresholds": ["handoff_loops >= 0"], "for": {"recordings": hash_}}
        (tmp_path / "baton.yaml").write_text(
            json.dumps({"evaluators": ["handoff_loops"], "gate": gate})
        )
        return baton("score", *SETS, "-c", tmp_path / "baton.yaml", *jobs)

    made = version(*SETS)
    assert run(made.hash).code == 0
    other = run("0" * 16)
    assert other.code == 3
    assert f"recordings: they are for {'0' * 16}, but this is {made.hash}" in other.out
