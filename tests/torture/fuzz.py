"""A million broken inputs for all readers: ``python -m tests.torture.fuzz [--share 0.1]``.

Input number N of a seed is always the same, so that a failure is repeated with
``--seed S --only N``. Two processes take turns. An input fails when it crashes (any exception but
InputError, or the end of the process), hangs, or makes an unsound record; all together fail when
memory grows.
"""

from __future__ import annotations

import argparse
import heapq
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from tests.fuzz.corpus import KINDS, small, small_datasets
from tests.fuzz.harm import broken_bytes, harmed_file
from tests.fuzz.outcome import outcome
from tests.fuzz.seeds import HEADER

import baton
from baton.config import load_config
from baton.evaluators.judging.rubric_files import load_rubric
from baton.model import InputError
from baton.readers import load_catalog

INPUTS = 1_000_000
SECONDS = 20.0
"""How long one input may take; the machine may be busy."""
HANG = 60.0
"""After how many seconds without a new input a process is stuck where no signal comes through."""
GROWTH = 200 << 20
"""Bytes that a process may grow by after its caches are filled."""
_WARM = 3_000
_PROCESSES = 2
_STRUCTURED = 0.25
_DATASETS = 0.3


class Failure(NamedTuple):
    """An input that failed, and how."""

    number: int
    what: str


class Report(NamedTuple):
    """What a process found."""

    done: int
    refused: int
    growth: int
    slowest: list[tuple[float, int, str]]
    failures: list[Failure]


class TooSlowError(Exception):
    """An input took too long."""


def made(seed: int, number: int) -> tuple[str, str, bytes]:
    """Return input ``number`` of a seed: what it is of, its suffix, and its bytes."""
    dice = random.Random(f"{seed}:{number}")
    is_dataset = dice.random() < _DATASETS
    kind = "dataset" if is_dataset else dice.choice(KINDS)
    suffix, data = dice.choice(small_datasets() if is_dataset else small(kind))
    if dice.random() < _STRUCTURED:
        return kind, suffix, harmed_file(data, dice)
    return kind, suffix, broken_bytes(data, dice)


def tried(kind: str, path: Path) -> bool:
    """Read an input with what is for its kind; tell whether it was refused."""
    if kind != "dataset":
        return bool(outcome(path).problems)
    refused = 0
    readers: tuple[Callable[[Path], Any], ...] = (_cases, load_catalog, _config, load_rubric)
    # A definition of agents is not a dataset, but a dataset may be given for one.
    for read in readers if path.suffix == ".yaml" else readers[:2]:
        try:
            read(path)
        except InputError as error:
            refused += 1
            if not error.problems or not all(problem.message for problem in error.problems):
                raise AssertionError("an error that says nothing") from error
    return refused > 0


def _cases(path: Path) -> None:
    for case in baton.load_dataset(path):
        assert case.id


def _config(path: Path) -> None:
    load_config(path, own_code=False)


def work(seed: int, numbers: range, place: Any, answers: Any) -> None:
    """Try inputs one after the other; ``place`` says which one is being tried."""
    signal.signal(signal.SIGALRM, _too_slow)
    failures: list[Failure] = []
    slowest: list[tuple[float, int, str]] = []
    done = refused = grown = 0
    shared = Path("/dev/shm")  # noqa: S108 - a folder in memory; its files have unique names
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        (Path(folder) / "evaluation.json").write_text(json.dumps(HEADER))
        for number in numbers:
            place.value = number
            kind, suffix, data = made(seed, number)
            path = Path(folder) / f"{'bodies' if kind == 'evaluation' else 'run'}{suffix}"
            path.write_bytes(data)
            began = time.perf_counter()
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                refused += tried(kind, path)
            except (Exception, TooSlowError):  # noqa: BLE001 - a crash is what is looked for
                failures.append(Failure(number, f"{kind}{suffix}: {traceback.format_exc(-3)}"))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            done += 1
            took = time.perf_counter() - began
            heapq.heappush(slowest, (took, number, kind))
            slowest = heapq.nlargest(5, slowest) if len(slowest) > 500 else slowest
            grown = resident() if done == min(_WARM, len(numbers) // 2) else grown
    report = Report(done, refused, resident() - grown, heapq.nlargest(5, slowest), failures)
    answers.put(tuple(report))


def resident() -> int:
    """Return the bytes of memory that this process has."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else 0


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlowError(f"took more than {SECONDS:g} seconds")


def run(seed: int, inputs: int) -> int:
    """Try all inputs in two processes; print what was found, and return the exit code."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    began = time.monotonic()
    workers = []
    for part in range(_PROCESSES):
        place = context.Value("q", -1, lock=False)
        numbers = range(part, inputs, _PROCESSES)
        worker = context.Process(target=work, args=(seed, numbers, place, answers), daemon=True)
        worker.start()
        workers.append((worker, place))
    reports: list[Report] = []
    lost: list[Failure] = []
    watched = {worker.pid: (place.value, began) for worker, place in workers}
    waiting = list(workers)
    while len(reports) + len(lost) < _PROCESSES:
        while not answers.empty():
            reports.append(Report(*answers.get()))
        for worker, place in list(waiting):
            number, since = watched[worker.pid]
            now = time.monotonic()
            if place.value != number:
                watched[worker.pid] = (place.value, now)
            elif worker.exitcode:
                lost.append(Failure(number, f"the process ended with {worker.exitcode}"))
                waiting.remove((worker, place))
            elif worker.is_alive() and now - since > HANG + SECONDS:
                worker.kill()
                lost.append(Failure(number, f"no progress for {HANG + SECONDS:g} seconds"))
                waiting.remove((worker, place))
        time.sleep(0.1)
    return _told(seed, reports, lost, time.monotonic() - began)


def _told(seed: int, reports: list[Report], lost: list[Failure], seconds: float) -> int:
    failures = sorted([*lost, *(failure for report in reports for failure in report.failures)])
    done = sum(report.done for report in reports)
    refused = sum(report.refused for report in reports)
    growth = max((report.growth for report in reports), default=0)
    print(f"{done:,} inputs in {seconds:.0f} s: {refused:,} refused, {len(failures):,} failed")
    print(f"memory grew by {growth >> 20} MB after the first {_WARM:,} inputs of a process")
    slow = sorted((each for report in reports for each in report.slowest), reverse=True)[:5]
    print("slowest: " + ", ".join(f"{took:.2f} s (input {n}, {kind})" for took, n, kind in slow))
    for failure in failures[:20]:
        print(f"\ninput {failure.number} (--seed {seed} --only {failure.number}): {failure.what}")
    return 1 if failures or growth > GROWTH else 0


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--share", type=float, default=1.0, help="part of the million inputs")
    parser.add_argument("--seed", type=int, default=1, help="which million")
    parser.add_argument("--only", type=int, help="write this input to a file and read it")
    given = parser.parse_args()
    if given.only is None:
        return run(given.seed, max(_PROCESSES, int(INPUTS * given.share)))
    kind, suffix, data = made(given.seed, given.only)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "evaluation.json").write_text(json.dumps(HEADER))
        path = Path(folder) / f"{'bodies' if kind == 'evaluation' else 'run'}{suffix}"
        path.write_bytes(data)
        print(f"{kind}, {len(data):,} bytes: {data[:2000]!r}")
        print("refused" if tried(kind, path) else "read")
    return 0


if __name__ == "__main__":
    sys.exit(main())
