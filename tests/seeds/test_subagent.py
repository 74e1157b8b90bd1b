"""The guide to judge-llm's sub-agent evaluator: every config and data block it prints runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton
from tests.providers.conftest import AdkServer, event, reply
from tests.seeds.printed import PRINTED, agent, call, did, rows, statuses, with_agent

import baton as library
from baton import evaluators
from baton.testing import build

GUIDE = PRINTED / "subagent"
WORKFLOW = GUIDE / "workflow.evalset.yaml"
BOOKING = ["router", "flight_search_agent", "booking_agent"]
EXACT = ["router", "search_agent", "response_agent"]
PAIR = ["search_agent", "response_agent"]


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ("quick_start", ["router", "flight_search_agent"]),
        ("basic", ["router", "flight_search_agent"]),
        ("full", ["router", "flight_search_agent"]),
        ("contains", ["router", "flight_search_agent"]),
        ("flexible", ["router", "hotel_agent"]),
        ("strict_order", ["router", "booking_agent", "flight_search_agent"]),
    ],
)
def test_each_config_passes_the_right_agents_and_fails_the_wrong_ones(
    baton: Baton, tmp_path: Path, config: str, wrong: list[str]
) -> None:
    path = GUIDE / f"{config}.yaml"
    assert baton("check", path).code == 0
    right = with_agent(tmp_path, path, agent(tmp_path, "right", did(*BOOKING)))
    assert baton("eval", right, WORKFLOW).code == 0
    other = with_agent(tmp_path, path, agent(tmp_path, "wrong", did(*wrong)))
    outcome = baton("eval", other, WORKFLOW, "--json")
    assert outcome.code == 1
    assert statuses(outcome) == {"travel_booking_001": {"subagent_evaluator": "failed"}}


@pytest.mark.parametrize("config", ["workflow", "adk_http"])
def test_each_config_with_a_server_drives_it(baton: Baton, tmp_path: Path, config: str) -> None:
    with AdkServer().running() as server:
        drive(baton, tmp_path, server, config)


def drive(baton: Baton, tmp_path: Path, adk: AdkServer, config: str) -> None:
    adk.apps = ["orchestrator", "multi_agent_system"]
    path = tmp_path / f"{config}.yaml"
    text = (GUIDE / path.name).read_text(encoding="utf-8")
    path.write_text(text.replace("localhost:8000", f"localhost:{adk.port}"), encoding="utf-8")
    right = reply([event("Done.", author=name) for name in BOOKING])
    wrong = reply([event("Done.", author=name) for name in BOOKING[:2]])
    for route in ("run", "run_sse"):
        adk.script(route, right, wrong)
    assert baton("eval", path, WORKFLOW).code == 0
    outcome = baton("eval", path, WORKFLOW)
    assert outcome.code == 1
    assert "missing: booking_agent" in outcome.out
    assert adk.requests


@pytest.mark.parametrize(
    ("mode", "expected", "actual", "status", "value"),
    [
        ("exact", EXACT, EXACT, "passed", 1.0),
        ("exact", EXACT, ["router", "response_agent", "search_agent"], "failed", 0.0),
        ("exact", EXACT, ["router", "search_agent"], "failed", 0.0),
        ("subset", PAIR, ["router", "search_agent", "helper", "response_agent"], "passed", 1.0),
        ("subset", PAIR, ["response_agent", "search_agent"], "failed", 0.5),
        ("contains", PAIR, ["response_agent", "router", "search_agent"], "passed", 1.0),
        ("contains", PAIR, ["router", "helper"], "failed", 0.0),
        ("flexible", PAIR, ["search_agent", "helper"], "failed", 0.5),
        ("flexible", PAIR, ["completely_different"], "failed", 0.0),
    ],
)
def test_each_example_of_a_mode_has_the_printed_verdict(
    tmp_path: Path, mode: str, expected: list[str], actual: list[str], status: str, value: float
) -> None:
    turn: dict[str, Any] = {"user_content": {"parts": [{"text": "hi"}]}}
    stated = {**turn, "intermediate_data": {"intermediate_responses": []}}
    stated["intermediate_data"]["intermediate_responses"] = [{"agent_name": n} for n in expected]
    run = {"eval_id": "x", "conversation": [turn], "metadata": {"agent_chain": actual}}
    (tmp_path / "set.json").write_text(json.dumps([{"eval_id": "x", "conversation": [stated]}]))
    (tmp_path / "run.json").write_text(json.dumps([run]))
    evaluator = {"type": "subagent_evaluator", "config": {"sequence_match_type": mode}}
    (result,) = library.score(
        tmp_path / "run.json", tmp_path / "set.json", evaluators=[evaluator]
    ).results
    assert (result.scores[0].status, result.scores[0].value) == (status, value)


@pytest.mark.parametrize(
    ("data", "stated"),
    [
        ("method_1", EXACT),
        ("method_2", PAIR),
        ("method_3", PAIR),
        ("documented_flow", ["intent_classifier", "booking_agent"]),
    ],
)
def test_each_way_to_state_agents_is_read_and_scored(
    baton: Baton, tmp_path: Path, data: str, stated: list[str]
) -> None:
    path = GUIDE / f"{data}.evalset.yaml"
    (case,) = library.load_dataset(path).cases
    assert case.turns[0].agents == stated
    for code, agents in enumerate((stated, [stated[0], "helper"])):
        target = agent(tmp_path, f"desk{code}", did(*agents))
        config = with_agent(tmp_path, GUIDE / "strict_order.yaml", target)
        assert baton("eval", config, path).code == code


def test_a_case_overrides_the_options_by_class_name(baton: Baton, tmp_path: Path) -> None:
    path = GUIDE / "override.evalset.json"
    extra = ["router", "search_agent", "helper", "response_agent"]
    for code, agents in enumerate((EXACT, extra)):
        target = agent(tmp_path, f"desk{code}", did(*agents))
        outcome = baton("eval", with_agent(tmp_path, GUIDE / "basic.yaml", target), path, "--json")
        assert outcome.code == code
        details = rows(outcome)["critical_workflow_001"]["subagent_evaluator"]["details"]
        assert details["sequence_match_type"] == "exact"
        assert details["allow_extra_agents"] is False


@pytest.mark.parametrize("stated", ["SubAgentEvaluator", "subagent_evaluator", "agent_chain"])
@pytest.mark.parametrize("made", ["AgentChain", "SubAgentEvaluator"])
def test_a_case_overrides_an_evaluator_that_a_program_made_by_any_of_its_names(
    stated: str, made: str
) -> None:
    ran = build.trace(build.turn("Book it.", *map(build.run, ["desk", "helper", "booking"])))
    case = build.case(
        "Book it.",
        id="test",
        agents=["desk", "booking"],
        evaluators={stated: {"sequence_match_type": "exact", "allow_extra_agents": False}},
    )
    evaluator = getattr(evaluators, made)(sequence_match_type="contains")
    (result,) = library.score(ran, [case], [evaluator]).results
    assert result.status == "failed"


def test_the_trajectory_evaluator_may_stand_beside_it(baton: Baton, tmp_path: Path) -> None:
    moves = [call("transfer_to_agent", agent_name=name) for name in PAIR]
    for code, calls in enumerate((moves, [call("book"), call("pay")])):
        target = agent(tmp_path, f"desk{code}", did("router", *PAIR, calls=calls))
        config = with_agent(tmp_path, GUIDE / "with_trajectory.yaml", target)
        outcome = baton("eval", config, GUIDE / "method_2.evalset.yaml", "--json")
        assert (outcome.code, statuses(outcome)["tool_uses"]) == (
            code,
            {
                "subagent_evaluator": "passed",
                "trajectory_evaluator": "failed" if code else "passed",
            },
        )


def test_the_result_has_every_key_and_value_that_is_printed(baton: Baton, tmp_path: Path) -> None:
    printed = json.loads((GUIDE / "result.json").read_text(encoding="utf-8"))
    expected = printed["details"]["all_expected_agents"]
    turn = {
        "user_content": {"parts": [{"text": "hi"}]},
        "intermediate_data": {"intermediate_responses": [{"agent_name": n} for n in expected]},
    }
    (tmp_path / "set.json").write_text(json.dumps([{"eval_id": "x", "conversation": [turn]}]))
    target = agent(tmp_path, "desk", did(*printed["details"]["all_actual_agents"]))
    config = with_agent(tmp_path, GUIDE / "full.yaml", target)
    outcome = baton("eval", config, "set.json", "--json")
    row = rows(outcome)["x"]["subagent_evaluator"]
    details, wanted = row["details"], printed.pop("details")
    (per_turn,), (wanted_turn,) = details["invocation_results"], wanted.pop("invocation_results")
    assert {key: row[key] for key in printed} == printed
    assert {key: details[key] for key in wanted} == wanted
    assert {key: per_turn[key] for key in wanted_turn} == wanted_turn
