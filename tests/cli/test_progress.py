"""How far an evaluation is: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import io
import os
import pty
from contextlib import suppress

import pytest

from baton.cli.progress import Bar, Lines, progress
from baton.model import CaseResult, Status
from baton.testing.build import result


def done(status: Status) -> CaseResult:
    return result(id="a", status=status)


def read_all(terminal: int) -> str:
    """Read what was written to a terminal that is closed on the other side."""
    chunks = []
    with suppress(OSError):  # how the end is told
        while chunk := os.read(terminal, 10_000):
            chunks.append(chunk)
    os.close(terminal)
    return b"".join(chunks).decode()


@pytest.mark.parametrize(
    ("total", "lines"), [(1, 1), (9, 9), (10, 10), (11, 6), (95, 10), (1000, 10)]
)
def test_about_ten_lines_tell_of_any_number_of_cases(total: int, lines: int) -> None:
    out = io.StringIO()
    shown = progress(total, out)
    for number in range(total):
        shown.add(done("passed" if number else "error"))
    shown.close()
    printed = out.getvalue().splitlines()
    assert isinstance(shown, Lines)
    assert len(printed) == lines
    assert printed[-1].startswith(f"{total} of {total}: ")
    assert printed[-1].endswith("1 error")


def test_nothing_to_play_prints_nothing() -> None:
    out = io.StringIO()
    progress(0, out).close()
    assert out.getvalue() == ""


def test_a_terminal_gets_a_bar_that_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    inside, outside = pty.openpty()
    with open(outside, "w") as terminal:
        shown = progress(3, terminal)
        shown.add(done("passed"))
        shown.add(done("failed"))
        shown.close()
    seen = read_all(inside)
    assert isinstance(shown, Bar)
    assert "2/3" in seen
    assert "1 passed, 1 failed" in seen
    assert seen.count("\n") <= 2


def test_progress_that_nobody_reads_any_more_stops_nothing() -> None:
    reading, writing = os.pipe()
    out = open(writing, "w")  # noqa: SIM115 - closed below, where it breaks
    shown = progress(1, out)
    os.close(reading)
    shown.add(done("passed"))
    shown.close()
    with pytest.raises(BrokenPipeError):
        out.close()
