"""The evaluation guide for ADK agents: every data and config file it prints runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton
from tests.seeds.printed import PRINTED, agent, call, did, statuses

import baton as library

GUIDE = PRINTED / "guide"
SEARCH = call("search_flights", destination="NYC")
OFFER = "I found a flight for $500. Want to book?"
BOOKING = [
    did("app", calls=[call("search_flights", origin="NYC", destination="LON", departure_date="2026-06-01")]),
    did("app", calls=[call("get_flight_price", flight_offer={"id": "1", "price": {"total": "500.00"}})]),
    did(
        "app",
        output="Booking confirmed! Reference: ABC123",
        calls=[call("book_flight", passenger_name="Elias", email="elias@example.com")],
    ),
]  # fmt: skip


def test_the_eval_set_is_read_with_everything_it_states() -> None:
    (case,) = library.load_dataset(GUIDE / "evalset.json").cases
    (turn,) = case.turns
    assert (case.id, turn.input.text) == ("search_test", "Find a flight to NYC")
    assert (turn.response.text if turn.response else None) == OFFER
    (tool,) = turn.tool_calls or []
    assert (tool.name, tool.arguments) == ("search_flights", {"destination": "NYC"})
    assert (case.session.app, case.session.user, case.state) == (
        "<your-agent-directory>",
        "user_1",
        {},
    )


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (did("app", output=OFFER, calls=[SEARCH]), set()),
        (did("app", output=OFFER), {"tool_trajectory_avg_score"}),
        (did("app", output="No idea.", calls=[SEARCH]), {"response_match_score"}),
    ],
)
def test_the_eval_set_passes_the_right_run_and_fails_wrong_ones(
    baton: Baton, tmp_path: Path, answer: Any, failed: set[str]
) -> None:
    outcome = baton("eval", agent(tmp_path, "desk", answer), GUIDE / "evalset.json", "--json")
    assert outcome.code == bool(failed)
    scores = statuses(outcome)["search_test"]
    assert set(scores) == {"tool_trajectory_avg_score", "response_match_score"}
    assert {name for name, status in scores.items() if status == "failed"} == failed


def test_a_conversation_is_right_only_with_the_calls_of_every_turn(
    baton: Baton, tmp_path: Path
) -> None:
    path = GUIDE / "multi_turn.json"
    (case,) = library.load_dataset(path).cases
    assert [[tool.name for tool in turn.tool_calls or []] for turn in case.turns] == [
        ["search_flights"],
        ["get_flight_price"],
        ["book_flight"],
    ]
    right = baton("eval", agent(tmp_path, "right", *BOOKING), path)
    assert right.code == 0
    lazy = [BOOKING[0], did("app"), BOOKING[2]]
    outcome = baton("eval", agent(tmp_path, "lazy", *lazy), path, "--json")
    assert outcome.code == 1
    assert statuses(outcome)["multi_turn"]["tool_trajectory_avg_score"] == "failed"


def test_a_turn_that_states_no_calls_beside_turns_that_do_is_warned_of(
    baton: Baton, tmp_path: Path
) -> None:
    value = json.loads((GUIDE / "multi_turn.json").read_text(encoding="utf-8"))
    del value["conversation"][1]["intermediate_data"]
    (tmp_path / "bare.json").write_text(json.dumps(value, indent=2))
    outcome = baton("check", "bare.json")
    assert "[bare-turn]" in outcome.err
    assert baton("check", GUIDE / "multi_turn.json").err == ""


def test_a_state_of_another_type_is_warned_of_with_both_lines(baton: Baton) -> None:
    path = GUIDE / "state_overrides.evalset.json"
    wrong, correct = library.load_dataset(path).cases
    assert wrong.state == {"feedback_history": ""}
    assert correct.state == {"feedback_history": []}
    outcome = baton("check", path)
    assert outcome.code == 0
    assert f"{path}:21: " in outcome.err
    assert f"({path}:11)" in outcome.err
    assert "[state-type]" in outcome.err


def test_an_agent_gets_the_state_that_its_case_states(baton: Baton, tmp_path: Path) -> None:
    text = "def reply(message, case):\n    case.state['feedback_history'].append(message)\n"
    (tmp_path / "desk.py").write_text(text + "    return {'output': 'Noted.', 'agents': ['app']}\n")
    path = GUIDE / "state_overrides.evalset.json"
    outcome = baton("eval", "desk.py:reply", path, "-e", "latency", "--json")
    assert outcome.code == 3
    by_case = {row["case_id"]: row for row in json.loads(outcome.out)["results"]}
    assert "'str' object has no attribute 'append'" in by_case["wrong"]["error"]
    assert by_case["correct"]["status"] == "passed"


def test_a_case_of_grounding_is_scored_by_its_answer_alone(baton: Baton, tmp_path: Path) -> None:
    path = GUIDE / "news_digest.json"
    (case,) = library.load_dataset(path).cases
    assert (case.id, case.turns[0].tool_calls) == ("news_digest_test", None)
    assert baton("check", path).code == 0
    for code, answer in enumerate(("Rain in Oslo [https://news.example/1]", "Rain in Oslo")):
        desk = agent(tmp_path, f"desk{code}", did("app", output=answer))
        (tmp_path / "config.yaml").write_text(
            f"providers: [{{type: python, target: '{desk}'}}]\n"
            "evaluators: [{type: contains, config: {value: 'https://'}}]\n"
        )
        assert baton("eval", "config.yaml", path).code == code
    outcome = baton("eval", desk, path)
    assert outcome.code == 3
    assert "`response_match_score` scored nothing" in outcome.err + outcome.out


@pytest.mark.parametrize("evaluator", ["tool_calls", "tool_trajectory_avg_score"])
def test_custom_tools_stay_in_the_trajectory_beside_comments(
    baton: Baton, tmp_path: Path, evaluator: str
) -> None:
    path = GUIDE / "custom_tools.json"
    (tmp_path / "names.json").write_text(
        '{"criteria": {"tool_trajectory_avg_score": {"threshold": 1.0, "ignore_args": true}}}'
    )
    for code, calls in enumerate(([call("save_feedback")], [call("save_preferences")])):
        desk = agent(tmp_path, f"desk{code}", did("app", calls=calls))
        if evaluator == "tool_calls":
            assert baton("eval", desk, path, "-e", evaluator).code == code
        else:
            assert baton("eval", desk, path, "--config_file_path", "names.json").code == code


def test_a_call_without_args_is_another_one_for_adk_and_the_reason_says_what_to_write(
    baton: Baton, tmp_path: Path
) -> None:
    desk = agent(tmp_path, "desk", did("app", calls=[call("save_feedback")]))
    outcome = baton("eval", desk, GUIDE / "custom_tools.json", "-e", "tool_trajectory_avg_score")
    assert outcome.code == 1
    assert 'write `"args": {}`' in " ".join(outcome.out.split())


def test_google_search_in_a_trajectory_is_warned_of(baton: Baton, tmp_path: Path) -> None:
    text = (GUIDE / "custom_tools.json").read_text(encoding="utf-8")
    (tmp_path / "search.json").write_text(text.replace("save_feedback", "google_search"))
    outcome = baton("check", "search.json")
    assert "google_search" in outcome.err
    assert "[internal-tool]" in outcome.err


def test_an_error_event_is_a_turn_that_failed(baton: Baton, tmp_path: Path) -> None:
    error = json.loads((GUIDE / "unexpected_tool_call.json").read_text(encoding="utf-8"))
    events = [
        {"author": "user", "invocationId": "i", "content": {"parts": [{"text": "hi"}]}},
        {"author": "app", "invocationId": "i", **error},
    ]
    (tmp_path / "run.json").write_text(json.dumps(events))
    ((turn,),) = (trace.turns for trace in library.load_traces(tmp_path / "run.json"))
    assert turn.status == "failed"
    assert turn.error is not None
    assert "Unexpected tool call: google_search" in turn.error


def test_criteria_beside_the_eval_set_are_found(baton: Baton, tmp_path: Path) -> None:
    shutil.copy(GUIDE / "evalset.json", tmp_path / "my.evalset.json")
    (tmp_path / "test_config.json").write_text('{"criteria": {"tool_trajectory_avg_score": 1.0}}')
    for code, calls in enumerate(([SEARCH], [])):
        desk = agent(tmp_path, f"desk{code}", did("app", calls=calls))
        outcome = baton("eval", desk, "my.evalset.json", "--json")
        assert outcome.code == code
        assert list(statuses(outcome)["search_test"]) == ["tool_trajectory_avg_score"]
