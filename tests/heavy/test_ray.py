"""A real local Ray cluster: a worker is killed in mid-run, and nothing is lost or doubled."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.runner.backends.traces import numbered

from .killing import below, kill_one

pytestmark = [pytest.mark.heavy]

TRACES = 2000
SLOW = """
import time

def slow(trace):
    time.sleep(0.004)
    return trace.turns[0].runs[0].agent == "billing"
"""
AGENT = """
import asyncio

async def reply(message, case):
    await asyncio.sleep(0.05)
    return {"output": f"you said {message}", "agents": ["desk"], "tool_calls": []}
"""


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "baton", *arguments]
    with (folder / "printed").open("w") as printed:
        process = subprocess.Popen(
            command, cwd=folder, stdout=printed, stderr=subprocess.STDOUT, text=True
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]


def write_traces(file: Path) -> None:
    with file.open("wb") as lines:
        for number in range(TRACES):
            one = numbered(number)
            assert one.turns[0].output is not None
            one.turns[0].output.text = "word " * 1800
            lines.write(msgspec.json.encode(one) + b"\n")


def test_scoring_continues_when_a_worker_is_killed(tmp_path: Path) -> None:
    write_traces(tmp_path / "t.jsonl")
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "c.yaml").write_text("evaluators: [{type: 'slow:slow'}]\n")
    arguments = ["score", "t.jsonl", "-c", "c.yaml", "--show", "0"]
    ray = ["--backend", "ray", "--workers", "2", "--out", "there"]
    with started(tmp_path, *arguments, *ray) as process:
        before = kill_one(process.pid, tmp_path / "there", 200)
        code = process.wait(timeout=240)
        left = list(below(process.pid))
    assert 200 <= before < TRACES - 400
    assert code == 1, (tmp_path / "printed").read_text()
    assert not left
    (there,) = (tmp_path / "there").iterdir()
    found = rows(there)
    assert [row["position"] for row in found] == list(range(TRACES))
    assert Counter(row["case_id"] for row in found).most_common(1)[0][1] == 1

    with started(tmp_path, *arguments, "--out", "here") as process:
        assert process.wait(timeout=240) == 1
    (here,) = (tmp_path / "here").iterdir()
    for name in ("index.jsonl", "bodies.jsonl"):
        assert (here / name).read_bytes() == (there / name).read_bytes()


def test_cases_are_played_once_though_a_worker_is_killed(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(AGENT)
    cases = [{"id": f"c{n}", "input": f"say {n}", "agents": ["desk"]} for n in range(150)]
    (tmp_path / "cases.json").write_text(json.dumps({"cases": cases}))
    (tmp_path / "baton.yaml").write_text(
        "providers: [{type: python, target: 'shop:reply'}]\ndataset: cases.json\n"
        "backend: {type: ray, workers: 2}\n"
    )
    with started(tmp_path, "eval", "baton.yaml", "--repeat", "2", "--out", "out") as process:
        before = kill_one(process.pid, tmp_path / "out", 30)
        code = process.wait(timeout=240)
    assert before < 250
    assert code == 0, (tmp_path / "printed").read_text()
    (folder,) = (tmp_path / "out").iterdir()
    places = Counter((row["position"], row["repeat"]) for row in rows(folder))
    assert places == {(case, repeat): 1 for case in range(150) for repeat in range(2)}
    assert {row["status"] for row in rows(folder)} == {"passed"}
    assert json.loads((folder / "evaluation.json").read_text())["planned"] == 300


def test_more_workers_than_the_cluster_has_room_for_hold_nothing_up(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(
        b"".join(msgspec.json.encode(numbered(n)) + b"\n" for n in range(9))
    )
    code = (
        "import ray\n"
        "ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, "
        "object_store_memory=100 << 20, _node_ip_address='127.0.0.1')\n"
        "from baton.cli import main\n"
        "code = main(['score', 't.jsonl', '--backend', 'ray', '--workers', '3', '--out', 'out'])\n"
        "ray.shutdown()\n"
        "raise SystemExit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip
    (folder,) = (tmp_path / "out").iterdir()
    assert len(rows(folder)) == 9, done


def test_a_cluster_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(msgspec.json.encode(numbered(1)) + b"\n")
    (tmp_path / "c.yaml").write_text("backend: {type: ray, address: '127.0.0.1:1'}\n")
    with started(tmp_path, "score", "t.jsonl", "-c", "c.yaml") as process:
        code = process.wait(timeout=240)
    printed = (tmp_path / "printed").read_text()
    assert code == 2, printed
    assert "the Ray cluster cannot be reached" in printed


@pytest.mark.parametrize(("failing", "code", "says"), [(1, 0, ""), (9, 2, "in 3 attempts")])
def test_a_cluster_that_starts_too_slowly_is_started_again(
    failing: int, code: int, says: str, tmp_path: Path
) -> None:
    (tmp_path / "t.jsonl").write_bytes(msgspec.json.encode(numbered(1)) + b"\n")
    # Ray asks here whether its node has started, for 30 seconds.
    late = (
        "import ray._private.services as services\n"
        f"told, left = services.get_node, [None] * {failing}\n"
        "def get_node(*given, **named):\n"
        "    if left:\n"
        "        left.pop()\n"
        "        raise Exception('The current node timed out during startup. This could happen')\n"
        "    return told(*given, **named)\n"
        "services.get_node = get_node\n"
        "from baton.cli import main\n"
        "raise SystemExit(main(['score', 't.jsonl', '--backend', 'ray', '--workers', '1']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", late], cwd=tmp_path, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip
    assert done.returncode == code, done
    assert says in done.stderr
    assert "internal error" not in done.stderr
