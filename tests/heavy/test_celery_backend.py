"""The backend for Celery in examples/: a queue in a folder, and a worker in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runner.backends.traces import write_cases, write_lines

pytestmark = [pytest.mark.heavy]

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
QUEUE = """
from celery_backend import app

app.conf.update(
    broker_url="filesystem://",
    result_backend="file://{folder}/results",
    broker_transport_options={{
        "data_folder_in": "{folder}/queue", "data_folder_out": "{folder}/queue",
        "control_folder": "{folder}/control",
    }},
)
"""
RUN = """
import sys
import queue_app
from baton.cli import main

raise SystemExit(main(sys.argv[1:]))
"""
CONFIG = """
evaluators: [agent_chain]
backend:
  type: 'celery_backend:CeleryBackend'
  broker: 'filesystem://'
  results: 'file://{folder}/results'
  patience: 60
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a queue, and a worker at work on it."""
    for name in ("queue", "results", "control"):
        (tmp_path / name).mkdir()
    (tmp_path / "queue_app.py").write_text(QUEUE.format(folder=tmp_path))
    (tmp_path / "run.py").write_text(RUN)
    (tmp_path / "c.yaml").write_text(CONFIG.format(folder=tmp_path))
    command = [sys.executable, "-m", "celery", "-A", "queue_app", "worker", "--pool", "solo"]
    with (tmp_path / "worker.log").open("w") as log:
        quiet = ["--loglevel", "WARNING", "--without-gossip", "--without-mingle"]
        worker = subprocess.Popen(
            [*command, *quiet], cwd=tmp_path, env=_environment(tmp_path), stdout=log, stderr=log
        )
        try:
            yield tmp_path
        finally:
            worker.terminate()
            try:
                worker.wait(timeout=60)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(EXAMPLES)])}


def baton(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "run.py", *arguments], cwd=folder, env=_environment(folder),
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip


def rows(folder: Path) -> list[dict[str, Any]]:
    (made,) = folder.iterdir()
    return [json.loads(line) for line in (made / "index.jsonl").read_text().splitlines()]


def test_traces_are_scored_by_celery_workers(folder: Path) -> None:
    write_lines(folder / "t.jsonl", 50)
    write_cases(folder / "cases.jsonl", 50)
    arguments = ["score", "t.jsonl", "-d", "cases.jsonl", "-c", "c.yaml"]
    done = baton(folder, *arguments, "--out", "there")
    assert done.returncode == 1, (done, (folder / "worker.log").read_text())
    (folder / "c.yaml").write_text("evaluators: [agent_chain]\n")
    baton(folder, *arguments, "--out", "here")
    assert rows(folder / "there") == rows(folder / "here")
    assert len(rows(folder / "here")) == 50


def test_cases_are_played_by_celery_workers(folder: Path) -> None:
    (folder / "shop.py").write_text(
        "def reply(message, case):\n"
        "    return {'output': message, 'agents': ['desk'], 'tool_calls': []}\n"
    )
    cases = [{"id": f"c{n}", "input": f"say {n}", "agents": ["desk"]} for n in range(20)]
    (folder / "cases.json").write_text(json.dumps({"cases": cases}))
    config = (folder / "c.yaml").read_text()
    (folder / "c.yaml").write_text(
        config + "providers: [{type: python, target: 'shop:reply'}]\ndataset: cases.json\n"
    )
    started = time.monotonic()
    done = baton(folder, "eval", "c.yaml", "--out", "out")
    assert done.returncode == 0, (done, (folder / "worker.log").read_text())
    assert sorted(row["position"] for row in rows(folder / "out")) == list(range(20))
    assert time.monotonic() - started < 60
