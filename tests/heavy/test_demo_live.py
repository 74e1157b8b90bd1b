"""The demo of a server: what it shows, and that nothing of it stays."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def printed() -> str:
    done = subprocess.run(
        [sys.executable, "examples/live/demo.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize(
    "service", ["langgraph_desk", "openai_agents_desk", "pydantic_ai_desk", "plain_desk"]
)
def test_conversations_of_four_programs_appear_with_scores(printed: str, service: str) -> None:
    (line,) = re.findall(rf"^{service}: (.+)$", printed, re.MULTILINE)
    agents, _, scores = line.partition(": ")
    assert agents == "front_desk → cashier"
    assert "context_carried passed" in scores
    assert "dispatch_completed passed" in scores
    assert "failed" not in scores


def test_an_alert_says_what_fell_and_the_scores_say_why(printed: str) -> None:
    assert re.search(
        r"^context_carried of cashier is below 0\.9: .* over the last 10", printed, re.M
    )
    assert re.search(r"^\d+ failed, such as: .*`cashier` was not told `\d+`", printed, re.M)


def test_nothing_of_it_is_left(printed: str) -> None:
    assert printed.rstrip().endswith("The server has ended, with exit code 0.")
    for port in set(re.findall(r"http://127\.0\.0\.1:(\d+)", printed)):
        with (
            pytest.raises(ConnectionRefusedError),
            socket.create_connection(("127.0.0.1", int(port)), 5),
        ):
            pass
