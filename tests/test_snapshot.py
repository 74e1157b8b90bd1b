"""The script that compares what two versions of Baton make of the same recordings."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import snapshot

RECORDING = Path("tests/records/claude_two_dispatches.json")
COMMAND = (sys.executable, "-m", "tests.snapshot", "--against", "HEAD")


def git(*words: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The source in a repository of its own, with one recording and one commit."""
    compiled = shutil.ignore_patterns("__pycache__")
    shutil.copytree(snapshot.ROOT / "src", tmp_path / "src", ignore=compiled)
    for file in (Path("tests/snapshot.py"), RECORDING):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(snapshot.ROOT / file, tmp_path / file)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "src")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "before")
    yield tmp_path / "src" / "baton"
    assert len(git("worktree", "list").splitlines()) == 1


def compared() -> tuple[int, list[str]]:
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.mark.heavy
def test_a_changed_verdict_is_printed_with_its_recording_and_is_an_error(source: Path) -> None:
    assert compared() == (0, ["1 recording, 0 differences"])
    file = source / "evaluators" / "duplicate_work.py"
    file.write_text(file.read_text().replace("    type =", '    version = "9"\n    type =', 1))
    verdict = f"{RECORDING}.verdicts.duplicate_work[0].scores[0].version: '1' -> '9'"
    assert compared() == (1, [verdict, "1 recording, 1 difference"])


def test_an_interrupted_comparison_removes_its_worktree(source: Path) -> None:
    (source / "__init__.py").write_text("print('started', flush=True)\nimport time\ntime.sleep(99)")
    git("commit", "-qam", "blocks")
    git("checkout", "-q", "HEAD~1", "--", ".")
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(30) == 130
