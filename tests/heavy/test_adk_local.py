"""Agents of ADK in this process, wherever they are named from."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.providers.conftest import CaseCancelled, Surroundings, make_provider

import baton
from baton.model import Case, Content, ExpectedTurn, Said, Trace

pytestmark = [
    pytest.mark.heavy,
    # ADK's own code warns of its own code.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
CASE = {"id": "ask", "input": "Hi", "response_contains": ["streaming mode NONE"]}


@pytest.mark.parametrize("agent", [".", "__init__.py", "agent.py", "../mode_teller"])
def test_agents_may_be_named_from_their_own_folder(apps: Path, tmp_path: Path, agent: str) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(CASE) + "\n")
    command = [sys.executable, "-m", "baton", "eval", agent, str(cases), "--out", str(tmp_path)]
    (apps / "mode_teller" / "__init__.py").touch()
    ended = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=apps / "mode_teller",
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_config_may_stand_in_the_folder_of_its_agents(apps: Path) -> None:
    case = Case(id="ask", turns=[ExpectedTurn(input=Content(text="Hi"))])

    async def run() -> str | None:
        around = Surroundings(apps / "mode_teller")
        async with make_provider({"type": "adk_local", "path": "."}, around) as provider:
            trace = await provider(case)
        return trace.turns[0].output.text if trace.turns[0].output else None

    assert asyncio.run(run()) == "streaming mode NONE"


def test_a_case_that_is_ended_keeps_what_its_agents_did(apps: Path) -> None:
    turns = [ExpectedTurn(input=Content(text="Please send a courier."))]
    case = Case(id="slow", turns=turns)

    async def run() -> CaseCancelled:
        options = {"type": "adk_local", "path": str(apps / "parcel_desk")}
        async with make_provider(options) as provider:
            task = asyncio.ensure_future(provider(case))
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(CaseCancelled) as raised:
                await task
            return raised.value

    trace = asyncio.run(run()).trace
    assert trace is not None
    (turn,) = trace.turns
    assert (turn.status, turn.error) == ("incomplete", "the case was ended before the turn was")
    assert [dispatch.to_agent for dispatch in turn.dispatches] == ["courier_agent"]


def test_agents_in_this_process_tell_what_they_were_given(apps: Path) -> None:
    case = Case(id="report", turns=[ExpectedTurn(input=Content(text="Write the report."))])

    async def run() -> Trace:
        options = {"type": "adk_local", "path": str(apps / "report_pipeline")}
        async with make_provider(options) as provider:
            return await provider(case)

    trace = asyncio.run(run())
    (turn,) = trace.turns
    said = {
        step.id: step.content.plain()
        for run in turn.runs
        for step in run.steps
        if isinstance(step, Said)
    }
    given = [[said[r.id] for r in run.context or [] if r.id in said] for run in turn.runs]
    plan, market, risks, draft, *_ = said.values()
    assert [run.agent for run in turn.runs[:4]] == [
        "planner", "researcher_a", "researcher_b", "writer",
    ]  # fmt: skip
    assert given[:4] == [[], [plan], [plan], [plan, market, risks]]
    assert draft in given[4]
    assert {dispatch.basis for dispatch in turn.dispatches} == {"structure"}
    scores = baton.score([trace], evaluators=["context_carried"]).results[0].scores
    assert {score.status for score in scores} <= {"passed", "skipped"}
    assert "passed" in {score.status for score in scores}
