"""What reports say of repeats, and of one thing and of several."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.model import Efficiency
from baton.reports.terminal import case_line

Run = Callable[..., Any]
AGENT = """
import itertools
counter = itertools.count()
def wrong(message):
    return {"output": "ok", "agents": ["desk"]}
def moody(message):
    return {"output": "ok", "agents": ["desk", "billing" if next(counter) in (0, 3) else "weather"]}
"""
CASES = "cases:\n  - {id: refund, input: hi, agents: [desk, billing]}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a case, and agents that fail always, or now and then."""
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "cases.yaml").write_text(CASES)
    return tmp_path


def test_one_failure_of_several_repeats_is_printed_once(baton: Run, folder: Path) -> None:
    line = ["eval", "shop.py:wrong", "cases.yaml", "-e", "agent_chain", "--repeat", "3"]
    outcome = baton(*line, "--markdown", "pr.md")
    assert outcome.code == 1
    assert outcome.out.count("✗ refund") == 1
    assert "✗ refund  failed 3 of 3" in outcome.out
    assert "more case" not in outcome.out
    text = (folder / "pr.md").read_text()
    assert text.count("**`refund`**") == 1
    assert "(failed 3 of 3)" in text


def test_repeats_that_passed_are_not_counted_as_failed(baton: Run, folder: Path) -> None:
    line = ["eval", "shop.py:moody", "cases.yaml", "-e", "agent_chain", "--repeat", "5"]
    outcome = baton(*line, "--concurrency", "1")
    assert "✗ refund  failed 3 of 5" in outcome.out
    detailed = baton("report", "-v").out
    assert [f"{n} of 5" in detailed for n in range(1, 6)] == [True] * 5
    none = baton("report", "--show", "0").out
    assert "… and 3 more cases that did not pass" in none


def test_one_thing_is_said_in_the_singular() -> None:
    one = Efficiency(dispatches=1, tool_calls=1, model_calls=1, tokens=1)
    assert case_line(one) == "1 dispatch · 1 tool call · 1 model call · 1 token"
    two = Efficiency(dispatches=2, tool_calls=2, model_calls=0, tokens=2000)
    assert case_line(two) == "2 dispatches · 2 tool calls · 0 model calls · 2,000 tokens"


def test_one_case_that_could_not_be_evaluated_is_one_case(baton: Run, folder: Path) -> None:
    (folder / "shop.py").write_text("def broken(message):\n    raise RuntimeError('no')\n")
    outcome = baton("eval", "shop.py:broken", "cases.yaml")
    assert outcome.code == 3
    assert "1 of 1 case could not be evaluated" in outcome.out
