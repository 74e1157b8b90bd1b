"""The demo of improvements tells its whole story."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.heavy


def test_three_weaknesses_are_fixed_and_a_hopeless_one_is_not() -> None:
    done = subprocess.run(
        [sys.executable, "examples/improve/demo.py"],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("desk", "refunds", "billing"):
        assert f"agent:{name}: proven" in done.stdout
    assert "it ends as no proven gain" in done.stdout
