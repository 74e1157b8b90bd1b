"""Killing a worker of a Ray cluster that a process of ours started."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")


def below(pid: int) -> Iterator[int]:
    """Yield the processes that descend from one."""
    parents = {
        int(each.name): parent
        for each in PROC.iterdir()
        if each.name.isdigit() and (parent := _parent(each)) is not None
    }
    for each in parents:
        ancestor: int | None = each
        while ancestor is not None and ancestor != pid:
            ancestor = parents.get(ancestor)
        if ancestor == pid and each != pid:
            yield each


def _parent(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def workers_of(pid: int) -> list[int]:
    """Return the actors of Baton that a driver's own cluster has."""
    found = []
    for each in below(pid):
        try:
            name = (PROC / str(each) / "cmdline").read_bytes()
        except OSError:
            continue
        if name.startswith(b"ray::RayWorker"):
            found.append(each)
    return found


def kill_one(pid: int, out: Path, lines: int, within: float = 90) -> int:
    """Kill a worker once so many results are there; return how many there were."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        done = sum(file.read_bytes().count(b"\n") for file in out.glob("*/index.jsonl"))
        workers = workers_of(pid)
        if done >= lines and workers:
            os.kill(workers[0], signal.SIGKILL)
            return done
        time.sleep(0.02)
    raise AssertionError("the run did not get so far")
