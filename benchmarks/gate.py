"""Simulate the decisions of `regression` and `baton compare` for evaluations with a known drop.

python benchmarks/gate.py                # the tables of docs/compare.md, about 5 minutes
python benchmarks/gate.py --write        # into the page
python benchmarks/gate.py --draws 20     # a quick look
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from baton.gate.compare_axes import PASSED
from baton.gate.compare_evaluations import compare
from baton.gate.snapshot import AxisValues, CaseSnapshot, Snapshot

PAGE = Path(__file__).parents[1] / "docs" / "compare.md"
BEGIN = "<!-- simulation: written by `python benchmarks/gate.py --write` -->"
END = "<!-- end of simulation -->"
SIZES = (3, 4, 7, 20, 60, 300)
REPEATS = (1, 3, 10)
DROPS = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)
DRAWS = 50
DRAWS_OF_LEVEL = 200
SUITES = {
    "steady": "Every case passes always before the change",
    "mixed": "60 of 100 cases pass always before the change, the others in 50 to 100 of 100 runs",
    "coins": "Every case passes in half of its runs: the worst for false alarms",
}


class Cell(NamedTuple):
    """A simulated suite: its number of cases and repeats, and its true drop (0 to 1)."""

    suite: str
    cases: int
    repeats: int
    drop: float


class Shares(NamedTuple):
    """Shares of red, grey and green among comparisons; 0 to 1."""

    red: float
    grey: float
    passed: float

    def __str__(self) -> str:
        return " / ".join(f"{100 * share:.0f}" for share in self)


def simulate(cell: Cell, draws: int) -> Shares:
    """Compare so many pairs of evaluations; the same at every call.

    Each run of a case passes by itself, with the chance of its case; after the change that is
    lower by ``drop`` of itself. An evaluator that fails with the case and one that fails in half of
    its failures are further axes, as correlated as in real suites.
    """
    draw = random.Random(f"{cell}")
    counts = {"worse": 0, "unclear": 0, "same": 0, "better": 0}
    for _ in range(draws):
        rates = [_rate(cell.suite, draw) for _ in range(cell.cases)]
        before = _evaluation("before", rates, cell.repeats, draw)
        after = _evaluation("after", [r * (1 - cell.drop) for r in rates], cell.repeats, draw)
        counts[compare(before, after).outcome] += 1
    green = counts["same"] + counts["better"]
    return Shares(counts["worse"] / draws, counts["unclear"] / draws, green / draws)


def draws_of(cell: Cell) -> int:
    """Return more where false alarms are measured, and fewer of 300 cases, as these take long."""
    if cell.cases < 300:
        return DRAWS if cell.drop else DRAWS_OF_LEVEL
    return DRAWS // 5 if cell.drop else DRAWS_OF_LEVEL // 5


def _rate(suite: str, draw: random.Random) -> float:
    if suite == "coins":
        return 0.5
    always = suite == "steady" or draw.random() < 0.6
    return 1.0 if always else draw.uniform(0.5, 1.0)


def _evaluation(name: str, rates: list[float], repeats: int, draw: random.Random) -> Snapshot:
    cases = []
    for number, rate in enumerate(rates):
        passes = [float(draw.random() < rate) for _ in range(repeats)]
        some = [1.0 if hit or draw.random() < 0.5 else 0.0 for hit in passes]
        axes = [
            AxisValues(axis, None, values)
            for axis, values in ((PASSED, passes), ("chain", passes), ("scope", some))
        ]
        cases.append(CaseSnapshot(id=f"c{number}", axes=axes))
    return Snapshot(id=name, name=name, status="passed", repeats=repeats, cases=cases)


def cells(suite: str) -> Iterator[Cell]:
    """Yield what the table of a suite holds; of the worst one the false alarms alone."""
    for cases in SIZES:
        for repeats in REPEATS:
            for drop in DROPS if suite != "coins" else (0.0,):
                yield Cell(suite, cases, repeats, drop)


def row(cases: int, repeats: int, shares: list[Shares]) -> str:
    """Write a row of a table."""
    return f"| {cases} | {repeats} | {' | '.join(map(str, shares))} |"


def tables(draws: int | None, jobs: int) -> str:
    """Simulate all of it, and write the tables as Markdown."""
    every = [cell for suite in SUITES for cell in cells(suite)]
    with ProcessPoolExecutor(jobs) as pool:
        counts = [draws or draws_of(cell) for cell in every]
        shares = dict(zip(every, pool.map(simulate, every, counts, chunksize=1), strict=True))
    lines = []
    for suite, says in SUITES.items():
        drops = [drop for drop in DROPS if suite != "coins" or not drop]
        lines += ["", f"{says}:", ""]
        titles = [f"drop {100 * drop:.0f} %" if drop else "no drop" for drop in drops]
        lines.append(f"| cases | repeats | {' | '.join(titles)} |")
        lines.append("| ---: | ---: |" + " ---: |" * len(drops))
        for cases in SIZES:
            for repeats in REPEATS:
                found = [shares[Cell(suite, cases, repeats, drop)] for drop in drops]
                lines.append(row(cases, repeats, found))
    return "\n".join(lines[1:]) + "\n"


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/compare.md")
    parser.add_argument("--draws", type=int, help="comparisons of each cell")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    made = tables(given.draws, given.jobs)
    if not given.write:
        print(made)
        return
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{made}{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
