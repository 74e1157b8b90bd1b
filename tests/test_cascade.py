"""docs/rubrics.md holds what `python -m accuracy.cascade` counts: calls that findings spare."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.heavy
def test_findings_spare_calls_and_settle_nothing_wrongly() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "accuracy.cascade"],
        cwd=ROOT / "benchmarks",
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    assert ran.stdout.strip() in (ROOT / "docs" / "rubrics.md").read_text("utf-8")
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in ran.stdout.splitlines()[2:]
    ]
    assert len(rows) == 4
    for _, _, _, without, with_, settled, rightly, wrongly in rows:
        assert int(with_) < int(without)
        assert (int(settled), int(wrongly)) == (int(rightly), 0)
