"""`baton eval --backend`: workers play the cases, and the folder is that of a local run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import Baton, Outcome

AGENT = """
import asyncio

async def reply(message, case):
    await asyncio.sleep(0)
    if message == "break":
        raise RuntimeError("no model")
    return {"output": f"you said {message}", "agents": ["desk"], "tool_calls": []}
"""
CASES = """
cases:
- {id: refund_1, input: one, agents: [desk], tags: [money, smoke]}
- {id: refund_2, input: two, agents: [desk], tags: [money]}
- {id: weather, input: three, agents: [other]}
- {id: broken, input: break, agents: [desk]}
"""
CONFIG = "providers:\n- {type: python, target: 'shop_agent.py:reply'}\ndataset: cases.yaml\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    """A folder with an agent, cases and a config."""
    (tmp_path / "shop_agent.py").write_text(AGENT)
    (tmp_path / "cases.yaml").write_text(CASES)
    (tmp_path / "baton.yaml").write_text(CONFIG)
    return tmp_path


def played(baton: Baton, *arguments: str) -> tuple[list[dict[str, Any]], Outcome]:
    before = set(Path("out").glob("*"))
    outcome = baton("eval", *arguments, "--out", "out")
    made = sorted(set(Path("out").glob("*")) - before)
    assert len(made) == 1, outcome
    return bodies(made[0]), outcome


def bodies(folder: Path) -> list[dict[str, Any]]:
    """The results in the order of cases and repeats, without what clocks tell."""
    found: list[tuple[tuple[int, int], dict[str, Any]]] = []
    text = (folder / "bodies.jsonl").read_bytes()
    for line in (folder / "index.jsonl").read_bytes().splitlines():
        row = msgspec.json.decode(line)
        body = msgspec.json.decode(text[row["offset"] : row["offset"] + row["length"]])
        for name in ("offset", "length", "crc32"):
            del row[name]
        found.append(((row["position"], row["repeat"]), without_times({**row, "body": body})))
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def without_times(value: Any) -> Any:
    if isinstance(value, list):
        return [without_times(each) for each in value]
    if isinstance(value, dict):
        clocks = ("timings", "started", "ended")
        return {key: without_times(each) for key, each in value.items() if key not in clocks}
    return value


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_results_are_those_of_a_run_without_a_backend(baton: Baton, workers: str) -> None:
    here, plain = played(baton, "--repeat", "2")
    there, backed = played(baton, "--repeat", "2", "--backend", "local", "--workers", workers)
    assert plain.code == backed.code == 3
    assert len(there) == 8
    assert [(each["case_id"], each["repeat"]) for each in there[:2]] == [
        ("refund_1", 0),
        ("refund_1", 1),
    ]
    for one, other in zip(here, there, strict=True):
        assert same_ids(one) == same_ids(other)


def same_ids(row: dict[str, Any]) -> str:
    """Ids of traces are made again each time."""
    trace = row["body"].get("trace") or {"id": "none"}
    return json.dumps(row, sort_keys=True).replace(trace["id"], "ID")


def test_filters_and_agents_named_in_one_word_reach_the_workers(baton: Baton) -> None:
    (Path("baton.yaml")).unlink()
    rows, outcome = played(
        baton, "shop_agent.py:reply", "cases.yaml", "--filter", "tag:money", "--backend", "local",
        "-e", "agent_chain",
    )  # fmt: skip
    assert [row["case_id"] for row in rows] == ["refund_1", "refund_2"]
    assert outcome.code == 0


def test_every_provider_of_a_config_plays_as_a_variant(baton: Baton, folder: Path) -> None:
    (folder / "loud.py").write_text(AGENT.replace("you said", "YOU SAID"))
    more = "providers:\n- {type: python, target: 'loud.py:reply', agent_id: loud}\n"
    more += "- {type: python, target: 'shop_agent.py:reply', agent_id: quiet}\n"
    (folder / "baton.yaml").write_text(more + "dataset: cases.yaml\nbackend: local\n")
    baton("eval", "--filter", "weather", "--out", "out")
    said = [bodies(each)[0]["body"]["trace"]["turns"][0]["output"]["text"] for each in folders()]
    assert sorted(said) == ["YOU SAID three", "you said three"]


def folders() -> list[Path]:
    return sorted(Path("out").iterdir())


def test_an_evaluation_is_gone_on_with_by_a_backend(baton: Baton, folder: Path) -> None:
    baton("eval", "--out", "out")
    (made,) = folders()
    # Of another length: Python takes its compiled file for that of a change within a second.
    (folder / "shop_agent.py").write_text(AGENT.replace('== "break"', '== "never again"'))
    outcome = baton("eval", "--resume", str(made), "--backend", "local", "--workers", "2")
    assert outcome.code == 1, outcome
    lines = (made / "index.jsonl").read_bytes().splitlines()
    assert len(lines) == 5  # the case that was an error was played again, and no other
    last = {row["case_id"]: row["status"] for row in bodies(made)}
    assert last["broken"] == "passed"


def test_a_backend_of_ones_own_gets_json_and_gives_json(baton: Baton, folder: Path) -> None:
    (folder / "mine.py").write_text(
        "from baton.session.backend_workers import Worker\n"
        "from baton.runner.backends.protocol import Done\n"
        "class Mine:\n"
        "    room = 1\n"
        "    def __init__(self, note): self.note = open(note, 'wb')\n"
        "    def __enter__(self): self.worker = Worker(); return self\n"
        "    def __exit__(self, *_): self.worker.close(); self.note.close()\n"
        "    def submit(self, number, job): self.job = (number, job); self.note.write(job + b'\\n')\n"
        "    def take(self): return Done(self.job[0], self.worker.do(self.job[1]))\n"
    )
    config = CONFIG + "backend: {type: 'mine:Mine', note: jobs.jsonl}\n"
    (folder / "baton.yaml").write_text(config)
    rows, _ = played(baton)
    assert len(rows) == 4
    told = [
        msgspec.json.decode(line)["play"] for line in Path("jobs.jsonl").read_bytes().splitlines()
    ]
    assert told[2] == {"position": 2, "case": "weather", "repeat": 0, "variant": 0}
    (folder / "baton.yaml").write_text(CONFIG + "backend: {type: 'mine:Mine', nota: 1}\n")
    outcome = baton("eval")
    assert outcome.code == 2
    assert "mine:Mine" in outcome.err


def test_limits_that_workers_cannot_keep_are_refused(baton: Baton) -> None:
    outcome = baton("eval", "--backend", "local", "--fail-fast")
    assert outcome.code == 2
    assert "--fail-fast" in outcome.err


@pytest.mark.heavy
def test_a_case_that_kills_every_worker_is_an_error_and_the_others_go_on(folder: Path) -> None:
    (folder / "shop_agent.py").write_text(
        AGENT.replace('raise RuntimeError("no model")', "import os; os.kill(os.getpid(), 9)")
    )
    code = "from baton.cli import main\nif __name__ == '__main__': raise SystemExit(main())\n"
    (folder / "go.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "go.py", "eval", "baton.yaml", "--backend", "local", "--workers", "2", "--out", "out"],
        check=False, capture_output=True, cwd=folder, timeout=60, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 3
    (made,) = (folder / "out").iterdir()
    status = {row["case_id"]: row["status"] for row in bodies(made)}
    assert status == {
        "refund_1": "passed", "refund_2": "passed", "weather": "failed", "broken": "error"
    }  # fmt: skip
    assert "its worker was lost 4 times" in bodies(made)[3]["body"]["error"]


def test_a_run_that_is_terminated_says_so_and_keeps_what_is_there(folder: Path) -> None:
    slow = AGENT.replace("sleep(0)", "sleep(0 if message == 'one' else 60)")
    (folder / "shop_agent.py").write_text(slow)
    process = subprocess.Popen(
        [sys.executable, "-m", "baton", "eval", "baton.yaml", "--backend", "local", "--workers", "2", "--out", "out"],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not any(file.stat().st_size for file in folder.glob("out/*/index.jsonl")):
            assert time.monotonic() < until
            time.sleep(0.02)
        process.terminate()
        _, printed = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 143
    assert "baton: terminated" in printed
    (made,) = (folder / "out").iterdir()
    assert json.loads((made / "evaluation.json").read_text())["status"] == "interrupted"
    assert [row["case_id"] for row in bodies(made)] == ["refund_1"]
