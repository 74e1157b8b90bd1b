"""A closed terminal ends a command as SIGTERM does, and a full disk is told with its file."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT, Baton

Start = Callable[..., subprocess.Popen[str]]
AGENT = """
import asyncio, os
async def answer(message):
    try:
        await asyncio.sleep(0 if message.startswith("quick") else 60)
    finally:
        if message.startswith("slow"):
            await asyncio.sleep(0.05)
            open(message.replace(" ", "") + ".clean", "w").close()
    return {"output": "done", "agents": ["desk"]}
async def in_a_process(message):
    open(f"{os.getpid()}.worker", "w").close()
    await asyncio.sleep(60)

def slowly(trace, case):
    import time
    open(f"{os.getpid()}.job", "w").close()
    time.sleep(0.3)
    return True
"""
TRACE = {"schema_version": 1, "source": {"format": "test"}, "turns": [{"id": "t"}]}


def status_of(folder: Path) -> str:
    """Return how an evaluation ended, as its folder says."""
    return str(json.loads((folder / "evaluation.json").read_text("utf-8"))["status"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    messages = ["quick"] * 3 + ["slow"] * 2
    cases = [{"id": f"c{n}", "input": f"{word} {n}"} for n, word in enumerate(messages)]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)) + "\n")
    (tmp_path / "runs").mkdir()
    for name in "ab":
        # Together more than the 1 MB that a process is given at once.
        padded = {**TRACE, "attributes": {"padding": "x" * 20_000}}
        lines = (json.dumps({**padded, "id": f"{name}{n}"}) for n in range(40))
        (tmp_path / "runs" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "slow.yaml").write_text("evaluators: [{type: 'agent:slowly'}]\n")
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(*words: str, **more: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "baton", *words]
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{folder}"}
        # A limit of files would truncate compiled modules of Baton, which all later tests read.
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        process = subprocess.Popen(command, cwd=folder, text=True, env=env, **how)
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def until(folder: Path, pattern: str, count: int = 1) -> list[Path]:
    """Wait until so many files are there."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = sorted(folder.glob(pattern))
        if len(found) >= count:
            return found
        time.sleep(0.01)
    raise AssertionError(f"{pattern} never came")


def wait_for_rows(folder: Path, count: int) -> Path:
    (index,) = until(folder, ".baton/evaluations/*/index.jsonl")
    end = time.monotonic() + 60
    while index.read_bytes().count(b"\n") < count:
        assert time.monotonic() < end
        time.sleep(0.01)
    return index.parent


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def all_gone(pids: list[int]) -> bool:
    end = time.monotonic() + 60
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(is_running, pids))


@pytest.mark.parametrize(
    "more", [(), ("--backend", "local", "--workers", "2")], ids=["here", "workers"]
)
def test_a_closed_terminal_ends_eval_like_sigterm(
    start: Start, folder: Path, more: tuple[str, ...]
) -> None:
    process = start("eval", "agent.py:answer", "cases.jsonl", "--concurrency", "5", *more)
    place = wait_for_rows(folder, 3)
    time.sleep(0.2)
    process.send_signal(signal.SIGHUP)
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 129, err
    assert "baton: terminated: the terminal was closed" in err
    assert "results so far: baton report" in err
    assert "Traceback" not in err
    assert status_of(place) == "interrupted"
    if not more:
        assert [path.name for path in folder.glob("*.clean")]


