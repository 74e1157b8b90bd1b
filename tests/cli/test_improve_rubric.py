"""`baton improve --rubric`: what is printed, written and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.improvements.test_sharpen import FILE, says, written_project

from baton.testing import llm_server

Run = Callable[..., Any]


def test_a_gain_is_told_with_calibration_before_and_after(
    baton: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with llm_server(says) as server:
        config, labels, traces = written_project(tmp_path, server)
        asked = ("improve", "--rubric", "polite", "--labels", labels, traces, "-c", config)
        outcome = baton(*asked, "--candidates", "1")
        assert outcome.code == 0, outcome.err
        assert "rubric:polite: proven" in outcome.out
        assert "+Sarcasm is rude" in outcome.out.replace("+ ", "+")
        for figure in ("on what is held out", "weighted kappa", "`rude` found"):
            assert figure in outcome.out
        assert (tmp_path / "polite.yaml").read_text("utf-8") == FILE
        outcome = baton(*asked, "--candidates", "1", "--apply", "--json")
        told = json.loads(outcome.out)
        assert told["written"] is True
        assert told["calibration"]["after"]["agreement"]["value"] == 1.0
    assert "Sarcasm is rude" in (tmp_path / "polite.yaml").read_text("utf-8")


def test_rubric_and_labels_belong_together(baton: Run, tmp_path: Path) -> None:
    outcome = baton("improve", "--rubric", "polite", tmp_path)
    assert outcome.code == 2
    assert "--rubric and --labels belong together" in outcome.err
    outcome = baton("improve", "--rubric", "polite", "--labels", "l.jsonl", "t", "--dry-run")
    assert outcome.code == 2


@pytest.mark.parametrize(
    "words", [("distill",), ("improve", "--labels", "l.jsonl", "t", "--rubric")], ids="di"
)
def test_a_misspelt_rubric_is_refused_with_the_nearest_name(
    baton: Run, words: tuple[str, ...]
) -> None:
    outcome = baton(*words, "groundednes")
    assert outcome.code == 2
    assert "--rubric: there is no rubric `groundednes`; did you mean" in outcome.err
    assert "`groundedness`" in outcome.err
    outcome = baton(*words, "nosuch")
    assert "--rubric: there is no rubric `nosuch`; `baton rubrics list` shows all" in outcome.err
    assert "evaluators[0]" not in outcome.err


def test_the_help_says_what_the_limit_of_cost_counts(baton: Run) -> None:
    told = " ".join(baton("improve", "--help").out.replace("│", " ").split())
    assert "The most that agents, judges and proposals may cost together, in USD; it ends" in told
    assert "The most that judging may cost" not in told
