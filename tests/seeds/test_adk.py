"""The documentation of ADK's evaluation: every data and config file it prints runs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton
from tests.seeds.printed import PRINTED, agent, call, did, statuses

import baton as library

DOCS = PRINTED / "adk"
OFF = call("set_device_info", location="Bedroom", device_id="device_2", status="OFF")
ANSWER = "I have set the device_2 status to off."
HELP = did(
    "hello_world", output="I can roll dice of different sizes and check if numbers are prime."
)
DICE = did(
    "hello_world",
    "data_processing_agent",
    output="I got 4 and 7 form the dice roll, and 9 is not a prime number.\n",
    calls=[call("roll_die", sides=10), call("roll_die", sides=10), call("check_prime", nums=[9])],
)  # fmt: skip
ROLL = did("hello_world", output="I rolled a 17.")
STEPS = ["determine_intent", "use_tool", "review_results", "report_generation"]


def test_the_test_file_is_read_with_everything_it_states() -> None:
    (case,) = library.load_dataset(DOCS / "light_on_off.test.json").cases
    (turn,) = case.turns
    assert (case.id, turn.input.text) == ("eval_case_id", "Turn off device_2 in the Bedroom.")
    assert (turn.response.text if turn.response else None) == ANSWER
    (tool,) = turn.tool_calls or []
    assert (tool.name, tool.arguments) == (OFF["name"], OFF["arguments"])
    assert (case.session.app, case.session.user) == ("home_automation_agent", "test_user")


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (did("home", output=ANSWER, calls=[OFF]), set()),
        (did("home", output=ANSWER, calls=[OFF, OFF]), {"tool_trajectory_avg_score"}),
        (
            did("home", output=ANSWER, calls=[call("set_device_info", status="ON")]),
            {"tool_trajectory_avg_score"},
        ),
        (did("home", output="Sorry?", calls=[OFF]), {"response_match_score"}),
    ],
)
@pytest.mark.parametrize("beside", [True, False])
def test_the_test_file_is_scored_by_the_printed_criteria_and_by_default_alike(
    baton: Baton, tmp_path: Path, answer: Any, failed: set[str], beside: bool
) -> None:
    shutil.copy(DOCS / "light_on_off.test.json", tmp_path)
    if beside:
        shutil.copy(DOCS / "test_config.json", tmp_path)
    desk = agent(tmp_path, "desk", answer)
    outcome = baton("eval", desk, "light_on_off.test.json", "--json")
    assert outcome.code == bool(failed)
    scores = statuses(outcome)["eval_case_id"]
    assert set(scores) == {"tool_trajectory_avg_score", "response_match_score"}
    assert {name for name, status in scores.items() if status == "failed"} == failed


def test_the_eval_set_has_both_sessions_and_what_sub_agents_say() -> None:
    first, second = library.load_dataset(DOCS / "two_sessions.evalset.json").cases
    assert [len(case.turns) for case in (first, second)] == [1, 2]
    assert first.turns[0].tool_calls == []
    dice = second.turns[1]
    assert [tool.name for tool in dice.tool_calls or []] == ["roll_die", "roll_die", "check_prime"]
    assert "data_processing_agent" in (dice.agents or [])


def test_both_sessions_pass_when_done_right_and_each_fails_alone(
    baton: Baton, tmp_path: Path
) -> None:
    path = DOCS / "two_sessions.evalset.json"
    config = ("--config_file_path", DOCS / "test_config.json", "--print_detailed_results")
    for cases, right, wrong in (
        ("session_01", [HELP], [ROLL]),
        ("session_02", [ROLL, DICE], [ROLL, did("hello_world", output=DICE["output"])]),
    ):
        chosen = f"{path}:{cases}"
        assert baton("eval", agent(tmp_path, f"r_{cases}", *right), chosen, *config).code == 0
        assert baton("eval", agent(tmp_path, f"w_{cases}", *wrong), chosen, *config).code == 1


def test_what_a_sub_agent_says_on_the_way_is_checked_when_asked_for(
    baton: Baton, tmp_path: Path
) -> None:
    path = f"{DOCS / 'two_sessions.evalset.json'}:session_02"
    for code, names in enumerate((DICE["agents"], ["hello_world"])):
        desk = agent(tmp_path, f"desk{code}", ROLL, {**DICE, "agents": names})
        assert baton("eval", desk, path, "-e", "agent_chain").code == code


@pytest.mark.parametrize(
    ("mode", "actual", "code"),
    [
        ("exact", STEPS, 0),
        ("exact", [*STEPS, "more"], 1),
        ("in_order", [STEPS[0], "more", *STEPS[1:]], 0),
        ("in_order", STEPS[::-1], 1),
        ("any_order", ["more", *STEPS[::-1]], 0),
        ("any_order", STEPS[1:], 1),
        ("precision", STEPS[1:], 0),
        ("precision", [*STEPS, "more"], 1),
        ("recall", [*STEPS, "more"], 0),
        ("recall", STEPS[1:], 1),
    ],
)
def test_each_way_to_compare_trajectories_is_there(
    baton: Baton, tmp_path: Path, mode: str, actual: list[str], code: int
) -> None:
    cases = f"cases: [{{id: steps, input: hi, tools: {STEPS}}}]"
    (tmp_path / "cases.yaml").write_text(cases)
    desk = agent(tmp_path, "desk", did("main", calls=[call(name) for name in actual]))
    (tmp_path / "config.yaml").write_text(
        f"providers: [{{type: python, target: '{desk}'}}]\n"
        f"evaluators: [{{type: tool_calls, config: {{mode: {mode}, threshold: 1.0}}}}]\n"
    )
    assert baton("eval", "config.yaml", "cases.yaml").code == code


@pytest.mark.parametrize(("actual", "code"), [(STEPS, 0), (STEPS[:1], 1)])
def test_a_single_tool_may_be_asked_for(
    baton: Baton, tmp_path: Path, actual: list[str], code: int
) -> None:
    (tmp_path / "cases.yaml").write_text("cases: [{id: steps, input: hi}]")
    desk = agent(tmp_path, "desk", did("main", calls=[call(name) for name in actual]))
    (tmp_path / "config.yaml").write_text(
        f"providers: [{{type: python, target: '{desk}'}}]\n"
        "evaluators: [{type: tool_called, config: {tool: use_tool}}]\n"
    )
    assert baton("eval", "config.yaml", "cases.yaml").code == code
