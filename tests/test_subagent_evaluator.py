"""judge-llm users: configs, eval sets and recordings work as their documentation prints them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton as library

EVALSET = """
eval_cases:
  - eval_id: travel_booking_001
    conversation:
      - invocation_id: turn_1
        user_content:
          parts:
            - text: "Book a flight to Paris"
        intermediate_data:
          intermediate_responses:
            - type: agent_transfer
              from_agent: router
              to_agent: flight_search_agent
            - type: agent_transfer
              from_agent: flight_search_agent
              to_agent: booking_agent
        final_response:
          parts:
            - text: "I've booked your flight to Paris"
"""
CONFIG = """
providers:
  - type: adk_http
    agent_id: orchestrator
    endpoint_url: "http://localhost:8000/run"

evaluators:
  - type: subagent_evaluator
    config:
      sequence_match_type: contains
      min_match_ratio: 0.8
"""


def recorded(chain: list[str], eval_id: str = "travel_booking_001") -> str:
    turn = {
        "invocation_id": "turn_1",
        "user_content": {"parts": [{"text": "Book a flight to Paris"}]},
        "final_response": {"parts": [{"text": "Done"}]},
    }
    case = {"eval_id": eval_id, "conversation": [turn], "metadata": {"agent_chain": chain}}
    return json.dumps({"eval_cases": [case]})


def files(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")


BOOKING = ["router", "flight_search_agent", "booking_agent"]


def test_the_first_usage_example_passes_and_reports_the_documented_keys(
    baton: Callable[..., Any], tmp_path: Path
) -> None:
    files(tmp_path, evalset__yaml=EVALSET, config__yaml=CONFIG, run__json=recorded(BOOKING))
    outcome = baton("score", "run.json", "-d", "evalset.yaml", "-c", "config.yaml", "--json")
    assert outcome.code == 0, outcome
    (row,) = json.loads(outcome.out)["results"][0]["scores"]
    assert row["evaluator_name"] == "SubAgentEvaluator"
    assert row["evaluator_type"] == "subagent_evaluator"
    assert (row["passed"], row["score"], row["threshold"], row["success"]) == (True, 1.0, 0.8, True)
    assert row["status"] == "passed"
    assert row["reason"]
    assert row["details"]["all_expected_agents"] == BOOKING


def test_strict_order_fails_what_ran_in_another_order(
    baton: Callable[..., Any], tmp_path: Path
) -> None:
    strict = """
evaluators:
  - type: subagent_evaluator
    config:
      sequence_match_type: exact
      allow_extra_agents: false
"""
    wrong = ["router", "booking_agent", "flight_search_agent"]
    files(tmp_path, evalset__yaml=EVALSET, config__yaml=strict, run__json=recorded(wrong))
    outcome = baton("score", "run.json", "-d", "evalset.yaml", "-c", "config.yaml")
    assert outcome.code == 1
    assert "expected  router" in outcome.out


METHODS = {
    "intermediate responses": (
        {
            "intermediate_responses": [
                {"type": "agent_transfer", "from_agent": "router", "to_agent": "search_agent"},
                {
                    "type": "agent_transfer",
                    "from_agent": "search_agent",
                    "to_agent": "response_agent",
                },
            ]
        },
        ["router", "search_agent", "response_agent"],
    ),
    "tool uses": (
        {
            "tool_uses": [
                {"name": "transfer_to_agent", "input_data": '{"agent_name": "search_agent"}'},
                {"name": "transfer_to_agent", "input_data": '{"agent_name": "response_agent"}'},
            ]
        },
        ["search_agent", "response_agent"],
    ),
    "agent names": (
        {
            "intermediate_responses": [
                {"agent_name": "search_agent"},
                {"agent_name": "response_agent"},
            ]
        },
        ["search_agent", "response_agent"],
    ),
}


@pytest.mark.parametrize("method", METHODS)
def test_each_way_to_state_agents_is_read_on_both_sides(method: str, tmp_path: Path) -> None:
    data, chain = METHODS[method]
    turn = {"user_content": {"parts": [{"text": "hi"}]}, "intermediate_data": data}
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"eval_cases": [{"eval_id": "a", "conversation": [turn]}]}))
    assert library.load_dataset(path).cases[0].turns[0].agents == chain
    strict = [{"type": "agent_chain", "config": {"sequence_match_type": "exact"}}]
    evaluation = library.score(path, path, strict)
    assert evaluation.results[0].status == "passed", evaluation.results[0].scores


def test_a_case_overrides_by_class_name(baton: Callable[..., Any], tmp_path: Path) -> None:
    override = {"sequence_match_type": "exact", "allow_extra_agents": False}
    turn = {
        "user_content": {"parts": [{"text": "hi"}]},
        "intermediate_data": {"intermediate_responses": [{"agent_name": "a"}]},
    }
    case = {
        "eval_id": "critical_workflow_001",
        "conversation": [turn],
        "evaluator_config": {"SubAgentEvaluator": override},
    }
    files(
        tmp_path,
        set__json=json.dumps({"eval_cases": [case]}),
        run__json=recorded(["router", "a"], "critical_workflow_001"),
    )
    relaxed = baton("score", "run.json", "-d", "set.json", "-e", "subagent_evaluator", "--json")
    assert relaxed.code == 1
    details = json.loads(relaxed.out)["results"][0]["scores"][0]["details"]
    assert details["sequence_match_type"] == "exact"
    assert details["allow_extra_agents"] is False


def test_a_misspelt_override_stops_the_run_with_its_line(
    baton: Callable[..., Any], tmp_path: Path
) -> None:
    text = EVALSET.replace(
        "    conversation:", "    evaluator_config: {SubAgentEvaluatr: {}}\n    conversation:"
    )
    files(tmp_path, set__yaml=text, run__json=recorded(BOOKING))
    outcome = baton("score", "run.json", "-d", "set.yaml")
    assert outcome.code == 2
    assert "set.yaml:3" in outcome.err
    assert "did you mean `SubAgentEvaluator`" in outcome.err
    assert not (tmp_path / ".baton").exists()


def test_a_chain_for_the_whole_of_several_turns_is_not_compared_with_each(tmp_path: Path) -> None:
    turn = {
        "user_content": {"parts": [{"text": "hi"}]},
        "intermediate_data": {"intermediate_responses": [{"agent_name": "a"}]},
    }
    bare = {"user_content": {"parts": [{"text": "hi"}]}}
    expected, actual = tmp_path / "set.json", tmp_path / "run.json"
    expected.write_text(json.dumps([{"eval_id": "x", "conversation": [turn, turn]}]))
    recording = {"eval_id": "x", "conversation": [bare, bare], "metadata": {"agent_chain": ["a"]}}
    actual.write_text(json.dumps([recording]))
    (result,) = library.score(actual, expected).results
    assert result.status == "skipped"
    assert "agent_chains" in result.scores[0].reason
