"""The demo of the feed: what was seeded is found, one issue is fixed, and stays fixed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def printed() -> str:
    done = subprocess.run(
        [sys.executable, "examples/feed/demo.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def test_the_issues_are_those_that_were_seeded(printed: str) -> None:
    assert "9 kinds were seeded; 20% of the failures are of none." in printed
    figures = re.search(r"precision (\d\.\d+), recall (\d\.\d+)", printed)
    assert figures is not None
    assert min(map(float, figures.groups())) >= 0.9


def test_what_the_model_made_up_is_left_out_and_its_fix_is_proven(printed: str) -> None:
    assert "The customer lies" not in printed
    assert "1 statement left out" in printed
    assert re.search(r"fixed 10 of 10 \[.+\], broke 0 of 12 \[", printed)


def test_the_broken_desk_fails_its_cases_and_the_fixed_one_closes_the_issue(printed: str) -> None:
    evaluated = re.findall(r"^\$ baton eval --trust \. (\w+)\.py.*\n(\w+)", printed, re.MULTILINE)
    assert evaluated == [
        ("shop", "failed"),
        ("fixed_shop", "passed"),
        ("fixed_shop", "passed"),
        ("shop", "failed"),
    ]
    assert re.findall(r"is (fixed|regressed)$", printed, re.MULTILINE) == ["fixed", "regressed"]
