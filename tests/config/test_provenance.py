"""What an evaluation records of what it judged."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton import load_dataset
from baton.config.git import git_state
from baton.model import Case, Content, Dataset, ExpectedTurn

Run = Callable[..., Any]
HEAD = "cases:"
A = "  - {id: a, input: hi, agents: [x]}"
B = "  - {id: b, input: ho, agents: [y]}"
CASES = f"{HEAD}\n{A}\n{B}\n"


def written(folder: Path, text: str, name: str = "cases.yaml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return load_dataset(folder / name).content_hash()


def test_the_hash_of_a_dataset_is_of_what_it_says_not_of_how_it_is_written(tmp_path: Path) -> None:
    first = written(tmp_path, CASES)
    swapped = "# other lines\n" + "\n".join([HEAD, B, A])
    assert written(tmp_path, swapped, "other.yaml") == first
    assert written(tmp_path, CASES.replace("ho", "hu")) != first


def test_some_cases_of_a_dataset_are_another_dataset(tmp_path: Path) -> None:
    first = written(tmp_path, CASES)
    assert load_dataset(f"{tmp_path / 'cases.yaml'}:a").content_hash() != first


def test_a_case_that_a_program_made_has_a_hash_whatever_is_in_it() -> None:
    turn = ExpectedTurn(input=Content(text="hi"))
    assert len(Dataset([Case(id="a", turns=[turn], metadata={"o": object})]).content_hash()) == 16


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def test_the_commit_is_told_and_whether_files_were_changed(tmp_path: Path) -> None:
    assert git_state(tmp_path / "nowhere") is None
    git(tmp_path, "init", "-q")
    assert git_state(tmp_path) is None
    (tmp_path / "prompt.md").write_text("Be kind.")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    state = git_state(tmp_path)
    assert state is not None
    assert (len(state.commit), state.dirty) == (40, False)
    (tmp_path / "prompt.md").write_text("Be brief.")
    changed = git_state(tmp_path)
    assert changed is not None
    assert changed.dirty


@pytest.fixture
def header(baton: Run, tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Play canned answers by a config, and return what the folder says of it."""

    def play(config: str) -> dict[str, Any]:
        written(tmp_path, CASES)
        (tmp_path / "baton.yaml").write_text(config, encoding="utf-8")
        outcome = baton("eval", "baton.yaml", "--name", "one")
        assert outcome.code in (0, 1, 3), outcome.err
        folder = max((tmp_path / ".baton" / "evaluations").iterdir())
        found: dict[str, Any] = json.loads((folder / "evaluation.json").read_text())
        return found

    return play


CONFIG = """
dataset: cases.yaml
providers: [{type: mock, agent_metadata: {api_key: hidden}}]
evaluators: [agent_chain]
"""


def test_a_live_evaluation_tells_dataset_config_evaluators_and_provider(
    header: Callable[[str], dict[str, Any]],
) -> None:
    found = header(CONFIG)
    told = found["provenance"]
    assert told["dataset"]["cases"] == 2
    assert told["evaluators"] == {"agent_chain": "1"}
    assert told["provider"] == {"mock": "not known"}
    assert len(told["config"]) == 16
    assert "hidden" not in json.dumps(found)


def test_thresholds_for_another_dataset_do_not_start(
    baton: Run, header: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    gate = "gate: {thresholds: [pass_rate >= 0], for: {dataset: 0123456789abcdef}}\n"
    header(CONFIG)
    (tmp_path / "baton.yaml").write_text(CONFIG + gate, encoding="utf-8")
    outcome = baton("eval", "baton.yaml")
    assert outcome.code == 2
    assert "the thresholds are not for this dataset: they are for 0123456789abcdef" in outcome.err
