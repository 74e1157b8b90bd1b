"""What docs/ says of accuracy: on enough traces, and good enough.

``make torture`` measures it again, and compares all tables; CI does so for a tenth.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "accuracy.md"


def rows(text: str) -> dict[str, list[str]]:
    """The figures of the first table, by evaluator and fault."""
    first = text.split("### By evaluator\n")[1].split("###", maxsplit=1)[0]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in first.splitlines()]
    return {row[0]: row[1:] for row in cells if row and row[0].startswith("`")}


WRITTEN = rows(PAGE.read_text("utf-8"))


def test_each_fault_is_seeded_at_least_200_times_among_as_many_clean_traces() -> None:
    few = {name: row for name, row in WRITTEN.items() if int(row[0]) < 200 or int(row[3]) < 200}
    assert few == {}
    assert len(WRITTEN) == 12


def test_evaluators_hardly_ever_cry_wolf() -> None:
    precisions = {name: float(row[5]) for name, row in WRITTEN.items()}
    assert {name: each for name, each in precisions.items() if each < 0.9} == {}


def test_findings_spare_calls_and_settle_nothing_wrongly() -> None:
    table = (ROOT / "docs" / "rubrics.md").read_text("utf-8").split("| calls without |")[1]
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.split("\n\n")[0].splitlines()[2:]
    ]
    assert len(cells) == 4
    for _, _, _, without, with_, settled, rightly, wrongly in cells:
        assert int(with_) < int(without)
        assert (int(settled), int(wrongly)) == (int(rightly), 0)


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
