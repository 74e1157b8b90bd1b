"""A crash is never exit 1, which means "failed": it is exit 3 with one line, and --debug tells more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import ROOT, Baton
from tests.processes import run_baton

RUN = ROOT / "examples" / "adk" / "recordings" / "support_desk" / "refund.sse"
BACKEND = """
class Bad(Exception):
    def __str__(self):
        raise ValueError("no text")

def deep(number=0):
    return deep(number + 1)

class Backend:
    room = 1
    def __enter__(self): return self
    def __exit__(self, *about): ...
    def submit(self, number, job): ...
    def take(self):
        {action}
"""
EVALUATOR = """
class Bad(Exception):
    def __str__(self):
        raise ValueError("no text")

def judge(trace, case):
    {action}
"""


def crash(baton: Baton, folder: Path, action: str, *options: str) -> tuple[int, str]:
    """Let a backend of the user's own raise something in the middle of a command."""
    (folder / "mine.py").write_text(BACKEND.format(action=action))
    outcome = baton(*options, "score", RUN, "--backend", "mine.py:Backend")
    assert outcome.out == ""
    return outcome.code, outcome.err


@pytest.mark.parametrize(
    ("action", "says"),
    [
        ("raise RuntimeError('over')", "baton: internal error: RuntimeError: over; "),
        ("raise RuntimeError", "baton: internal error: RuntimeError; "),
        ("raise KeyError('a\\x1b[2J\\nb')", r"KeyError: 'a\x1b[2J\nb'; "),
        ("raise RuntimeError('a\\x1b[2J\\nb')", r"RuntimeError: a\u001b[2J b; "),
        ("raise RuntimeError('x' * 10**6)", f"RuntimeError: {'x' * 300}…; "),
        ("raise Bad", "internal error: Bad: its text is not available: ValueError; "),
        ("raise MemoryError", "internal error: MemoryError; "),
        ("deep()", "internal error: RecursionError: maximum recursion depth exceeded"),
        ("raise ExceptionGroup('two', [KeyError('one'), KeyError('two')])", "KeyError: 'one'; "),
        ("import asyncio; raise asyncio.CancelledError", "internal error: CancelledError; "),
        ("import sys; sys.exit(0)", "ended the process: sys.exit(0)\n"),
        ("import sys; sys.exit('bye')", "ended the process: sys.exit('bye')\n"),
    ],
)
def test_whatever_is_raised_is_one_line_and_exit_3(
    baton: Baton, tmp_path: Path, action: str, says: str
) -> None:
    code, err = crash(baton, tmp_path, action)
    assert code == 3
    assert says in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_crash_says_how_to_report_it(baton: Baton, tmp_path: Path) -> None:
    _, err = crash(baton, tmp_path, "raise RuntimeError('over')")
    assert "--debug" in err
    assert "report" in err


@pytest.mark.parametrize("place", ["before", "after", "last"])
def test_debug_shows_the_traceback_wherever_it_is_given(
    baton: Baton, tmp_path: Path, place: str
) -> None:
    (tmp_path / "mine.py").write_text(BACKEND.format(action="raise RuntimeError('over')"))
    rest = [RUN, "--backend", "mine.py:Backend"]
    line = {
        "before": ["--debug", "score", *rest],
        "after": ["score", "--debug", *rest],
        "last": ["score", *rest, "--debug"],
    }[place]
    outcome = baton(*line)
    assert outcome.code == 3
    assert "Traceback (most recent call last)" in outcome.err
    assert 'mine.py", line' in outcome.err
    assert outcome.err.endswith("baton: internal error: RuntimeError: over\n")


def test_debug_changes_nothing_where_nothing_crashes(baton: Baton) -> None:
    assert baton("--debug", "show", RUN).code == 0
    wrong = baton("--debug", "show", "gone.json")
    assert wrong.code == 2
    assert wrong.err == "baton: gone.json: no such file or folder\n"
    assert baton("--debug", "--version").code == 0


def test_debug_is_documented_in_the_help(baton: Baton) -> None:
    assert "--debug" in baton("--help").out


@pytest.mark.parametrize(
    ("action", "jobs"),
    [
        ("raise Bad", "1"),
        ("import sys; sys.exit(0)", "1"),
        ("import sys; sys.exit(1)", "1"),
        pytest.param("raise Bad", "2", marks=pytest.mark.heavy),
        pytest.param("import sys; sys.exit(0)", "2", marks=pytest.mark.heavy),
        ("import os; os._exit(0)", "2"),
    ],
)
def test_a_crash_of_a_worker_is_exit_3_as_well(tmp_path: Path, jobs: str, action: str) -> None:
    (tmp_path / "own.py").write_text(EVALUATOR.format(action=action))
    (tmp_path / "baton.yaml").write_text("evaluators:\n  - {type: 'own.py:judge', name: mine}\n")
    words = ("score", RUN, "--config", "baton.yaml", "--jobs", jobs)
    done = run_baton(*words, folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1


def test_python_m_baton_crashes_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BACKEND.format(action="deep()"))
    command = [sys.executable, "-m", "baton", "score", str(RUN), "--backend", "mine.py:Backend"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("baton: internal error: RecursionError: ")
    assert done.stderr.count("\n") == 1


def test_ctrl_c_keeps_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        BACKEND.format(action="open('there', 'w').close(); import time; time.sleep(60)")
    )
    command = [sys.executable, "-m", "baton", "score", str(RUN), "--backend", "mine.py:Backend"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 55
    while not (tmp_path / "there").exists() and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=55)
    assert process.returncode == 130
    assert err == "baton: interrupted\n"


def test_a_terminal_of_few_characters_ends_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "baton", "show", str(RUN)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u2192" in done.stdout  # the arrow of a dispatch


def test_closed_streams_end_nothing(tmp_path: Path) -> None:
    command = f"{sys.executable} -m baton show {RUN} >&- 2>&-"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False, timeout=60)
    assert done.returncode == 0
