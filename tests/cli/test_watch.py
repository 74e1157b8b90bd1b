"""`baton watch`: what a changed file affects is evaluated again, and nothing else."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from baton.session.watch import affected

AGENT = 'def answer(message):\n    return {"agents": ["router"], "output": "ok"}\n'
CASES = """cases:
  - {id: one, input: hi, agents: [router]}
  - {id: two, input: ho, agents: [router]}
"""
CONFIG = """dataset: cases.yaml
providers: [{type: python, target: "desk.py:answer"}]
reporters: [{type: json, output_path: report.yaml}]
"""
Run = Callable[..., Any]
Until = Callable[[str], list[str]]


@pytest.fixture
def options() -> list[str]:
    """What `baton watch` is called with."""
    return ["--trust", "."]


@pytest.fixture
def until(tmp_path: Path, options: list[str]) -> Iterator[Until]:
    """Watch a folder; return what waits for a line, and gives all lines up to it."""
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "cases.yaml").write_text(CASES)
    (tmp_path / "baton.yaml").write_text(CONFIG)
    (tmp_path / "own.yaml").write_text(CONFIG)
    process = subprocess.Popen(
        [sys.executable, "-m", "baton", "watch", *options],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    lines: queue.Queue[str] = queue.Queue()
    said = process.stdout

    def read() -> None:
        for line in said:
            lines.put(line)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()

    def wait(text: str) -> list[str]:
        seen: list[str] = []
        while not seen or text not in seen[-1]:
            seen.append(lines.get(timeout=60))
        return seen

    yield wait
    process.send_signal(signal.SIGINT)
    # The code of the last evaluation that ended: 2 if that was the one with a misspelt key.
    assert process.wait(timeout=60) in (0, 1, 2)
    reader.join(timeout=60)
    said.close()


@pytest.mark.heavy
def test_a_changed_case_is_played_alone_and_changed_agents_play_all(
    until: Until, tmp_path: Path
) -> None:
    assert "2 of 2: 2 passed" in "".join(until("watching"))
    cases = tmp_path / "cases.yaml"
    cases.write_text(CASES.replace("input: ho", "input: hey"))
    assert "1 of 1: 1 passed" in "".join(until("passed   "))
    (tmp_path / "desk.py").write_text(AGENT.replace("router", "ruoter"))
    assert "2 of 2: 2 failed" in "".join(until("failed   "))
    (tmp_path / "notes.json").write_text("{}")
    cases.write_text("cases:\n  - {id: one, input: hi, agnets: [router]}\n")
    said = "".join(until("agents"))
    assert "notes.json" not in said
    assert "cases.yaml:2" in said


@pytest.mark.parametrize(
    "options",
    [
        ["desk.py:answer", "-c", "own.yaml", "-k", "two"],
        pytest.param(["-c", "own.yaml", "-k", "two"], marks=pytest.mark.heavy),
    ],
)
def test_a_config_that_is_named_and_the_cases_that_are_chosen_are_watched(
    until: Until, tmp_path: Path
) -> None:
    assert "1 of 1: 1 passed" in "".join(until("watching"))
    cases = tmp_path / "cases.yaml"
    cases.write_text(CASES.replace("input: hi", "input: hey"))  # no case that is chosen
    until("changed: cases.yaml")
    cases.write_text(CASES.replace("input: ho", "input: hey"))
    assert "1 of 1: 1 passed" in "".join(until("passed   "))
    own = tmp_path / "own.yaml"
    own.write_text(own.read_text() + "name: renamed\n")
    assert "changed: own.yaml" in "".join(until("passed   "))


def test_a_malformed_expression_ends_the_watch_at_once(baton: Run, tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "cases.yaml").write_text(CASES)
    outcome = baton("watch", "desk.py:answer", "cases.yaml", "-k", "(two")
    assert (outcome.code, "`)` is missing" in outcome.err) == (2, True)


ONE = {"a": ("f.yaml", "1"), "b": ("f.yaml", "2")}


def test_cases_that_did_not_change_are_not_played() -> None:
    assert affected(ONE, ONE) == []
    assert affected(ONE, {"a": ("f.yaml", "1")}) == []
    assert affected(ONE, {**ONE, "b": ("f.yaml", "3"), "c": ("f.yaml", "4")}) == ["f.yaml:b,c"]


def test_where_cases_cannot_be_told_apart_all_are_played() -> None:
    assert affected(ONE, None) is None
    assert affected(None, ONE) is None
    assert affected(ONE, {**ONE, "x,y": ("f.yaml", "5")}) is None
    assert affected(ONE, {**ONE, "c": ("g.yaml", "6")}) == ["g.yaml"]
