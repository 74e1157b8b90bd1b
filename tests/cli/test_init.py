"""`baton init`: what it writes passes at once, and nothing is overwritten."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.conftest import Baton

WITH_FLAGS = ["--agent", "sample", "--message", "Please refund order 42."]


@pytest.mark.parametrize(
    ("ci", "workflow"),
    [("github", ".github/workflows/baton.yml"), ("gitlab", ".gitlab-ci.yml"), ("none", None)],
)
def test_what_it_writes_passes_at_once(
    baton: Baton, tmp_path: Path, ci: str, workflow: str | None
) -> None:
    written = baton("init", *WITH_FLAGS, "--ci", ci)
    assert written.code == 0, written.err
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert files - {"desk.py"} == {"baton.yaml", "evals/first.yaml"} | (
        {workflow} if workflow else set()
    )
    assert baton("check", ".").code == 0
    outcome = baton("eval")
    assert outcome.code == 0, outcome.err
    assert "agent_chain" in outcome.out


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ('name, specialist = "billing"', 'name, specialist = "forecasts"', "billing"),
    ],
)
def test_a_fault_in_the_agents_turns_it_red_and_names_the_dispatch(
    baton: Baton, tmp_path: Path, right: str, wrong: str, says: str
) -> None:
    assert baton("init", *WITH_FLAGS, "--ci", "none").code == 0
    desk = tmp_path / "desk.py"
    text = desk.read_text()
    assert right in text
    desk.write_text(text.replace(right, wrong))
    # A process of its own: in this one the module is loaded as it was.
    done = subprocess.run(
        [sys.executable, "-m", "baton", "eval"], cwd=tmp_path, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert says in done.stdout


@pytest.mark.parametrize("name", [".github/workflows/baton.yml", ".gitlab-ci.yml"])
def test_the_workflow_runs_a_command_that_passes(baton: Baton, tmp_path: Path, name: str) -> None:
    ci = "github" if "github" in name else "gitlab"
    assert baton("init", *WITH_FLAGS, "--ci", ci).code == 0
    workflow = yaml.safe_load((tmp_path / name).read_text())
    steps = workflow["jobs"]["evaluate"]["steps"] if ci == "github" else workflow["baton"]["script"]
    commands = [step.get("run", "") if isinstance(step, dict) else step for step in steps]
    (command,) = [line for line in commands if line.startswith("baton ")]
    assert baton(*command.split()[1:]).code == 0
    assert any("pip install 'baton-evals'" in line for line in commands)


def test_agents_of_ones_own_are_asked_and_expected_to_do_the_same(
    baton: Baton, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        'def reply(message):\n    return {"agents": ["boss", "clerk"], "output": message}\n'
    )
    assert baton("init", "--agent", "mine.py:reply", "--message", "hi", "--ci", "none").code == 0
    (case,) = yaml.safe_load((tmp_path / "evals" / "first.yaml").read_text())["cases"]
    assert (case["input"], case["agents"]) == ("hi", ["boss", "clerk"])
    assert "response" not in case
    assert baton("eval").code == 0


def test_files_that_are_there_stay_unless_force_is_given(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "baton.yaml").write_text("mine: yes\n")
    refused = baton("init", *WITH_FLAGS, "--ci", "none")
    assert refused.code == 2
    assert "baton.yaml: is there already" in refused.err
    assert (tmp_path / "baton.yaml").read_text() == "mine: yes\n"
    assert not (tmp_path / "evals").exists()
    assert baton("init", *WITH_FLAGS, "--ci", "none", "--force").code == 0


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([], "not a terminal: give --agent"),
        (["--agent", "sample"], "give --message"),
        (["--agent", "nowhere", "--message", "x", "--ci", "none"], "`nowhere` is not an agent"),
        ([*WITH_FLAGS, "--ci", "jenkins"], "known: github, gitlab, none"),
        (["--agent", "", "--message", "x", "--ci", "none"], "--agent is empty"),
        (["--agent", "gone.py:reply", "--message", "x", "--ci", "none"], "gone"),
    ],
)
def test_bad_answers_are_one_message_and_write_nothing(
    baton: Baton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], says: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    outcome = baton("init", *flags)
    assert outcome.code == 2
    assert says in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_agents_that_fail_when_asked_are_told_with_their_error(
    baton: Baton, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("def reply(message):\n    raise ValueError('no key')\n")
    outcome = baton("init", "--agent", "mine.py:reply", "--message", "x", "--ci", "none")
    assert outcome.code == 2
    assert "no key" in outcome.err
    assert not (tmp_path / "baton.yaml").exists()


def test_in_a_terminal_it_asks_three_questions(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"sample\n\nnone\n")
    done = subprocess.run(
        [sys.executable, "-m", "baton", "init"],
        cwd=tmp_path, stdin=theirs, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("]: ") == 3
    assert "Please refund order 42." in (tmp_path / "evals" / "first.yaml").read_text()
