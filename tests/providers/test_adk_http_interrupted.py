"""Evaluations of a live server that are ended before their time leave no session behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.providers.conftest import HANG, AdkServer, event, sse, stream


def wait_for_message(adk: AdkServer, count: int) -> None:
    """Wait until so many messages reached the server."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if len(adk.asked("run_sse")) >= count:
            return
        time.sleep(0.01)
    raise AssertionError(f"there were never {count} messages")


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_sessions_in_play_are_deleted(
    adk: AdkServer, tmp_path: Path, sent: int, code: int
) -> None:
    adk.script("run_sse", stream(sse(event("Let me see.")), then="hang"))
    adk.always("run_sse", HANG)
    lines = [json.dumps({"id": f"c{n}", "input": "hi", "agents": ["support"]}) for n in range(4)]
    (tmp_path / "cases.jsonl").write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "baton", "eval", adk.url, "cases.jsonl", "--concurrency", "2"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for_message(adk, 2)
        process.send_signal(sent)
        assert process.wait(timeout=60) == code
    finally:
        process.kill()
        process.wait()
    assert len(adk.asked("delete")) == 2
    assert adk.sessions == {}
    (header,) = tmp_path.glob(".baton/evaluations/*/evaluation.json")
    assert json.loads(header.read_text())["status"] == "interrupted"
