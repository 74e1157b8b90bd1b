"""Scoring in several processes: the same results, in the same order, to the byte."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from baton.evaluators import AgentChain

Run = Callable[..., Any]
EVALUATORS = ("-e", "agent_chain", "-e", "tool_calls", "-e", "response_match")


def turn(number: int, said: str) -> dict[str, Any]:
    content = {"parts": [{"text": f"question {number}"}], "role": "user"}
    answer = {"parts": [{"text": said}], "role": "model"}
    event = {"author": "desk" if number % 7 else "other", "content": answer}
    return {
        "invocation_id": "i",
        "user_content": content,
        "final_response": answer,
        "intermediate_data": {"invocation_events": [event]},
    }


def line(number: int, said: str) -> str:
    session = {"app_name": "a", "user_id": "u", "state": {}}
    case = {"eval_id": f"c{number}", "session_input": session}
    return json.dumps(case | {"conversation": [turn(number, said)]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset, and recordings that are in several files and are not all as they should be."""
    wanted = [
        {"id": f"c{n}", "input": f"question {n}", "agents": ["desk"], "response": "so it is"}
        for n in range(260)
    ]
    text = "".join(json.dumps(case) + "\n" for case in wanted)
    (tmp_path / "cases.jsonl").write_text(text)
    said = "so it is " * 200
    lines = [line(n, said) for n in range(250)]
    lines[40] = lines[40][:-20]
    lines[90] = lines[91]
    lines.append(line(900, "nobody asked"))
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    (recorded / "a.jsonl").write_text("\n".join(lines[:150]) + "\n")
    (recorded / "b.jsonl").write_text("\n".join(lines[150:]) + "\n")
    (recorded / "c.json").write_text("{}")
    return tmp_path


def written(out: Path) -> tuple[bytes, bytes, dict[str, Any]]:
    (place,) = out.iterdir()
    header = json.loads((place / "evaluation.json").read_text())
    del header["timings"], header["id"]
    return (place / "index.jsonl").read_bytes(), (place / "bodies.jsonl").read_bytes(), header


@pytest.mark.parametrize("size", [20_000, pytest.param(10_000_000, marks=pytest.mark.heavy)])
def test_a_process_that_dies_is_reported_and_no_case_passes_for_it(
    baton: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("baton.session.score.BYTES", size)
    (folder / "deadly.py").write_text(
        "import os\n"
        "def dies(trace, case):\n"
        "    if case.id == 'c120':\n"
        "        os._exit(9)\n"
        "    return True\n"
    )
    (folder / "baton.yaml").write_text("evaluators: [{type: 'deadly:dies'}]\n")
    given = ["recorded/a.jsonl", "-c", "baton.yaml", "-d", "cases.jsonl", "--jobs", "2", "--json"]
    outcome = baton("score", *given)
    assert outcome.code == 3
    found = json.loads(outcome.out)
    assert "ended with exit code 9" in str(found["problems"])
    statuses = {each["case_id"]: each["status"] for each in found["results"]}
    assert len(statuses) == len(found["results"]) == 260
    assert statuses["c120"] == statuses["c250"] == "error"
    assert ("passed" in statuses.values()) == (size < 100_000)


@pytest.mark.parametrize("more", [("-d", "cases.jsonl"), pytest.param((), marks=pytest.mark.heavy)])
def test_several_processes_write_what_one_does(
    baton: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setattr("baton.session.score.BYTES", 100_000)
    command = ["score", "recorded", *more, *(EVALUATORS if more else ())]
    one = baton(*command, "--out", "one", "--json")
    several = baton(*command, "--out", "several", "--jobs", "3", "--json")
    assert one.code == several.code == 3
    assert one.err == several.err
    assert written(folder / "one") == written(folder / "several")
    assert json.loads(one.out)["results"] == json.loads(several.out)["results"]


def test_files_without_a_trace_leave_no_folder(baton: Run, folder: Path) -> None:
    (folder / "empty").mkdir()
    outcome = baton("score", "empty", "--jobs", "2")
    assert outcome.code == 2
    assert "no trace in empty" in outcome.err
    assert not (folder / ".baton").exists()


def test_less_than_one_job_is_refused(baton: Run, folder: Path) -> None:
    outcome = baton("score", "recorded", "--jobs", "0")
    assert outcome.code == 2
    assert "--jobs has to be at least 1" in outcome.err


def parents(folder: Path) -> set[int]:
    return {int(name) for name in (folder / "pids").read_text().split()}


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make the recordings large, two pieces or more each, and note which process scores a case."""
    for file in (folder / "recorded").glob("*.jsonl"):
        state = json.dumps({"notes": "x" * 50_000})
        file.write_text(file.read_text().replace('"state": {}', f'"state": {state}'))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    # Threads of earlier tests may still be ending.
    monkeypatch.setattr("baton.runner.backends.local.can_fork", lambda: True)
    monkeypatch.setattr("baton.session.backend_workers.can_fork", lambda: True)
    evaluate = AgentChain.evaluate

    def noted(self: AgentChain, *arguments: Any) -> Any:
        with (folder / "pids").open("a") as pids:
            pids.write(f"{os.getpid()}\n")
        return evaluate(self, *arguments)

    monkeypatch.setattr(AgentChain, "evaluate", noted)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
@pytest.mark.usefixtures("pieces")
def test_long_recordings_are_scored_by_as_many_processes_as_there_are_cores(
    baton: Run, folder: Path
) -> None:
    command = ["score", "recorded", "-d", "cases.jsonl", *EVALUATORS, "--json"]
    one = baton(*command, "--out", "one", "--jobs", "1")
    assert parents(folder) == {os.getpid()}
    (folder / "pids").unlink()
    several = baton(*command, "--out", "several")
    assert len(parents(folder)) == 2
    assert os.getpid() not in parents(folder)
    assert one.err == several.err
    assert written(folder / "one") == written(folder / "several")


@pytest.mark.usefixtures("pieces")
def test_an_evaluator_of_the_users_sees_all_cases_in_one_process(baton: Run, folder: Path) -> None:
    (folder / "counting.py").write_text(
        "seen = []\ndef counts(trace, case):\n    seen.append(case)\n    return len(seen) <= 260\n"
    )
    (folder / "baton.yaml").write_text("evaluators: [agent_chain, {type: 'counting:counts'}]\n")
    baton("score", "recorded/a.jsonl", "-c", "baton.yaml", "-d", "cases.jsonl")
    assert parents(folder) == {os.getpid()}


def test_a_folder_of_small_files_is_listed_once(
    baton: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[Path] = []

    def noted(below: Path, pattern: str) -> Iterator[Path]:
        listed.append(below)
        return rglob(below, pattern)

    rglob = Path.rglob
    monkeypatch.setattr(Path, "rglob", noted)
    assert baton("score", "recorded", "-d", "cases.jsonl", *EVALUATORS).code == 3
    assert listed == [Path("recorded")]
