"""ADK's documentation of its evaluation, word for word: test files, eval sets, command lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.heavy,
    # ADK's own code warns of its own code.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
Baton = Callable[..., Any]


def turn(
    query: str, answer: str, tools: list[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "invocation_id": f"e-{query}",
        "user_content": {"parts": [{"text": query}], "role": "user"},
        "final_response": {"parts": [{"text": answer}], "role": None},
        "intermediate_data": {"tool_uses": tools or [], "intermediate_responses": [], **more},
    }


def eval_case(id_: str, app: str, *turns: dict[str, Any], user: str = "user") -> dict[str, Any]:
    session = {"app_name": app, "user_id": user, "state": {}}
    return {"eval_id": id_, "conversation": list(turns), "session_input": session}


DEVICE = {"location": "Bedroom", "device_id": "device_2", "status": "OFF"}
LIGHT = {
    "eval_set_id": "home_automation_agent_light_on_off_set",
    "name": "",
    "description": "This is an eval set that is used for unit testing `x` behavior of the Agent",
    "eval_cases": [
        eval_case(
            "eval_case_id",
            "home_automation_agent",
            turn(
                "Turn off device_2 in the Bedroom.",
                "I have set the device_2 status to off.",
                [{"args": DEVICE, "name": "set_device_info"}],
            ),
            user="test_user",
        )
    ],
}
ROLLS = [
    {"id": "adk-1a3f5a01-1782-4530-949f-07cf53fc6f05", "args": {"sides": 10}, "name": "roll_die"},
    {"id": "adk-52fc3269-caaf-41c3-833d-511e454c7058", "args": {"sides": 10}, "name": "roll_die"},
    {
        "id": "adk-5274768e-9ec5-4915-b6cf-f5d7f0387056",
        "args": {"nums": [9]},
        "name": "check_prime",
    },
]
ROLLED = "I have rolled a 10 sided die twice. The first roll is 5 and the second roll is 3.\n"
TWO_SESSIONS = {
    "eval_set_id": "eval_set_example_with_multiple_sessions",
    "name": "Eval set with multiple sessions",
    "description": "This eval set is an example that shows that an eval set can have more than one session.",
    "eval_cases": [
        eval_case(
            "session_01",
            "hello_world",
            turn(
                "What can you do?",
                "I can roll dice of different sizes and check if numbers are prime.",
            ),
        ),
        eval_case(
            "session_02",
            "hello_world",
            turn("Roll a 19 sided dice", "I rolled a 17."),
            turn(
                "Roll a 10 sided dice twice and then check if 9 is a prime or not",
                "I got 4 and 7 form the dice roll, and 9 is not a prime number.\n",
                ROLLS,
                intermediate_responses=[["data_processing_agent", [{"text": ROLLED}]]],
            ),
        ),
    ],
}
DEFAULTS = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}


def written(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path


def shown(done: Any) -> dict[str, Any]:
    """Return the JSON report."""
    assert done.out.startswith("{"), (done.out, done.err)
    report: dict[str, Any] = json.loads(done.out)
    return report


def metrics(report: dict[str, Any]) -> dict[str, list[tuple[str, str, float, float]]]:
    return {
        result["case_id"]: [
            (row["evaluator_type"], row["status"], row["score"], row["threshold"])
            for row in result["scores"]
        ]
        for result in report["results"]
    }


PASSED = [
    ("tool_trajectory_avg_score", "passed", 1.0, 1.0),
    ("response_match_score", "passed", 1.0, 0.8),
]


@pytest.fixture
def evalset(tmp_path: Path) -> Path:
    return written(tmp_path / "hello_world_eval_set_001.evalset.json", TWO_SESSIONS)


@pytest.mark.parametrize("agent", ["hello_world", "hello_world/__init__.py", "server"])
def test_an_eval_set_with_two_sessions_is_scored_by_the_default_criteria(
    baton: Baton, apps: Path, url: str, evalset: Path, agent: str
) -> None:
    target = url if agent == "server" else str(apps / agent)
    done = baton("eval", target, evalset, "--json")
    assert done.code == 0, done.err
    assert metrics(shown(done)) == {"session_01": PASSED, "session_02": PASSED}


def test_cases_are_chosen_behind_a_colon(baton: Baton, url: str, evalset: Path) -> None:
    done = baton("eval", url, f"{evalset}:session_02", "--json")
    assert list(metrics(shown(done))) == ["session_02"]
    done = baton("eval", url, f"{evalset}:session_01,session_02", "--json")
    assert list(metrics(shown(done))) == ["session_01", "session_02"]


def test_a_case_that_is_not_in_the_eval_set_stops_before_anything_runs(
    baton: Baton, url: str, evalset: Path
) -> None:
    done = baton("eval", url, f"{evalset}:session_1,session_02", "--json")
    assert (done.code, done.out) == (2, "")
    assert "session_1" in done.err
    assert "session_01" in done.err


def test_criteria_are_read_from_the_config_file_and_details_are_printed(
    baton: Baton, apps: Path, evalset: Path, tmp_path: Path
) -> None:
    criteria = written(tmp_path / "strict.json", {"criteria": {"response_match_score": 0.9}})
    done = baton(
        "eval",
        apps / "hello_world",
        evalset,
        f"--config_file_path={criteria}",
        "--print_detailed_results",
    )
    assert done.code == 0, done.err
    lines = [line.strip() for line in done.out.splitlines()]
    assert [line for line in lines if line.startswith("✓")] == ["✓ session_01", "✓ session_02"]
    assert lines.count("response_match_score passed 1.00, needs 0.90") == 2
    assert not any("tool_trajectory_avg_score" in line for line in lines)


def test_what_sub_agents_say_on_the_way_is_checked(
    baton: Baton, url: str, evalset: Path, tmp_path: Path
) -> None:
    done = baton("eval", url, f"{evalset}:session_02", "-e", "intermediate_responses", "--json")
    assert metrics(shown(done)) == {"session_02": [("intermediate_responses", "passed", 1.0, 1.0)]}
    text = evalset.read_text(encoding="utf-8").replace("rolled a 10 sided die", "flipped a coin")
    other = tmp_path / "other.evalset.json"
    other.write_text(text, encoding="utf-8")
    done = baton("eval", url, f"{other}:session_02", "-e", "intermediate_responses", "--json")
    assert done.code == 1
    (result,) = shown(done)["results"]
    assert "data_processing_agent" in result["scores"][0]["reason"]


@pytest.mark.parametrize("agent", ["folder", "server"])
def test_a_test_file_runs_with_the_session_it_asks_for(
    baton: Baton, apps: Path, url: str, tmp_path: Path, agent: str
) -> None:
    file = written(tmp_path / "evaluation.test.json", LIGHT)
    target = url if agent == "server" else str(apps / "home_automation_agent")
    report = shown(baton("eval", target, file, "--json"))
    assert metrics(report) == {"eval_case_id": PASSED}
    (evaluation,) = (tmp_path / ".baton" / "evaluations").iterdir()
    body = json.loads((evaluation / "bodies.jsonl").read_text(encoding="utf-8"))
    (run,) = body["trace"]["turns"][0]["runs"]
    assert run["steps"][0]["arguments"] == DEVICE


@pytest.fixture
def fixtures(tmp_path: Path) -> Path:
    """Folders of test files: one has criteria of its own, one has none."""
    folder = tmp_path / "fixture"
    answer = "The device is off now."
    worded = json.loads(json.dumps(LIGHT).replace("I have set the device_2 status to off.", answer))
    written(folder / "home" / "light.test.json", LIGHT)
    written(folder / "loose" / "light.test.json", worded)
    written(folder / "loose" / "test_config.json", {"criteria": {"tool_trajectory_avg_score": 1.0}})
    return folder


def test_each_folder_is_scored_by_its_own_test_config(
    baton: Baton, url: str, fixtures: Path
) -> None:
    done = baton("eval", url, fixtures, "--json")
    assert done.code == 0, (done.out, done.err)
    assert metrics(shown(done)) == {
        "home/light/eval_case_id": PASSED,
        "loose/light/eval_case_id": PASSED[:1],
    }


def test_without_a_test_config_the_other_wording_fails_by_rouge(
    baton: Baton, url: str, fixtures: Path
) -> None:
    (fixtures / "loose" / "test_config.json").unlink()
    done = baton("eval", url, fixtures / "loose", "--json")
    assert done.code == 1
    (rows,) = metrics(shown(done)).values()
    assert rows[0] == PASSED[0]
    (name, status, value, threshold) = rows[1]
    assert (name, status, threshold) == ("response_match_score", "failed", 0.8)
    assert 0 < value < 0.8


def test_the_default_criteria_are_those_of_the_documented_test_config(
    baton: Baton, url: str, evalset: Path
) -> None:
    by_default = shown(baton("eval", url, evalset, "--json"))
    written(evalset.parent / "test_config.json", DEFAULTS)
    assert metrics(shown(baton("eval", url, evalset, "--json"))) == metrics(by_default)


def test_other_arguments_than_expected_fail_the_trajectory_with_both_sides(
    baton: Baton, apps: Path, tmp_path: Path
) -> None:
    text = json.dumps(LIGHT).replace('"OFF"', '"STANDBY"')
    file = written(tmp_path / "evaluation.test.json", json.loads(text))
    done = baton("eval", apps / "home_automation_agent", file)
    assert done.code == 1
    assert "STANDBY" in done.out
    assert "OFF" in done.out
