"""`baton eval --resume` and its like: nothing is lost, nothing is doubled, nothing is made up."""

from __future__ import annotations

import fcntl
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.processes import run_baton

from baton import Case, Trace, evaluate

Run = Callable[..., Any]
AGENT = """
import asyncio, pathlib
async def reply(message, case):
    with open("asked.txt", "a") as asked:
        print(case.id, file=asked)
    await asyncio.sleep(0.002)
    if pathlib.Path(f"{case.id}.broken").exists():
        raise RuntimeError("no model")
    wrong = pathlib.Path(f"{case.id}.wrong").exists()
    return {"output": "done", "agents": ["other" if wrong else "desk"], "tool_calls": []}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an agent whose cases break where a file says so, and a config."""
    (tmp_path / "agent.py").write_text(AGENT)
    cases(tmp_path, 4)
    (tmp_path / "baton.yaml").write_text(
        "providers: [{type: python, target: 'agent.py:reply'}]\ndataset: cases.jsonl\n"
        "evaluators: [agent_chain]\nconcurrency: 1\n"
    )
    return tmp_path


def cases(folder: Path, count: int, said: str = "hi") -> None:
    lines = (json.dumps({"id": f"c{n}", "input": said, "agents": ["desk"]}) for n in range(count))
    (folder / "cases.jsonl").write_text("\n".join(lines) + "\n")


def made(folder: Path) -> str:
    """Return the newest evaluation folder."""
    found = (folder / ".baton" / "evaluations").iterdir()
    return str(max(found, key=lambda path: path.stat().st_mtime_ns))


def asked(folder: Path) -> list[str]:
    """Return the cases the agent was asked since the last time."""
    file = folder / "asked.txt"
    found = file.read_text().split() if file.exists() else []
    file.unlink(missing_ok=True)
    return found


def statuses(outcome: Any) -> dict[str, str]:
    results = json.loads(outcome.out)["results"]
    assert len({(each["case_id"], each["repeat"]) for each in results}) == len(results)
    return {each["case_id"]: each["status"] for each in results}


def header(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(folder) / "evaluation.json").read_text())
    return found


def test_what_was_an_error_is_played_again_and_the_rest_stays(baton: Run, folder: Path) -> None:
    (folder / "c1.broken").touch()
    assert baton("eval").code == 3
    assert asked(folder) == ["c0", "c1", "c2", "c3"]
    (folder / "c1.broken").unlink()
    outcome = baton("eval", "--resume", made(folder), "--json")
    assert outcome.code == 0
    assert set(statuses(outcome).values()) == {"passed"}
    assert len(statuses(outcome)) == 4
    assert asked(folder) == ["c1"]
    assert header(made(folder))["cases"] == {"passed": 4, "failed": 0, "skipped": 0, "error": 0}
    assert len(header(made(folder))["timings"]["resumed"]) == 1


def test_what_was_not_read_earlier_is_in_the_report_of_a_resumed_evaluation(
    baton: Run, folder: Path
) -> None:
    (folder / "agent.py").write_text("""
import pathlib
from baton.model import Dropped
from baton.testing.build import run, trace

def reply(case):
    if pathlib.Path(f"{case.id}.broken").exists():
        raise RuntimeError("no model")
    made = trace("hi", run("desk", output="done"), id=case.id)
    made.dropped = [Dropped(what="a truncated event", count=2)]
    return made
""")
    (folder / "c1.broken").touch()
    first = baton("eval")
    assert "not read, so not scored: a truncated event (6 times)" in first.out
    (folder / "c1.broken").unlink()
    resumed = baton("eval", "--resume", made(folder))
    assert resumed.code == 0
    assert "not read, so not scored: a truncated event (8 times)" in resumed.out


def test_a_complete_folder_gives_its_verdict_and_asks_nobody(baton: Run, folder: Path) -> None:
    (folder / "c2.wrong").touch()
    assert baton("eval").code == 1
    asked(folder)
    before = (Path(made(folder)) / "evaluation.json").read_bytes()
    assert baton("eval", "--resume", made(folder)).code == 1
    assert asked(folder) == []
    assert (Path(made(folder)) / "evaluation.json").read_bytes() == before


def test_a_resumed_folder_is_read_as_recordings_once_a_case(baton: Run, folder: Path) -> None:
    (folder / "c1.broken").touch()
    baton("eval")
    (folder / "c1.broken").unlink()
    baton("eval", "--resume", made(folder))
    outcome = baton("score", made(folder), "-d", "cases.jsonl", "--json")
    assert statuses(outcome) == dict.fromkeys(("c0", "c1", "c2", "c3"), "passed")


