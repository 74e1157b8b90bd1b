"""An agent of a framework that is named on the command line: the record shows what it did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.heavy  # a framework in processes of its own

DESK = """
import os

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


def desk_says(messages, info):
    said = [m for m in messages if m.kind == "response"]
    return ModelResponse([TextPart("done") if said else ToolCallPart("ask_clerk", {"task": "Refund 7"})])


clerk = Agent(FunctionModel(lambda *_: ModelResponse([TextPart("paid")])), name="clerk")
desk = Agent(FunctionModel(desk_says), name="desk")


@desk.tool_plain
async def ask_clerk(task: str) -> str:
    return (await clerk.run(task)).output


async def answer(message):
    return f"{(await desk.run(message)).output} by {os.getpid()}, child of {os.getppid()}"
"""
CREW = """
class Done:
    raw = "done"


class Crew:
    def fetch_inputs(self):
        return {"topic"}

    async def kickoff_async(self, inputs):
        return Done()
"""
CASES = "cases:\n- {id: a, input: refund 7}\n"


def evaluated(folder: Path, target: str, **environment: str) -> tuple[str, dict[str, Any]]:
    """Evaluate one case; return what was printed, and the turn of its record."""
    (folder / "cases.yaml").write_text(CASES)
    command = [sys.executable, "-m", "baton", "eval", target, "cases.yaml", "-e", "latency"]
    done = subprocess.run(
        [*command, "--out", "stored"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (bodies,) = folder.glob("stored/*/bodies.jsonl")
    (turn,) = json.loads(bodies.read_text().splitlines()[0])["trace"]["turns"]
    return done.stdout + done.stderr, turn


def test_the_record_shows_the_agents_of_an_object(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(DESK)
    _, turn = evaluated(tmp_path, "app.py:desk")
    assert [run["agent"] for run in turn["runs"]] == ["desk", "clerk"]
    assert [(d["from_agent"], d["to_agent"]) for d in turn["dispatches"]] == [("desk", "clerk")]


def test_a_function_is_called_as_it_is_and_a_notice_says_what_is_not_recorded(
    tmp_path: Path,
) -> None:
    (tmp_path / "app.py").write_text(DESK)
    said, turn = evaluated(tmp_path, "app.py:answer")
    assert turn["output"]["text"].endswith(f"child of {os.getpid()}")
    assert not turn.get("runs")
    assert (
        "`app.py:answer` is a function: what the agents that it calls do is known only if" in said
    )
    assert "`instrument: true` in a config records it" in said


def test_what_would_record_an_object_is_named_where_it_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "crewai.py").write_text(CREW)
    (tmp_path / "app.py").write_text("from crewai import Crew\ncrew = Crew()\n")
    said, turn = evaluated(tmp_path, "app.py:crew")
    assert turn["output"]["text"] == "done"
    assert "pip install openinference-instrumentation-crewai" in said


def test_an_object_is_played_where_opentelemetry_is_switched_off(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(DESK)
    said, turn = evaluated(tmp_path, "app.py:desk", OTEL_SDK_DISABLED="true")
    assert turn["output"]["text"] == "done"
    assert "OTEL_SDK_DISABLED is set" in said
