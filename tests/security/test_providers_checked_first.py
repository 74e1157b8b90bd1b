"""With several providers, all are built and checked before the first one plays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
AGENT = "import pathlib\ndef reply(message):\n    pathlib.Path('played').touch()\n    return 'x'\n"


@pytest.mark.parametrize("backend", [[], ["--backend", "local", "--workers", "1"]])
@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("{type: python, target: 'agent.py:nowhere'}", "`agent.py` has no `nowhere`"),
        ("{type: python, target: 'missing:reply'}", "no module `missing`"),
        ("{type: adk_local, path: nowhere}", "nowhere"),
        ("{type: python, target: 'agent.py:reply', restart: x}", "restart"),
        ("{type: mock, hooks: {before_case: 'agent.py:nowhere'}}", "`agent.py` has no `nowhere`"),
    ],
)
def test_a_fault_in_the_second_provider_is_found_before_the_first_plays(
    baton: Run, tmp_path: Path, second: str, said: str, backend: list[str]
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: hi}]\n")
    first = "{type: python, target: 'agent.py:reply', agent_id: first}"
    (tmp_path / "c.yaml").write_text(f"dataset: cases.yaml\nproviders: [{first}, {second}]\n")
    outcome = baton("eval", "c.yaml", *backend)
    assert outcome.code == 2, outcome
    assert said in outcome.err
    assert not (tmp_path / "played").exists()
    assert not list(tmp_path.glob(".baton/evaluations/*"))


def test_cases_that_the_second_cannot_play_are_reported_before_the_first_plays(
    baton: Run, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(
        "import pathlib\ndef whole(case):\n    pathlib.Path('played').touch()\n"
        "def reply(message): return 'x'\n"
    )
    (tmp_path / "cases.yaml").write_text(
        "cases: [{id: a, turns: [{input: hi}, {input: ho, restart: true}]}]\n"
    )
    (tmp_path / "c.yaml").write_text(
        "dataset: cases.yaml\nproviders:\n- {type: python, target: 'agent.py:whole'}\n"
        "- {type: python, target: 'agent.py:reply'}\n"
    )
    outcome = baton("eval", "c.yaml")
    assert outcome.code == 2, outcome
    assert "a turn restarts the agents' server: `python` has no server" in outcome.err
    assert not (tmp_path / "played").exists()