def test_torn_lines_are_cut_off_and_their_case_is_played_again(baton: Run, folder: Path) -> None:
    baton("eval")
    asked(folder)
    index = Path(made(folder)) / "index.jsonl"
    index.write_bytes(index.read_bytes()[:-9])
    bodies = Path(made(folder)) / "bodies.jsonl"
    bodies.write_bytes(bodies.read_bytes() + b'{"case_id": "to')
    running = header(made(folder)) | {"status": "running"}
    (Path(made(folder)) / "evaluation.json").write_text(json.dumps(running))
    outcome = baton("eval", "--resume", made(folder), "--json")
    assert outcome.code == 0
    assert len(statuses(outcome)) == 4
    assert asked(folder) == ["c3"]
    assert len(bodies.read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: cases(folder, 4, "hello"), "the cases: their content has changed"),
        (
            lambda folder: (folder / "baton.yaml").write_text(
                (folder / "baton.yaml").read_text() + "timeout: 9\n"
            ),
            "the file baton.yaml",
        ),
    ],
)
def test_what_changed_since_is_named_and_refused_unless_forced(
    baton: Run, folder: Path, change: Callable[[Path], Any], said: str
) -> None:
    (folder / "c1.broken").touch()
    baton("eval")
    asked(folder)
    change(folder)
    outcome = baton("eval", "--resume", made(folder))
    assert outcome.code == 2
    assert said in outcome.err
    assert asked(folder) == []
    forced = baton("eval", "--resume", made(folder), "--force")
    assert forced.code == 3
    assert said in forced.err
    assert asked(folder) == ["c1"]


def test_other_cases_are_refused_even_when_forced(baton: Run, folder: Path) -> None:
    (folder / "c3.broken").touch()
    baton("eval")
    lines = (folder / "cases.jsonl").read_text().splitlines()
    (folder / "cases.jsonl").write_text("\n".join(reversed(lines)) + "\n")
    outcome = baton("eval", "--resume", made(folder), "--force")
    assert outcome.code == 2
    assert "other cases" in outcome.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--repeat", "2"], "--resume takes"),
        (["-e", "latency"], "--resume takes"),
        (["--only-failed", "x"], "exclude one another"),
    ],
)
def test_what_a_folder_settles_cannot_be_given_beside_it(
    baton: Run, folder: Path, options: list[str], said: str
) -> None:
    baton("eval")
    outcome = baton("eval", "--resume", made(folder), *options)
    assert outcome.code == 2
    assert said in outcome.err


def test_folders_that_cannot_be_gone_on_with_say_why(baton: Run, folder: Path) -> None:
    assert "not an evaluation" in baton("eval", "--resume", "nowhere").err
    baton("eval")
    baton("score", made(folder))
    assert "does not say how it was made" in baton("eval", "--resume", made(folder)).err
    assert "--force needs --resume" in baton("eval", "--force").err


def test_only_what_did_not_pass_is_played_in_a_new_evaluation(baton: Run, folder: Path) -> None:
    (folder / "c1.broken").touch()
    (folder / "c3.wrong").touch()
    baton("eval")
    first = made(folder)
    asked(folder)
    (folder / "c1.broken").unlink()
    outcome = baton("eval", "--only-failed", first, "--json")
    assert statuses(outcome) == {"c1": "passed", "c3": "failed"}
    assert asked(folder) == ["c1", "c3"]
    assert made(folder) != first
    (folder / "c3.wrong").unlink()
    assert statuses(baton("eval", "--only-failed", made(folder), "--json")) == {"c3": "passed"}
    assert "nothing to play" in baton("eval", "--only-failed", made(folder)).err


def test_a_gate_asks_some_of_the_cases_only_what_is_about_them(baton: Run, folder: Path) -> None:
    config = folder / "baton.yaml"
    rules = "{thresholds: [pass_rate == 1], must_pass: [c0, c3], regression: {baseline: default}}"
    assert baton("eval").code == 0
    assert baton("baseline", "set").code == 0
    config.write_text(f"{config.read_text()}gate: {rules}\n")
    (folder / "c3.wrong").touch()
    assert baton("eval").code == 1
    first = made(folder)
    again = baton("eval", "--only-failed", first)
    assert again.code == 1
    assert "must pass: c3" in again.out
    assert "are not checked here: `must_pass: c0`, `regression`" in again.err
    (folder / "c3.wrong").unlink()
    assert baton("eval", "--only-failed", first).code == 0


def test_errors_are_played_again_as_often_as_asked(baton: Run, folder: Path) -> None:
    (folder / "c1.broken").touch()
    outcome = baton("eval", "--retry-errors", "2", "--json")
    assert outcome.code == 3
    assert asked(folder) == ["c0", "c1", "c2", "c3", "c1", "c1"]
    assert statuses(outcome)["c1"] == "error"
    assert "2 errors were played again" in str(json.loads(outcome.out)["notices"])


