"""Files that are as they should be give no warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import ROOT

from .conftest import Baton, Check

CLEAN = ROOT / "tests" / "data" / "lint" / "clean"
FILES = sorted(path for path in CLEAN.rglob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_clean_file_gives_no_warning(check: Check, path: Path) -> None:
    assert check(path) == []


def test_clean_files_give_no_warning_together(baton: Baton) -> None:
    outcome = baton("check", CLEAN)
    assert "warning" not in outcome.err
    assert outcome.out.count("dataset (adk)") == 5


@pytest.mark.parametrize(
    ("file", "old", "new", "rule"),
    [
        ("orders.test.json", '"id": "adk-77"', '"id": null', "internal-tool"),
        ("orders.test.json", '"tool_uses": [],', "", "bare-turn"),
        ("orders.test.json", '"open": 2.5', '"open": "2.5"', "state-type"),
        ("recorded.evalset.json", '"customer": "Ana"', "", "instruction-variable"),
        ("basic.evalset.json", '"app_name": "desk"', '"app_name": "desks"', "app-name"),
        ("eval_config.json", '"rubrics"', '"Rubrics"', "no-rubrics"),
        ("test_config.json", "", "", ""),
    ],
)
def test_one_change_makes_one_warning(
    check: Check, tmp_path: Path, file: str, old: str, new: str, rule: str
) -> None:
    for path in CLEAN.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            copy = tmp_path / "clean" / path.relative_to(CLEAN)
            copy.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text(encoding="utf-8")
            copy.write_text(text.replace(old, new) if path.name == file else text)
    assert [w.rule for w in check("clean")] == [rule] * bool(rule)


def test_the_examples_give_no_warning(baton: Baton) -> None:
    assert "warning" not in baton("check", ROOT / "examples").err


def test_files_with_faults_stop_no_rule(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"eval_cases": [{"eval_id": 3, "conversation": []}]}')
    (tmp_path / "criteria.yaml").write_text("criteria: {response_match_score: 1}\n")
    (tmp_path / "override.yaml").write_text(
        "cases: [{id: a, input: hi, agents: [x], evaluators: {agent_chain: {wrong: 1}}}]\n"
    )
    criteria = tmp_path / "test_config.json"
    criteria.write_text(
        json.dumps({"criteria": {"rubric_based_tool_use_quality_v1": 1, "nonsense": 1}})
    )
    outcome = baton("check", tmp_path)
    assert outcome.code == 2
    warnings = [line for line in outcome.err.splitlines() if line.startswith("warning")]
    assert len(warnings) == 1
    assert warnings[0].endswith("[no-rubrics]")
    for file in (
        "broken.json:1: ",
        "criteria.yaml:1: ",
        "override.yaml:1: ",
        "test_config.json:1: ",
    ):
        assert f"baton: {tmp_path / file}" in outcome.err
