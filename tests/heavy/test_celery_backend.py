"""The backend for Celery in examples/: a queue in a file, and a worker in its own process.

The queue and the results are in SQLite: Celery's ``filesystem`` and ``file`` read files that are
still being written.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.runner.backends.traces import write_cases, write_lines

pytestmark = [pytest.mark.heavy]

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
QUEUE = """
from celery_backend import app

app.conf.update(
    broker_url="sqla+sqlite:///{folder}/queue.db",
    result_backend="db+sqlite:///{folder}/results.db",
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
  broker: 'sqla+sqlite:///{folder}/queue.db'
  results: 'db+sqlite:///{folder}/results.db'
  patience: 120
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a queue, and a worker at work on it."""
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
            # Two processes that create the tables of the queue at once may collide.
            until = time.monotonic() + 60
            while not _listens(tmp_path / "queue.db") and time.monotonic() < until:
                time.sleep(0.05)
            yield tmp_path
        finally:
            worker.terminate()
            try:
                worker.wait(timeout=60)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()


def _listens(database: Path) -> bool:
    """Whether a worker has declared its queue."""
    with closing(sqlite3.connect(database)) as connection:
        try:
            return bool(connection.execute("SELECT name FROM kombu_queue").fetchall())
        except sqlite3.OperationalError:  # there is no such table yet
            return False


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(EXAMPLES)])}


def baton(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "run.py", *arguments], cwd=folder, env=_environment(folder),
        capture_output=True, text=True, timeout=140, check=False,
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
    assert time.monotonic() - started < 120  # none was lost and sent again
