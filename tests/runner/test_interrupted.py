"""Evaluations that are ended before their time: what was done is there, once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Start = Callable[..., subprocess.Popen[str]]
AGENT = """
import asyncio, time
async def slow(message):
    await asyncio.sleep(0 if message.startswith("quick") else 60)
    return {"output": "done", "agents": ["desk"]}
def blocking(message):
    time.sleep(0 if message.startswith("quick") else 60)
    return {"output": "done", "agents": ["desk"]}
async def cleaning(message):
    open(message.replace(" ", "") + ".begun", "w").close()
    try:
        return await slow(message)
    finally:
        if message.startswith("slow"):
            await asyncio.sleep(0.1)
            open(message.replace(" ", "") + ".clean", "w").close()
async def steady(message):
    await asyncio.sleep(0.01)
    return {"output": "done", "agents": ["desk"]}
"""


def dataset(folder: Path, quick: int, slow: int) -> None:
    messages = ["quick"] * quick + ["slow"] * slow
    lines = [
        json.dumps({"id": f"c{n}", "input": f"{message} {n}", "agents": ["desk"]})
        for n, message in enumerate(messages)
    ]
    (folder / "cases.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `baton eval` in its own process; it is ended at the latest with the test."""
    (tmp_path / "agent.py").write_text(AGENT)
    started: list[subprocess.Popen[str]] = []

    def run(function: str, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "baton", "eval", f"agent.py:{function}", "cases.jsonl"]
        process = subprocess.Popen(
            [*command, *options],
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def wait_for(folder: Path, lines: int) -> Path:
    """Wait until an evaluation below a folder has so many results; return its folder."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for index in folder.glob(".baton/evaluations/*/index.jsonl"):
            if index.read_bytes().count(b"\n") >= lines:
                return index.parent
        time.sleep(0.01)
    raise AssertionError(f"there were never {lines} results")


def reported(baton: Run, folder: Path) -> dict[str, Any]:
    """Return the JSON report of a folder, for which every body is read."""
    report: dict[str, Any] = json.loads(baton("report", folder, "--json").out)
    return report


def stored(baton: Run, folder: Path) -> list[str]:
    """Return the ids of all results that have scores."""
    results = reported(baton, folder)["results"]
    return [result["case_id"] for result in results if result["scores"]]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("sent", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
@pytest.mark.parametrize("function", ["slow", "blocking"])
def test_ctrl_c_and_sigterm_leave_a_complete_folder_of_what_was_done(
    start: Start, baton: Run, tmp_path: Path, function: str, sent: int, code: int, word: str
) -> None:
    dataset(tmp_path, quick=5, slow=3)
    process = start(function, "--concurrency", "2")
    folder = wait_for(tmp_path, 5)
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert f"baton: {word}" in err
    assert f"results so far: baton report {folder.relative_to(tmp_path)}" in err
    assert "Traceback" not in err
    assert out == ""
    header = json.loads((folder / "evaluation.json").read_text())
    assert header["status"] == "interrupted"
    assert header["cases"]["passed"] == 5
    assert header["timings"]["ended"]
    assert stored(baton, folder) == [f"c{n}" for n in range(5)]
    report = baton("report")
    assert report.code == 3
    assert "3 of 8 planned cases were not run" in report.out
    assert "interrupted" in report.out


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_what_is_in_play_cleans_up_when_it_is_ended(
    start: Start, tmp_path: Path, sent: int
) -> None:
    dataset(tmp_path, quick=1, slow=3)
    process = start("cleaning", "--concurrency", "3")
    wait_for(tmp_path, 1)
    while len(list(tmp_path.glob("slow*.begun"))) < 3:
        time.sleep(0.02)
    process.send_signal(sent)
    process.communicate(timeout=60)
    assert sorted(path.name for path in tmp_path.glob("*.clean")) == [
        f"slow{n}.clean" for n in (1, 2, 3)
    ]


def test_ctrl_c_before_the_first_result_leaves_a_folder_that_reads(
    start: Start, baton: Run, tmp_path: Path
) -> None:
    dataset(tmp_path, quick=0, slow=2)
    process = start("slow")
    wait_for(tmp_path, 0)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    outcome = baton("report", "--format", "json")
    assert outcome.code == 3
    assert json.loads(outcome.out)["results"] == []


def test_kill_9_loses_the_cases_in_flight_and_no_more(
    start: Start, baton: Run, tmp_path: Path
) -> None:
    dataset(tmp_path, quick=20, slow=4)
    process = start("slow", "--concurrency", "4")
    folder = wait_for(tmp_path, 20)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert Counter(stored(baton, folder)) == {f"c{n}": 1 for n in range(20)}
    report = baton("report")
    assert report.code == 3
    assert "not finished: 20 of 24 planned cases exist" in report.out
    assert report.out.strip().splitlines()[-1].startswith("running")


def test_kill_9_at_any_moment_leaves_whole_results_each_once(
    start: Start, baton: Run, tmp_path: Path
) -> None:
    dataset(tmp_path, quick=0, slow=600)
    process = start("steady", "--concurrency", "5", "--repeat", "2")
    folder = wait_for(tmp_path, 37)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    report = reported(baton, folder)
    lines = (folder / "index.jsonl").read_bytes().count(b"\n")
    results = report["results"]
    assert 37 <= len(results) == lines < 1200
    assert len({(result["case_id"], result["repeat"]) for result in results}) == lines
    bodies = [json.loads(line) for line in (folder / "bodies.jsonl").read_bytes().splitlines()]
    assert {body["case_id"] for body in bodies} == {result["case_id"] for result in results}
    assert report["problems"] == [f"not finished: {lines} of 1200 planned cases exist"]


def test_torn_lines_are_passed_over_and_what_is_broken_within_is_reported(
    start: Start, baton: Run, tmp_path: Path
) -> None:
    dataset(tmp_path, quick=6, slow=1)
    process = start("slow", "--concurrency", "1")
    folder = wait_for(tmp_path, 6)
    process.kill()
    process.communicate(timeout=60)
    index, bodies = folder / "index.jsonl", folder / "bodies.jsonl"
    whole = index.read_bytes()
    bodies.write_bytes(bodies.read_bytes() + b'{"case_id": "c6", "rep')
    index.write_bytes(whole[:-25])
    assert stored(baton, folder) == [f"c{n}" for n in range(5)]
    report = baton("report", folder)
    assert report.code == 3
    assert "5 of 7 planned cases exist" in report.out
    index.write_bytes(whole.replace(b'{"position"', b'{"posit', 1))
    report = baton("report", folder)
    assert report.code == 3
    assert "damaged: index.jsonl:1: " in report.out


def test_a_function_that_never_ends_does_not_keep_the_process(start: Start, tmp_path: Path) -> None:
    dataset(tmp_path, quick=2, slow=2)
    process = start("blocking", "--timeout", "0.3", "--json")
    out, err = process.communicate(timeout=50)  # the functions take 60 s
    assert process.returncode == 3, err
    report = json.loads(out)
    assert [result["status"] for result in report["results"]] == ["passed"] * 2 + ["error"] * 2
    assert "did not end within 0.3 s" in report["results"][3]["error"]
