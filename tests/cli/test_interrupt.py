"""Ctrl-C: once ends what is in play and says where it is stored, twice ends at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

AGENT = """
import asyncio, sys
async def stubborn(message):
    print("playing", file=sys.stderr, flush=True)
    try:
        await asyncio.sleep(600)
    finally:
        while True:
            print("cleaning up", file=sys.stderr, flush=True)
            await asyncio.sleep(0.1)
"""


def test_a_second_ctrl_c_waits_for_no_cleaning_up(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: hi, agents: [desk]}]\n")
    command = [sys.executable, "-m", "baton", "eval", "shop.py:stubborn", "cases.yaml"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line, word in (("playing", signal.SIGINT), ("cleaning up", signal.SIGINT)):
            while line not in process.stderr.readline():
                pass
            process.send_signal(word)
        said = process.stderr.read()
        assert process.wait(60) == 130
    # After the first one an agent has 5 seconds to clean up, in which it says so 50 times. Counted
    # and not timed, as a busy machine may take seconds to end a process.
    assert said.count("cleaning up") < 20
    assert "results so far: baton report" in said
    assert said.endswith("baton: interrupted\n")
