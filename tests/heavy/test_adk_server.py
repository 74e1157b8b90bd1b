"""The recordings are what a real ADK server answers today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.model import ToolCall, Trace
from baton.model.views import agent_chain

ROOT = Path(__file__).parent.parent.parent
RECORDINGS = ROOT / "examples" / "adk" / "recordings"
FILES = sorted(
    path.relative_to(RECORDINGS)
    for path in RECORDINGS.rglob("*")
    if path.suffix in (".sse", ".json") and not path.name.startswith("app_info")
)
pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record all scenarios again, with a server of our own on loopback."""
    folder = tmp_path_factory.mktemp("recordings")
    script = ROOT / "examples" / "adk" / "record.py"
    subprocess.run([sys.executable, script, folder], check=True, timeout=300)
    return folder


def facts(trace: Trace) -> list[dict[str, Any]]:
    """Return what must not change from one recording to the next."""
    return [
        {
            "status": turn.status,
            "error": turn.error,
            "input": turn.input,
            "output": turn.output,
            "chain": agent_chain(trace, turn),
            "dispatches": [
                (d.kind, d.basis, d.from_agent, d.to_agent, d.status, d.group, d.depth)
                for d in turn.dispatches
            ],
            "calls": [
                (run.agent, step.name, step.arguments, step.result, step.status)
                for run in turn.runs
                for step in run.steps
                if isinstance(step, ToolCall)
            ],
            "usage": [run.usage for run in turn.runs],
        }
        for turn in trace.turns
    ]


@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_recording_reads_as_what_the_server_answers_now(fresh: Path, file: Path) -> None:
    (kept,) = baton.load_traces(RECORDINGS / file)
    (now,) = baton.load_traces(fresh / file)
    assert facts(now) == facts(kept)
    assert now.dropped == kept.dropped == []