def test_a_terminal_that_is_really_closed(start: Start, folder: Path) -> None:
    ours, theirs = pty.openpty()
    process = start(
        "eval", "agent.py:answer", "cases.jsonl", "--concurrency", "5",
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    place = wait_for_rows(folder, 3)
    time.sleep(0.2)
    os.close(ours)
    assert process.wait(60) == 129
    assert status_of(place) == "interrupted"
    assert len(list(folder.glob("*.clean"))) == 2


def test_what_nohup_started_continues(start: Start, folder: Path) -> None:
    process = start(
        "eval", "agent.py:answer", "cases.jsonl", "--limit", "3", "--repeat", "200",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    wait_for_rows(folder, 3)
    process.send_signal(signal.SIGHUP)
    _out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 3)
    assert "terminated" not in err


@pytest.mark.parametrize(
    ("sent", "jobs"),
    [
        (signal.SIGTERM, "1"),
        (signal.SIGHUP, "2"),
        pytest.param(signal.SIGHUP, "1", marks=pytest.mark.heavy),
        pytest.param(signal.SIGTERM, "2", marks=pytest.mark.heavy),
    ],
)
def test_score_ends_with_its_processes_and_keeps_what_it_scored(
    start: Start, folder: Path, sent: signal.Signals, jobs: str
) -> None:
    process = start("score", "runs", "--config", "slow.yaml", "--jobs", jobs)
    jobs_at_work = [int(path.stem) for path in until(folder, "*.job", int(jobs))]
    if jobs == "1":
        wait_for_rows(folder, 1)
    process.send_signal(sent)
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + sent
    assert "baton: terminated" in err
    assert "Traceback" not in err
    assert all_gone(jobs_at_work)
    for place in folder.glob(".baton/evaluations/*"):
        assert status_of(place) == "interrupted"


@pytest.mark.parametrize(
    "sent", [signal.SIGHUP, pytest.param(signal.SIGTERM, marks=pytest.mark.heavy)]
)
def test_watch_ends_with_the_evaluation_it_runs(
    start: Start, folder: Path, sent: signal.Signals
) -> None:
    process = start("watch", "agent.py:answer", "cases.jsonl")
    place = wait_for_rows(folder, 3)
    process.send_signal(sent)
    process.communicate(timeout=60)
    assert process.returncode == 128 + sent
    assert status_of(place) == "interrupted"


def test_worker_processes_of_a_function_end_with_it(start: Start, folder: Path) -> None:
    (folder / "baton.yaml").write_text(
        "providers: [{type: python, target: 'agent.py:in_a_process', workers: process}]\n"
        "dataset: cases.jsonl\n"
    )
    process = start("eval", "baton.yaml", "--concurrency", "2")
    workers = [int(path.stem) for path in until(folder, "*.worker", 2)]
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 129
    assert all_gone(workers)


# A full disk


def with_limit(size: int) -> Callable[[], None]:
    """Let no file grow beyond so many bytes: the system refuses more, as a full disk does."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_is_reported_with_its_file_and_exit_3(start: Start, folder: Path) -> None:
    command = ("score", "runs")
    for size in (1, 4000, 9000):
        process = start(*command, preexec_fn=with_limit(size))
        _out, err = process.communicate(timeout=30)
        assert process.returncode == 3, err
        line = err.strip().splitlines()[-1]
        assert "File too large" in line
        files = ("index.jsonl", "bodies.jsonl", "evaluation.json", "seal")
        assert any(f"/{name}: File" in line for name in files), line
        assert "Traceback" not in err


@pytest.mark.parametrize(
    "words",
    [
        ("export", "runs", "--otlp", "out.jsonl"),
        ("convert", "cases.jsonl", "--to", "adk", "-o", "out.json"),
        ("report", "--csv", "out.csv"),
    ],
)
def test_every_file_that_is_written_is_named(
    start: Start, baton: Baton, folder: Path, words: tuple[str, ...]
) -> None:
    baton("score", "runs")
    process = start(*words, preexec_fn=with_limit(100))
    _out, err = process.communicate(timeout=30)
    assert process.returncode in (2, 3)
    assert "out." in err
    assert "File too large" in err


def test_a_full_standard_output_is_named(start: Start, baton: Baton, folder: Path) -> None:
    baton("score", "runs")
    with open("/dev/full", "w") as full:
        process = start("report", "--json", stdout=full)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 3
    assert "standard output: No space left on device" in err