def test_it_stops_at_the_first_failure_and_says_what_was_not_played(
    baton: Run, folder: Path
) -> None:
    (folder / "c1.wrong").touch()
    outcome = baton("eval", "--fail-fast", "--json")
    assert outcome.code == 1
    assert statuses(outcome) == {"c0": "passed", "c1": "failed"}
    assert "2 of 4 planned cases were played" in str(json.loads(outcome.out)["notices"])
    asked(folder)
    (folder / "c1.wrong").unlink()
    resumed = baton("eval", "--resume", made(folder), "--json")
    assert len(statuses(resumed)) == 4
    assert asked(folder) == ["c2", "c3"]


def test_a_passing_run_with_fail_fast_plays_everything(baton: Run, folder: Path) -> None:
    outcome = baton("eval", "--fail-fast", "--json")
    assert outcome.code == 0
    assert len(statuses(outcome)) == 4


COSTLY = """
def reply(message):
    usage = {"input_tokens": 1, "output_tokens": 1, "cost_usd": 0.4}
    return {"output": "done", "agents": ["desk"], "usage": usage}
"""


def test_beyond_the_limit_of_cost_cases_are_errors_of_the_budget(baton: Run, folder: Path) -> None:
    (folder / "agent.py").write_text(COSTLY)
    outcome = baton("eval", "--max-agent-cost", "0.5", "--json")
    assert outcome.code == 3
    results = json.loads(outcome.out)["results"]
    assert [each["status"] for each in results] == ["passed", "passed", "error", "error"]
    assert results[2]["error"].startswith("budget: the agents cost 0.8 USD")
    again = baton("eval", "--resume", made(folder), "--json")
    assert set(statuses(again).values()) == {"passed"}


def test_costs_that_nobody_tells_are_said_not_to_count(baton: Run, folder: Path) -> None:
    outcome = baton("eval", "--max-agent-cost", "0.5", "--json")
    assert outcome.code == 0
    assert "ignores costs of 4 cases: neither the agents nor" in str(
        json.loads(outcome.out)["notices"]
    )


def test_a_misspelt_option_of_running_is_reported_with_a_similar_name(
    baton: Run, folder: Path
) -> None:
    outcome = baton("eval", "--resum", "x")
    assert outcome.code == 2
    assert "--resume" in outcome.err


def test_a_folder_that_is_being_written_is_left_alone(baton: Run, folder: Path) -> None:
    baton("eval")
    place = Path(made(folder))
    running = header(str(place)) | {"status": "running"}
    (place / "evaluation.json").write_text(json.dumps(running))
    with (place / "index.jsonl").open("rb") as index:
        fcntl.flock(index.fileno(), fcntl.LOCK_EX)
        outcome = baton("eval", "--resume", str(place))
    assert outcome.code == 2
    assert "another process is writing this evaluation" in outcome.err


def test_limits_and_retries_hold_in_python_too(folder: Path) -> None:
    played: list[str] = []

    def provider(case: Case) -> Trace:
        played.append(case.id)
        raise RuntimeError("no model")

    dataset = str(folder / "cases.jsonl")
    evaluation = evaluate(dataset, provider, ["agent_chain"], concurrency=1, retry_errors=1)
    assert played == ["c0", "c1", "c2", "c3"] * 2
    assert len(evaluation.results) == 4
    stopped = evaluate(dataset, provider, ["agent_chain"], concurrency=1, fail_fast=True)
    assert stopped.status == "error"
    assert len(stopped.results) == 1
    assert "1 of 4 planned cases" in str(stopped.notices)


@pytest.mark.heavy
def test_kill_9_at_six_moments_and_a_resume_report_every_case_once(folder: Path) -> None:
    cases(folder, 150)
    chance = random.Random(7)
    command = [sys.executable, "-m", "baton", "eval", "baton.yaml"]
    for number in range(6):  # a hundred are part of `make torture`
        out = folder / f"out-{number}"
        quiet: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL}
        start = [*command, "--out", str(out), "--repeat", "2", "--concurrency", "3"]
        with subprocess.Popen(start, stderr=subprocess.DEVNULL, **quiet) as process:
            while not list(out.glob("*/index.jsonl")):
                time.sleep(0.005)
            time.sleep(chance.random() * 0.5)
            process.kill()
        (place,) = out.iterdir()
        for _ in range(number % 2):
            with subprocess.Popen([*command, "--resume", str(place)], **quiet) as again:
                time.sleep(chance.random() * 0.8)
                again.kill()
        done = run_baton(
            "eval", "baton.yaml", "--resume", place, "--json", folder=folder, seconds=200
        )
        assert done.returncode == 0, done.stderr
        found = Counter(
            (each["case_id"], each["repeat"]) for each in json.loads(done.stdout)["results"]
        )
        assert len(found) == 300
        assert set(found.values()) == {1}
        assert header(str(place))["cases"]["passed"] == 300
        lines = (place / "index.jsonl").read_bytes().splitlines()
        assert len(lines) == 300
