"""What `baton show` and `baton score` make of Claude's recordings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
DATA = Path(__file__).parent.parent / "data" / "claude" / "current"


def test_a_refused_tool_is_marked(baton: Run) -> None:
    lines = baton("show", DATA / "03_scope_bleed").out.splitlines()
    (edit,) = [line for line in lines if "Edit(" in line]
    assert "refused by runtime" in edit


@pytest.mark.parametrize("recording", ["messages.jsonl", "session"])
def test_what_follows_the_notification_is_what_was_made_of_the_answer(
    baton: Run, recording: str
) -> None:
    file = DATA / "08_background_dispatch" / recording
    out = baton("show", file, "--dispatch", "dispatch1").out
    before, _, after = out.partition("after")
    assert "Sending this to research." in before
    assert "retry() is defined in src/retry.py, line 3." in after
    assert "The research agent is working on it." not in after.partition("runs")[0]


def test_definitions_in_a_folder_say_what_an_agent_may_use(baton: Run, tmp_path: Path) -> None:
    agents = tmp_path / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "v.md").write_text("---\nname: validator-agent\ntools: Read\n---\nCheck.\n")
    out = baton("show", DATA / "03_scope_bleed" / "messages.jsonl", "--agents", tmp_path, "--json")
    assert '"tools_allowed":["Read"],"tools_source":"definition"' in out.out
    assert out.code == 0


def test_files_that_belong_to_a_session_are_not_called_traces_of_their_own(baton: Run) -> None:
    outcome = baton("show", DATA / "11_nested" / "session")
    assert outcome.code == 0
    assert outcome.err == ""
