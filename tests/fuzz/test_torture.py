"""The torture of a million inputs works: a small share of it, and what it says of a failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.torture.fuzz import made

ROOT = Path(__file__).parents[2]


def _torture(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.torture.fuzz", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.heavy
def test_a_share_of_the_million_inputs_is_read_or_refused() -> None:
    result = _torture("--share", "0.002", "--seed", "11")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.startswith("2,000 inputs in ")
    assert " 0 failed" in result.stdout
    assert "slowest: " in result.stdout


def test_an_input_is_the_same_each_time_it_is_asked_for() -> None:
    assert [made(5, number) for number in range(50)] == [made(5, number) for number in range(50)]
    assert made(5, 1) != made(6, 1)
    result = _torture("--seed", "5", "--only", "1")
    assert result.returncode == 0, result.stderr
