"""Tests written for ADK's own pytest helper, with one import changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from baton.testing.adk import suite_with_state

pytestmark = pytest.mark.heavy

TEST = '''
from baton.testing.adk import AgentEvaluator

def test_with_single_test_file():
    """Test the agent's basic ability via a session file."""
    AgentEvaluator.evaluate(
        agent_module="home_automation_agent",
        eval_dataset_file_path_or_dir="fixture/simple.test.json",
    )
'''
AWAITED = """
import asyncio
from baton.testing.adk import AgentEvaluator

async def ask(path, **more):
    await AgentEvaluator.evaluate(
        agent_module="home_automation_agent.agent",
        eval_dataset_file_path_or_dir=path,
        num_runs=1, **more,
    )

def test_awaited():
    asyncio.run(ask("fixture"))
"""


def status_of(name: str, asked: str, said: str, status: str) -> dict[str, Any]:
    args = {"location": "Bedroom", "device_id": "device_2", "status": status}
    return {
        "eval_id": name,
        "conversation": [
            {
                "user_content": {"parts": [{"text": asked}], "role": "user"},
                "final_response": {"parts": [{"text": said}], "role": "model"},
                "intermediate_data": {"tool_uses": [{"args": args, "name": "set_device_info"}]},
            }
        ],
        "session_input": {"app_name": "home_automation_agent", "user_id": "u", "state": {}},
    }


def write(folder: Path, name: str, *cases: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps({"eval_set_id": "s", "eval_cases": list(cases)}))


OFF = status_of(
    "off", "Turn off device_2 in the Bedroom.", "I have set the device_2 status to off.", "OFF"
)
WRONG = status_of(
    "wrong", "Turn off device_2 in the Bedroom.", "I have set the device_2 status to off.", "ON"
)


def run_pytest(folder: Path, apps: Path, test: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_home.py").write_text(test)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(apps), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_test_of_the_guide_passes_with_one_import_changed(tmp_path: Path, apps: Path) -> None:
    write(tmp_path / "fixture", "simple.test.json", OFF)
    done = run_pytest(tmp_path, apps, TEST)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_it_fails_with_the_metric_its_mean_and_what_was_called(tmp_path: Path, apps: Path) -> None:
    write(tmp_path / "fixture", "simple.test.json", WRONG)
    done = run_pytest(tmp_path, apps, TEST)
    assert done.returncode == 1
    assert "tool_trajectory_avg_score is 0.00 over 2 runs, needs 1.00" in done.stdout
    assert "set_device_info" in done.stdout


def test_it_may_be_awaited_and_finds_test_files_further_down(tmp_path: Path, apps: Path) -> None:
    write(tmp_path / "fixture" / "a", "one.test.json", OFF)
    write(tmp_path / "fixture" / "b", "two.test.json", WRONG)
    done = run_pytest(tmp_path, apps, AWAITED)
    assert done.returncode == 1, done.stdout
    assert "wrong\n" in done.stdout
    assert "off\n" not in done.stdout


def test_a_sub_agent_may_be_played_and_a_misspelt_one_is_named(tmp_path: Path, apps: Path) -> None:
    write(tmp_path / "fixture", "one.test.json", OFF)
    own = AWAITED.replace('ask("fixture")', 'ask("fixture", agent_name="home_automation_agent")')
    assert run_pytest(tmp_path, apps, own).returncode == 0
    misspelt = own.replace('agent_name="home_automation_agent"', 'agent_name="home_automation"')
    done = run_pytest(tmp_path, apps, misspelt)
    assert done.returncode == 1
    assert "no agent `home_automation`" in done.stdout


def test_a_session_file_without_state_is_refused(tmp_path: Path, apps: Path) -> None:
    write(tmp_path / "fixture", "one.test.json", OFF)
    (tmp_path / "start.json").write_text('{"state": 5}')
    test = AWAITED.replace('ask("fixture")', 'ask("fixture", initial_session_file="start.json")')
    done = run_pytest(tmp_path, apps, test)
    assert done.returncode == 1
    assert "is not a session: it has no `state`" in done.stdout


def test_cases_start_with_the_state_of_the_session_file(tmp_path: Path, apps: Path) -> None:
    own = {**OFF, "eval_id": "own", "session_input": {"state": {"rooms": 1}}}
    write(tmp_path, "two.test.json", OFF, own)
    agent = {"type": "adk_local", "path": str(apps / "home_automation_agent")}
    suite = suite_with_state(tmp_path / "two.test.json", agent, 1, {"rooms": 3, "lights": "on"})
    assert [case.state for case in suite.dataset] == [
        {"rooms": 3, "lights": "on"},
        {"rooms": 1, "lights": "on"},
    ]
