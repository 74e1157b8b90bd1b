"""The terminal says why an evaluator had nothing to score."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import ROOT, Baton

PARALLEL = ROOT / "tests" / "data" / "otel" / "langgraph" / "subagents_parallel.json"
SCOPE = "– dispatch_scope skipped: only the tools offered to `north_scout` are recorded"


def test_what_was_skipped_throughout_says_why_once(baton: Baton, tmp_path: Path) -> None:
    outcome = baton("score", PARALLEL)
    lines = [line for line in outcome.out.splitlines() if line.startswith("– ")]
    assert [line for line in lines if line.startswith(SCOPE)] != []
    assert not any("handoff_loops" in line for line in lines)
    definitions = tmp_path / "agents.yaml"
    definitions.write_text("agents: {north_scout: {tools: [weather]}}\n")
    with_one = baton("score", PARALLEL, "--agents", definitions)
    assert "– dispatch_scope" not in with_one.out


def test_what_is_a_problem_already_is_not_said_again(baton: Baton) -> None:
    outcome = baton("score", PARALLEL, "-e", "dispatch_scope")
    assert outcome.code == 3
    assert outcome.out.count("only the tools offered to `north_scout`") == 1 + outcome.out.count(
        "dispatch1: "
    )
