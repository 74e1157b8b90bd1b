"""Tests written for ADK's own pytest helper, with one import changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest
from tests.processes import NO_OTHER_PLUGINS

from baton.testing.adk import suite_with_state

pytestmark = pytest.mark.heavy

GUIDE = '''
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
"""
MORE = {
    "wrong": GUIDE.replace("fixture/simple", "fixture/wrong"),
    "further_down": 'ask("fixture/deep")',
    "sub_agent": 'ask("fixture/one", agent_name="home_automation_agent")',
    "misspelt": 'ask("fixture/one", agent_name="home_automation")',
    "no_state": 'ask("fixture/one", initial_session_file="start.json")',
}
"""More tests of users by name; what is no test itself is awaited in one."""


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


class Said(NamedTuple):
    """What pytest says of a test of a user."""

    passed: bool
    failure: str


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory, apps: Path) -> dict[str, Said]:
    """Run all tests of users at once, as a user does: to import ADK takes three seconds."""
    folder = tmp_path_factory.mktemp("home")
    fixture = folder / "fixture"
    write(fixture, "simple.test.json", OFF)
    write(fixture, "wrong.test.json", WRONG)
    write(fixture / "deep" / "a", "one.test.json", OFF)
    write(fixture / "deep" / "b", "two.test.json", WRONG)
    write(fixture / "one", "one.test.json", OFF)
    (folder / "start.json").write_text('{"state": 5}')
    (folder / "test_guide.py").write_text(GUIDE)
    for name, test in MORE.items():
        awaited = f"{AWAITED}\ndef test_awaited():\n    asyncio.run({test})\n"
        (folder / f"test_{name}.py").write_text(awaited if test.startswith("ask") else test)
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
    done = subprocess.run(
        [*command, "-p", "baton.pytest_plugin", f"--junitxml={report}"],
        cwd=folder,
        env={
            **os.environ,
            **NO_OTHER_PLUGINS,
            "PYTHONPATH": str(apps),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    told = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - our own
        failed = case.findall("failure")
        assert not case.findall("error"), done.stdout
        told[case.attrib["classname"].removeprefix("test_")] = Said(
            not failed, "\n".join(f"{each.get('message')}\n{each.text}" for each in failed)
        )
    assert set(told) == {"guide", *MORE}
    return told


def test_the_test_of_the_guide_passes_with_one_import_changed(said: dict[str, Said]) -> None:
    assert said["guide"].passed, said["guide"].failure


def test_it_fails_with_the_metric_its_mean_and_what_was_called(said: dict[str, Said]) -> None:
    assert not said["wrong"].passed
    assert "tool_trajectory_avg_score is 0.00 over 2 runs, needs 1.00" in said["wrong"].failure
    assert "set_device_info" in said["wrong"].failure


def test_it_may_be_awaited_and_finds_test_files_further_down(said: dict[str, Said]) -> None:
    assert not said["further_down"].passed
    assert "wrong\n" in said["further_down"].failure
    assert "off\n" not in said["further_down"].failure


def test_a_sub_agent_may_be_played_and_a_misspelt_one_is_named(said: dict[str, Said]) -> None:
    assert said["sub_agent"].passed, said["sub_agent"].failure
    assert not said["misspelt"].passed
    assert "no agent `home_automation`" in said["misspelt"].failure


def test_a_session_file_without_state_is_refused(said: dict[str, Said]) -> None:
    assert not said["no_state"].passed
    assert "is not a session: it has no `state`" in said["no_state"].failure


def test_cases_start_with_the_state_of_the_session_file(tmp_path: Path, apps: Path) -> None:
    own = {**OFF, "eval_id": "own", "session_input": {"state": {"rooms": 1}}}
    write(tmp_path, "two.test.json", OFF, own)
    agent = {"type": "adk_local", "path": str(apps / "home_automation_agent")}
    suite = suite_with_state(tmp_path / "two.test.json", agent, 1, {"rooms": 3, "lights": "on"})
    assert [case.state for case in suite.dataset] == [
        {"rooms": 3, "lights": "on"},
        {"rooms": 1, "lights": "on"},
    ]
