"""Measure the cost of a guard: of decisions without models, and of its import.

python benchmarks/guard.py            # milliseconds: p50, p95
python benchmarks/guard.py --rounds 5000
python benchmarks/guard.py --server http://localhost:4318   # the state on a server, too

A round is a dispatch, a call of a tool and an answer of 2 kB, decided by examples/guard/policy.yaml
(eight rules, among them secrets and a finding).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from baton.guard import Guard

POLICY = Path(__file__).parent.parent / "examples" / "guard" / "policy.yaml"
ANSWER = "The sample is clean, all 14 values are in range. " * 40
IMPORT = "import time; t = time.{clock}(); from baton.guard import Guard; print(time.{clock}() - t)"


def timed(call: Callable[[], object], into: list[float]) -> None:
    began = time.perf_counter()
    call()
    into.append((time.perf_counter() - began) * 1000)


def decisions(store: Path | str | None, rounds: int) -> dict[str, list[float]]:
    guard = Guard(POLICY, store=store)
    taken: dict[str, list[float]] = {"dispatch": [], "tool": [], "answer": []}
    for _ in range(rounds // 50):
        desk = guard.begin("desk", "Is sample R-77 clean?")
        for number in range(50):
            began = time.perf_counter()
            lab = guard.start("lab", f"Test sample R-77, part {number}.", by=desk)
            taken["dispatch"].append((time.perf_counter() - began) * 1000)
            timed(lambda at=lab: guard.call(at, "Read", {"path": "a.csv"}), taken["tool"])  # type: ignore[misc]
            timed(lambda at=lab: guard.answer(at, ANSWER), taken["answer"])  # type: ignore[misc]
            guard.used(lab, tokens=1200, cost_usd=1e-6)
            guard.stop(lab)
    return taken


def round_trip(server: str, rounds: int) -> list[float]:
    """Ask for what a server does not know: what HTTP alone takes, over an open connection."""
    parts = urlsplit(server)
    connection = HTTPConnection(parts.hostname or "", parts.port or 80)
    taken: list[float] = []

    def ask() -> None:
        connection.request("GET", "/nothing")
        connection.getresponse().read()

    for _ in range(rounds):
        timed(ask, taken)
    connection.close()
    return taken


def shown(name: str, taken: list[float]) -> None:
    cut = statistics.quantiles(taken, n=20)
    print(f"{name:28}{statistics.median(taken):8.2f}{cut[18]:8.2f}")


def imported(clock: str) -> float:
    """Return the minimum of ten times in milliseconds, because others use the machine, too."""
    code = IMPORT.format(clock=clock)
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        for _ in range(10)
    ]
    return min(float(run.stdout) for run in runs) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--server")
    given = parser.parse_args()
    rounds = given.rounds
    print(f"{'':28}{'p50':>8}{'p95':>8}")
    with tempfile.TemporaryDirectory() as folder:
        stores: dict[str, Path | str | None] = {"memory": None, "file": Path(folder) / "guard.db"}
        if given.server is not None:
            stores["server"] = given.server
        for name, store in stores.items():
            for event, taken in decisions(store, rounds).items():
                shown(f"{event}, state in {name}", taken)
    if given.server is not None:
        shown("round trip to the server", round_trip(given.server, rounds))
    wall, work = imported("perf_counter"), imported("process_time")
    print(f"import of baton.guard: {wall:.0f} ms, {work:.0f} ms of the processor")


if __name__ == "__main__":
    main()
