"""`baton improve --rubric`: what is printed, written and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.improvements.test_improve_rubric import FILE, says, written_project

from baton.testing import llm_server

Run = Callable[..., Any]


def test_a_gain_is_reported_with_calibration_before_and_after(
    baton: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with llm_server(says) as server:
        config, labels, traces = written_project(tmp_path, server)
        asked: tuple[Any, ...] = ("improve", "--rubric", "polite", "--labels", labels, traces)
        asked = (*asked, "-c", config, "--candidates", "1")
        outcome = baton(*asked, "--dry-run")
        assert outcome.code == 0, outcome.err
        assert "18 train, 18 select and 24 held-out labelled things" in outcome.out
        assert server.requests == []
        outcome = baton(*asked, "--html", "page.html")
        assert outcome.code == 0, outcome.err
        assert "rubric:polite: proven" in outcome.out
        assert "+Sarcasm is rude" in outcome.out.replace("+ ", "+")
        for figure in ("on what is held out", "weighted kappa", "`rude` found"):
            assert figure in outcome.out
        assert "verdicts" in outcome.out.splitlines()[-2]
        page = (tmp_path / "page.html").read_text("utf-8")
        assert "How far the judge agrees with people on what is held out" in page
        assert "rubric:polite" in page
        assert (tmp_path / "polite.yaml").read_text("utf-8") == FILE
        outcome = baton(*asked, "--apply", "--json")
        told = json.loads(outcome.out)
        assert told["studies"][0]["calibration"]["after"]["agreement"]["value"] == 1.0
        assert "written:" in outcome.err
        assert "change `version:` as well" in outcome.err
    assert "Sarcasm is rude" in (tmp_path / "polite.yaml").read_text("utf-8")


def test_a_model_that_is_down_ends_with_3_and_is_resumed(
    baton: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with llm_server(says) as server:
        config, labels, traces = written_project(tmp_path, server, cache=False, retries=0)
        asked: tuple[Any, ...] = ("improve", "--rubric", "polite", "--labels", labels, traces)
        asked = (*asked, "-c", config, "--candidates", "1")
        outcome = baton(*asked, "--max-judge-calls", "30")
        assert outcome.code == 3, outcome.err
        assert "stopped: budget" in outcome.out
        (folder,) = (tmp_path / ".baton" / "improvements").iterdir()
        assert f"add --resume {folder.relative_to(tmp_path)}" in outcome.err
        assert len(server.requests) == 30
        server.clear()
        outcome = baton(*asked, "--resume", folder)
        assert outcome.code == 0, outcome.err
        asked_again = len(server.requests)
        server.clear()
        assert baton(*asked).code == 0
        assert asked_again == len(server.requests) - 30


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--rubric and --labels belong together"),
        (("--labels", "l.jsonl", "--aim", "cost"), "--aim cannot be used with --rubric"),
        (("--labels", "l.jsonl", "--repeat", "2"), "--repeat cannot be used with --rubric"),
        (("--labels", "l.jsonl", "--redact"), "--redact cannot be used with --rubric"),
        (
            ("--labels", "l.jsonl", "--dry-run", "--html", "a"),
            "--html cannot be used with --dry-run",
        ),
        (("--labels", "l.jsonl", "--apply"), "comes with Baton"),
        (("--labels", "l.jsonl", "--branch", "b"), "comes with Baton"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    baton: Run, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    outcome = baton("improve", "--rubric", "scope_fidelity", tmp_path, *words)
    assert outcome.code == 2
    assert message in outcome.err


@pytest.mark.parametrize(
    "words", [("distill",), ("improve", "--labels", "l.jsonl", "t", "--rubric")], ids="di"
)
def test_a_misspelt_rubric_is_refused_with_a_similar_name(
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
    assert (
        "The most that agents, judges and proposals may cost together, in USD; the search" in told
    )
    assert "The maximum cost of judging" not in told
