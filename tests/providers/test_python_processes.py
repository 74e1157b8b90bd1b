"""`python` with `workers: process`: what a case does to its process is that case's error alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
AGENT = """
import asyncio, ctypes, os, time
answer = {"output": "done", "agents": ["desk"], "tool_calls": []}
async def reply(message, session):
    session["asked"] = session.get("asked", 0) + 1
    if message == "exit":
        os._exit(3)
    if message == "crash":
        ctypes.string_at(0)
    if message == "block":
        time.sleep(60)
    if message == "raise":
        raise ValueError("no model")
    await asyncio.sleep(0)
    return {**answer, "output": f"{message} {session['asked']}"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An agent that does to its process what the message says, and a case for each."""
    (tmp_path / "agent.py").write_text(AGENT)
    words = ("hi", "exit", "crash", "block", "raise", "bye")
    lines = [json.dumps({"id": word, "input": word, "agents": ["desk"]}) for word in words]
    two = {"id": "two", "turns": [{"input": "a", "agents": ["desk"]}, {"input": "b"}]}
    (tmp_path / "cases.jsonl").write_text("\n".join([*lines, json.dumps(two)]) + "\n")
    (tmp_path / "baton.yaml").write_text(
        "providers: [{type: python, target: 'agent.py:reply', workers: process}]\n"
        "dataset: cases.jsonl\nevaluators: [agent_chain]\ntimeout: 2\nconcurrency: 3\n"
    )
    return tmp_path


def test_a_case_that_crashes_ends_or_blocks_its_process_spoils_no_other(
    baton: Run, folder: Path
) -> None:
    outcome = baton("eval", "--json")
    assert outcome.code == 3
    found = {each["case_id"]: each for each in json.loads(outcome.out)["results"]}
    passed = {name for name, each in found.items() if each["status"] == "passed"}
    assert passed == {"hi", "bye", "two"}
    assert "exit code 3" in found["exit"]["error"]
    assert "signal 11" in found["crash"]["error"]
    assert "did not end within 2 s" in found["block"]["error"]
    assert "the provider raised ValueError: no model" in found["raise"]["error"]
    assert [turn["output"]["text"] for turn in found["two"]["trace"]["turns"]] == ["a 1", "b 2"]


def test_a_function_that_cannot_be_loaded_is_reported_before_any_case(
    baton: Run, folder: Path
) -> None:
    (folder / "agent.py").write_text("raise RuntimeError('no key')")
    outcome = baton("eval")
    assert outcome.code == 2
    assert "no key" in outcome.err
