"""What reports name of a failure, and what cases state that nothing checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import ROOT, Baton, report_of

import baton as package

OVERSTEPPED = ROOT / "tests" / "data" / "claude" / "current" / "03_scope_bleed" / "session"
REPORTS = ("markdown", "junit", "github")


def report(baton: Baton, folder: Path, name: str) -> str:
    if name == "github":
        outcome = baton("report", folder, "--github", "--json")
        return str(outcome.err)
    if name == "terminal":
        return str(baton("report", folder).out)
    return report_of(baton, folder, name)


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("stored", [True, False])
def test_a_failure_names_agents_dispatch_and_step(
    baton: Baton, tmp_path: Path, name: str, stored: bool
) -> None:
    folder = tmp_path / "stored"
    if stored:
        baton("score", OVERSTEPPED, "-e", "dispatch_scope", "--out", tmp_path / "out")
        (folder,) = (tmp_path / "out").iterdir()
    else:
        package.score(OVERSTEPPED, evaluators=["dispatch_scope"]).save(folder)
    text = report(baton, folder, name)
    assert "dispatch1 (main → " in text
    assert "step " in text


UNCHECKED = (
    "stated but not checked, because no evaluator for it is selected: `response` (`response`)"
)


@pytest.mark.parametrize("name", [*REPORTS, "html", "json", "terminal"])
def test_what_is_stated_and_not_checked_is_in_every_report(
    baton: Baton, tmp_path: Path, name: str
) -> None:
    trace = package.load_traces(OVERSTEPPED)[0]
    turn = trace.turns[0]
    assert turn.input is not None
    case = {"id": "c", "input": turn.input.text, "agents": ["main"], "response": "Done."}
    (tmp_path / "cases.yaml").write_text(json.dumps([case]))
    words = ("score", OVERSTEPPED, "-d", tmp_path / "cases.yaml", "-e", "agent_chain")
    baton(*words, "--out", tmp_path / "out")
    (folder,) = (tmp_path / "out").iterdir()
    assert UNCHECKED.replace("`", "") in report(baton, folder, name).replace("`", "")
