"""The demo of live agents."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def printed() -> list[str]:
    done = subprocess.run(
        ["make", "--silent", "demo-adk"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def after(printed: list[str], head: str) -> str:
    """Return what is printed of one case."""
    start = printed.index(head) + 1
    return "\n".join(printed[start : printed.index("", start)])


def test_it_shows_a_case_that_passes_one_that_fails_and_one_that_errs(printed: list[str]) -> None:
    assert "cases 1 1 0 1" in printed
    assert "exact: support_router → billing_agent" in after(printed, "✓ refund")
    assert "missing: billing_agent" in after(printed, "✗ wrong_specialist")
    assert "missing `lookup_order`" in after(printed, "✗ wrong_specialist")
    assert "turn 1 failed: scripted model failure" in after(printed, "! model_error")


def test_it_says_that_something_could_not_be_evaluated(printed: list[str]) -> None:
    assert "! 1 of 3 cases could not be evaluated" in printed
    assert printed[-1] == "exit code 3"


def test_its_server_is_gone_afterwards(printed: list[str]) -> None:
    (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)", "\n".join(printed))
    with (
        pytest.raises(ConnectionRefusedError),
        socket.create_connection(("127.0.0.1", int(port)), 5),
    ):
        pass
