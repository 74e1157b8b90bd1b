"""Folders of Baton 0.1 are read, and give the same reports as then, apart from wording."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.conftest import ROOT, Baton

from baton.model import InputError
from baton.store import keep, read_evaluation

OLD = ROOT / "tests" / "data" / "evaluations_0.1"
NAMES = ("passing", "judged", "live")
KINDS = {"json": "json", "csv": "csv", "markdown": "md", "junit": "xml"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_reports_are_those_that_baton_0_1_made(
    baton: Baton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    monkeypatch.chdir(OLD)
    out = tmp_path / "report"
    words = ["--json"] if kind == "json" else [f"--{kind}", str(out)]
    printed = baton("report", name, *words).out
    text = printed.encode() if kind == "json" else out.read_bytes()
    assert text == (OLD / name / f"report.{KINDS[kind]}").read_bytes()


def test_scores_have_the_names_of_today() -> None:
    first = next(iter(read_evaluation(OLD / "judged")))
    score = next(score for score in first.scores if score.judge is not None)
    assert (score.evaluator, score.value, score.threshold) == ("dispatch_correctness", 0.0, 0.85)
    assert score.judge is not None
    assert score.judge.model == "scripted"


def test_a_trace_that_was_kept_is_still_there() -> None:
    first = next(iter(read_evaluation(OLD / "live")))
    assert first.trace is not None
    assert [run.agent for run in first.trace.turns[0].runs] == ["desk", "billing"]


def test_what_was_begun_by_0_1_is_not_resumed(tmp_path: Path) -> None:
    shutil.copytree(OLD / "live", tmp_path / "live")
    with pytest.raises(InputError, match="started by an older version of Baton"):
        keep(tmp_path / "live")


def test_a_folder_of_a_newer_baton_is_refused(tmp_path: Path) -> None:
    shutil.copytree(OLD / "passing", tmp_path / "newer")
    file = tmp_path / "newer" / "evaluation.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 99}))
    with pytest.raises(InputError, match="newer version of Baton"):
        read_evaluation(tmp_path / "newer")
