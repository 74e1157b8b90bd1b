"""The demo of the pages: recordings of all frameworks are there, and nothing of it stays."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import baton

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.heavy


def test_the_demo_has_conversations_of_seven_frameworks(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "examples/live/web.py"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT / "src")},
    )
    try:
        assert process.stdout is not None
        address = ""
        for line in process.stdout:
            there = re.search(r"Look at them: (http://\S+)", line)
            if there:
                address = there[1]
                break
        frameworks: set[str] = set()
        end = time.monotonic() + 180
        while len(frameworks) < 7 and time.monotonic() < end:
            rows = baton.connect(address).conversations(limit=500)
            frameworks = {each.framework for each in rows if each.framework}
            time.sleep(0.5)
        assert len(frameworks) >= 7, frameworks
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert not list(tmp_path.glob("*/server.yaml"))
