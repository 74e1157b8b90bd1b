"""The simulation of docs/compare.md: false alarms at the stated level, total failure always red."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from gate import BEGIN, DROPS, END, PAGE, REPEATS, SIZES, SUITES, Cell, draws_of, simulate  # noqa: E402


def written() -> dict[Cell, list[int]]:
    """Read red, grey and green of every cell from the page, in 100."""
    text = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    found = {}
    for suite, says in SUITES.items():
        table = text.partition(f"{says}:\n")[2].strip().split("\n\n")[0]
        for line in table.splitlines()[2:]:
            cases, repeats, *shares = (cell.strip() for cell in line.split("|")[1:-1])
            for drop, share in zip(DROPS, shares, strict=False):
                cell = Cell(suite, int(cases), int(repeats), drop)
                found[cell] = [int(number) for number in re.findall(r"\d+", share)]
    return found


def test_the_page_has_every_cell_and_false_alarms_keep_the_stated_level() -> None:
    page = written()
    every = {(suite, cases, repeats) for suite in SUITES for cases in SIZES for repeats in REPEATS}
    assert {cell[:3] for cell in page} == every
    assert max(shares[0] for cell, shares in page.items() if not cell.drop) <= 5


def test_on_the_page_total_failure_of_what_passed_is_red_from_3_cases_on() -> None:
    total = {cell: shares for cell, shares in written().items() if cell.drop == 1}
    assert all(shares == [100, 0, 0] for cell, shares in total.items() if cell.suite == "steady")
    assert all(shares[2] == 0 for shares in total.values())


@pytest.mark.parametrize(
    "cell", [Cell("steady", 4, 1, 1.0), Cell("steady", 4, 1, 0.5), Cell("mixed", 3, 1, 0.0)]
)
def test_the_page_has_what_the_command_gives(cell: Cell) -> None:
    assert [round(100 * share) for share in simulate(cell, draws_of(cell))] == written()[cell]


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize(("cases", "repeats"), [(4, 1), (7, 3)])
def test_false_alarms_are_as_rare_as_stated(suite: str, cases: int, repeats: int) -> None:
    # 60 comparisons: at a true rate of 0.05 more than 8 are red once in 700 times.
    assert simulate(Cell(suite, cases, repeats, 0.0), 60).red <= 8 / 60


@pytest.mark.parametrize("cases", [4, 5, 20])
@pytest.mark.parametrize("repeats", [1, 3])
def test_total_failure_is_red_and_never_grey(cases: int, repeats: int) -> None:
    assert simulate(Cell("steady", cases, repeats, 1.0), 10) == (1.0, 0.0, 0.0)
