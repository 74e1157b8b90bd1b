"""Several providers side by side: each case is played with each, one evaluation a variant."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
AGENT = """
import pathlib
def good(message):
    return {"output": "done", "agents": ["desk"]}
def bad(message):
    if pathlib.Path("broken").exists():
        raise RuntimeError("no model")
    return {"output": "done", "agents": ["other"]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A config with two agents."""
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": "hi", "agents": ["desk"]}\n' * 1)
    (tmp_path / "baton.yaml").write_text(
        "providers:\n- {type: python, target: 'agent.py:good', agent_id: new}\n"
        "- {type: python, target: 'agent.py:bad'}\n"
        "dataset: cases.jsonl\nevaluators: [agent_chain]\nname: desk\n"
    )
    return tmp_path


def headers(folder: Path) -> dict[str, dict[str, Any]]:
    found = [
        json.loads(file.read_text())
        for file in (folder / ".baton" / "evaluations").glob("*/evaluation.json")
    ]
    return {each["variant"]: each for each in found}


def test_every_variant_gets_a_folder_and_the_worst_one_decides(baton: Run, folder: Path) -> None:
    outcome = baton("eval", "--html", "report.html")
    assert outcome.code == 1
    found = headers(folder)
    assert {name: each["status"] for name, each in found.items()} == {
        "new": "passed",
        "python": "failed",
    }
    assert found["new"]["name"] == "desk-new"
    assert "new: passed (1 passed)" in outcome.out
    assert "python: failed (1 failed)" in outcome.out
    assert "side by side: baton compare" in outcome.err
    assert (folder / "report-new.html").exists()
    assert (folder / "report-python.html").exists()


def test_json_is_a_list_of_the_reports(baton: Run, folder: Path) -> None:
    outcome = baton("eval", "--json")
    assert [each["status"] for each in json.loads(outcome.out)] == ["passed", "failed"]


def test_one_variant_can_be_chosen(baton: Run, folder: Path) -> None:
    assert baton("eval", "--variant", "new").code == 0
    assert list(headers(folder)) == ["new"]
    outcome = baton("eval", "--variant", "nwe")
    assert outcome.code == 2
    assert "did you mean `new`" in outcome.err


def test_a_variant_is_resumed_by_itself(baton: Run, folder: Path) -> None:
    (folder / "broken").touch()
    assert baton("eval").code == 3
    (folder / "broken").unlink()
    place = folder / ".baton" / "evaluations" / headers(folder)["python"]["id"]
    assert baton("eval", "--resume", str(place)).code == 1
    assert len(headers(folder)) == 2
