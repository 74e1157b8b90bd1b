"""docs/accuracy.md holds what the command measures, on enough traces."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "accuracy.md"


def rows(text: str) -> dict[str, list[str]]:
    """The figures of the first table, by evaluator and fault."""
    first = text.split("### By evaluator\n")[1].split("###", maxsplit=1)[0]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in first.splitlines()]
    return {row[0]: row[1:] for row in cells if row and row[0].startswith("`")}


@pytest.fixture(scope="module")
def measured() -> str:
    command = [sys.executable, "-m", "accuracy"]
    ran = subprocess.run(
        command, cwd=ROOT / "benchmarks", capture_output=True, text=True, check=True, timeout=840
    )
    return ran.stdout.strip()


# Measuring takes two minutes, and several times as long on a busy machine.
@pytest.mark.timeout(900)
@pytest.mark.heavy
def test_the_tables_in_the_docs_are_what_the_command_gives(measured: str) -> None:
    page = PAGE.read_text("utf-8")
    written = re.split("<!-- (?:tables|end of tables).*-->", page)[1].strip()
    assert written == measured, f"{PAGE.name} is out of date: `make accuracy` writes it"


@pytest.mark.timeout(900)
@pytest.mark.heavy
def test_each_fault_is_seeded_at_least_200_times_among_as_many_clean_traces(measured: str) -> None:
    few = {
        name: row for name, row in rows(measured).items() if int(row[0]) < 200 or int(row[3]) < 200
    }
    assert few == {}
    assert len(rows(measured)) == 12


@pytest.mark.timeout(900)
@pytest.mark.heavy
def test_evaluators_hardly_ever_cry_wolf(measured: str) -> None:
    precisions = {name: float(row[5]) for name, row in rows(measured).items()}
    assert {name: each for name, each in precisions.items() if each < 0.9} == {}


LIST = """
- asked: "What does the van cost?"
  result: "The van costs 23,900 EUR, and is in Ulm."
  agrees: ["It costs €23,900."]
  contradicts: ["The van costs 29,300 EUR."]
"""


def test_texts_of_other_people_are_measured_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "result_contradicted.yaml").write_text(LIST, "utf-8")
    command = [sys.executable, "-m", "accuracy", "--texts", str(tmp_path)]
    ran = subprocess.run(
        [*command, "--only", "changed_value"],
        cwd=ROOT / "benchmarks",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "changed_value: good: It costs €23,900." in ran.stdout
    assert "changed_value: broken, found: The van costs 29,300 EUR." in ran.stdout
    assert (
        "| `result_contradicted`, changed_value | 1 | 1 | 0 | 1 | 0 | 1.000 | 1.000 |" in ran.stdout
    )
