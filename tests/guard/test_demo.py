"""The demo of guards, as `make demo-guard` runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "guard" / "demo.py"


def test_the_demo_stops_runaways_keeps_a_key_and_reads_recordings() -> None:
    done = subprocess.run(
        [sys.executable, DEMO], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "dispatches: 10, the next at depth 11: refused" in done.stdout
    assert "25 claims checked by others. that is enough help" in done.stdout
    assert "I signed in with [key:" in done.stdout
    assert "3 would have been blocked" in done.stdout
