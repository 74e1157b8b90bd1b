"""Recorded traces and cases for tests of backends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from baton.model import Trace
from baton.testing import build
from baton.testing.build import run, turn


def numbered(number: int) -> Trace:
    """A trace of one turn and one agent; every fifth one has the wrong agent."""
    agent = "billing" if number % 5 else "weather"
    said = turn(f"question {number}", run(agent), output="answer")
    return build.trace(said, id=f"case-{number}")


def line(number: int) -> bytes:
    """A trace as a line of a JSON-lines file."""
    return msgspec.json.encode(numbered(number)) + b"\n"


def write_lines(file: Path, count: int, broken: tuple[int, ...] = ()) -> Path:
    """Write traces; lines at ``broken`` places are none."""
    lines = [b"{ no\n" if n in broken else line(n) for n in range(count)]
    file.write_bytes(b"".join(lines))
    return file


def write_cases(file: Path, count: int) -> Path:
    """Write the cases of these traces."""
    cases: list[dict[str, Any]] = [
        {"id": f"case-{n}", "input": f"question {n}", "agents": ["billing"]} for n in range(count)
    ]
    file.write_bytes(b"".join(msgspec.json.encode(case) + b"\n" for case in cases))
    return file


def same_but_for_timings(one: Path, other: Path) -> None:
    """Hold two folders against each other, byte for byte."""
    for name in ("index.jsonl", "bodies.jsonl"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    headers = [
        msgspec.json.decode((folder / "evaluation.json").read_bytes()) for folder in (one, other)
    ]
    for header in headers:
        for key in ("id", "timings"):
            header.pop(key)
    assert headers[0] == headers[1]
