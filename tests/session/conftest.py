"""A small project that several tests of what a user can do work in."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDING = ROOT / "examples/adk/recordings/support_desk/refund.sse"
CASES = """
cases:
- {id: refund, input: Please refund order 42., agents: [support_router, billing_agent]}
"""
AGENT = "def reply(message, case):\n    return {'output': 'yes', 'agents': ['desk']}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a recording, its case, and an agent."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases.yaml").write_text(CASES)
    (tmp_path / "refund.sse").write_bytes(RECORDING.read_bytes())
    (tmp_path / "desk_agent.py").write_text(AGENT)
    return tmp_path
