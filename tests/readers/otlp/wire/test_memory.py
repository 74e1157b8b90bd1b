"""How much memory reading takes."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.readers.otlp.wire.conftest import read_conversations

PEAK = """
import resource, sys
from baton.readers.otlp.wire.read import read_conversations
count = sum(len(conversation.spans) for conversation in read_conversations(sys.argv[1]))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def _write(wire: Any, path: Path, traces: int) -> None:
    text = {"text": "x" * 300, "gen_ai.conversation.id": "c"}
    with path.open("wb") as plain, gzip.open(f"{path}.gz", "wb", 1) as packed:
        for number in range(traces):
            attributes = text | {"gen_ai.conversation.id": f"c{number}"}
            spans = [
                wire.span(f"{number}/{i}", f"t{number}", at=number, attributes=attributes)
                for i in range(25)
            ]
            line = wire.line(*spans)
            plain.write(line)
            packed.write(line)


def _peak(path: str, spans: int) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True
    )
    count, peak = done.stdout.split()
    assert int(count) == spans
    return int(peak)


@pytest.mark.heavy
def test_memory_does_not_grow_with_the_file(wire: Any, tmp_path: Path) -> None:
    few, many = tmp_path / "few.jsonl", tmp_path / "many.jsonl"
    _write(wire, few, 400)
    _write(wire, many, 1600)
    for suffix in ("", ".gz"):
        assert _peak(f"{many}{suffix}", 40_000) < 1.1 * _peak(f"{few}{suffix}", 10_000)


def test_who_stops_early_leaves_nothing_open(wire: Any, tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    _write(wire, path, 400)
    for name in (path, f"{path}.gz"):
        conversations = read_conversations(name)
        next(conversations)
        del conversations
