"""Measure the cost of scoring many traces: of each part alone, and of whole backends.

Figures are processor time where it says so, of one process, without its start.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import msgspec

from baton import __version__
from baton.evaluators.defaults import PROVEN_BY_RECORD
from baton.formats.evaluation_header import Header
from baton.model import InputError
from baton.readers.shards import Shard, iter_shards
from baton.runner.backends.distribute import score_on
from baton.runner.backends.protocol import Done, Job, Outcome, Recipe
from baton.runner.backends.registry import make_backend
from baton.runner.plan import make_plan
from baton.session.backend_workers import Worker

HERE = Path(__file__).resolve().parent
THREE = ["agent_chain", "tool_calls", "response"]
PROVEN = list(PROVEN_BY_RECORD)


class Kept:
    """A backend that returns prepared outcomes, to measure the cost of everything else."""

    room = 4

    def __init__(self, outcomes: list[bytes]) -> None:
        self._outcomes = outcomes
        self._out: list[int] = []

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.clear()

    def submit(self, number: int, _: bytes) -> None:
        self._out.append(number)

    def take(self) -> Done:
        number = self._out.pop(0)
        return Done(number, self._outcomes[number])


class Bench:
    """Traces in a folder, and what is asked of them."""

    def __init__(self, folder: Path, traces: int, *, evaluators: list[str], cases: bool) -> None:
        self.folder, self.traces = folder, traces
        self.dataset = ["cases.jsonl"] if cases else []
        self.recipe = Recipe(
            baton=__version__,
            folder=str(folder),
            dataset=self.dataset,
            evaluators=evaluators,
            recorded=True,
        )
        self.evaluators = evaluators

    def shards(self) -> Iterator[Shard]:
        return iter_shards(["recordings.jsonl"], on_problem=_raised)

    def jobs(self) -> Iterator[bytes]:
        return (msgspec.json.encode(Job(recipe=self.recipe, shard=s)) for s in self.shards())

    def worker(self) -> tuple[float, list[bytes]]:
        """Return the processor seconds of one worker for all, and its outcomes."""
        worker = Worker()
        jobs = list(self.jobs())
        worker.do(jobs[0])
        began = time.process_time()
        outcomes = [worker.do(job) for job in jobs]
        return time.process_time() - began, outcomes

    def whole(self, backend: Any) -> tuple[float, float]:
        """Return the seconds and the processor seconds of the process that writes the folder."""
        from baton.datasets import load_dataset

        cases = load_dataset(self.dataset) if self.dataset else None
        with tempfile.TemporaryDirectory() as out:
            began, busy = time.perf_counter(), time.process_time()
            folder = score_on(
                backend,
                self.recipe,
                make_plan(self.evaluators),
                self.shards(),
                cases,
                root=Path(out),
                name="scale",
                header=Header(),
                input_problems=[],
                on_note=print,
            )
            took = time.perf_counter() - began, time.process_time() - busy
            if folder is None:
                raise SystemExit("no trace was scored")
            rows = (folder / "index.jsonl").read_bytes().count(b"\n")
            if rows != self.traces:
                raise SystemExit(f"{rows} results of {self.traces} traces")
            self.written = sum(file.stat().st_size for file in folder.iterdir())
        return took


def measure(folder: Path, traces: int, backends: list[str]) -> Iterator[dict[str, Any]]:
    size = (folder / "recordings.jsonl").stat().st_size
    for name, evaluators, cases in (
        ("3 evaluators of cases", THREE, True),
        ("6 findings, no cases", PROVEN, False),
    ):
        bench = Bench(folder, traces, evaluators=evaluators, cases=cases)
        seconds, outcomes = bench.worker()
        _, writing = bench.whole(Kept(outcomes))
        row: dict[str, Any] = {
            "what": name,
            "traces": traces,
            "bytes_read": round(size / traces),
            "bytes_sent_back": round(sum(map(len, outcomes)) / traces),
            "bytes_written": round(bench.written / traces),
            "worker_us": round(seconds / traces * 1e6),
            "writer_us": round(writing / traces * 1e6),
            "results": sum(len(msgspec.json.decode(o, type=Outcome).scored) for o in outcomes),
        }
        for backend in backends:
            kind, _, workers = backend.partition(":")
            spec = {"type": kind, **({"workers": int(workers)} if workers else {})}
            took, _ = bench.whole(make_backend(spec, folder, Worker))
            row[backend] = round(took, 2)
        yield row


def _raised(error: InputError) -> None:
    raise error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--backend", action="append", help="local, local:2, ray:2; may be repeated")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="baton-scale-") as name:
        folder = Path(name)
        made = [sys.executable, str(HERE / "generate.py"), name, "--form", "lines", "--seed", "7"]
        subprocess.run([*made, "--cases", str(given.traces)], check=True, stdout=subprocess.DEVNULL)
        print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
        with chdir(folder):
            for row in measure(folder, given.traces, given.backend or ["local", "local:2"]):
                print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
