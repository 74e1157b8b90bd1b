"""judge-llm's documentation of its sub-agent evaluator, word for word, against a live server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.test_subagent_evaluator import EVALSET

pytestmark = pytest.mark.heavy

METHODS = {
    "intermediate responses": """
intermediate_responses:
  - type: agent_transfer
    from_agent: router
    to_agent: search_agent
  - type: agent_transfer
    from_agent: search_agent
    to_agent: response_agent
""",
    "tool uses": """
tool_uses:
  - name: transfer_to_agent
    input_data: '{"agent_name": "search_agent"}'
  - name: transfer_to_agent
    input_data: '{"agent_name": "response_agent"}'
""",
    "agent name in responses": """
intermediate_responses:
  - agent_name: search_agent
  - agent_name: response_agent
""",
}


class Judge:
    """Runs a config's evaluators against the agents, as the documentation sets them up."""

    def __init__(self, folder: Path, url: str, baton: Callable[..., Any]) -> None:
        self._folder = folder
        self._baton = baton
        self._port = urlsplit(url).port

    def __call__(
        self, evaluators: str, evalset: str | dict[str, Any], agent: str = "orchestrator"
    ) -> Any:
        """Return the exit code and the results by case."""
        config = (
            "providers:\n"
            "  - type: adk_http\n"
            f"    agent_id: {agent}\n"
            f'    endpoint_url: "http://localhost:{self._port}/run"\n'
            f"evaluators:\n{evaluators}"
        )
        (self._folder / "config.yaml").write_text(config, encoding="utf-8")
        text = evalset if isinstance(evalset, str) else json.dumps(evalset)
        (self._folder / "evalset.yaml").write_text(text, encoding="utf-8")
        outcome = self._baton("eval", "config.yaml", "evalset.yaml", "--json")
        assert outcome.out, outcome.err
        results = json.loads(outcome.out)["results"]
        return outcome.code, {result["case_id"]: result for result in results}


@pytest.fixture
def judge(tmp_path: Path, url: str, baton: Callable[..., Any]) -> Judge:
    return Judge(tmp_path, url, baton)


def evaluator(mode: str, ratio: float = 0.8, *, extra: bool = True) -> str:
    return (
        "  - type: subagent_evaluator\n"
        "    config:\n"
        f"      sequence_match_type: {mode}\n"
        f"      allow_extra_agents: {str(extra).lower()}\n"
        f"      min_match_ratio: {ratio}\n"
    )


def sent(id_: str, route: str, expected: list[str], **more: Any) -> dict[str, Any]:
    """Send the agents on a route, and expect these to have run."""
    turn = {
        "user_content": {"parts": [{"text": route}]},
        "intermediate_data": {
            "intermediate_responses": [{"agent_name": name} for name in expected]
        },
    }
    return {"eval_id": id_, "conversation": [turn], **more}


def scores(results: dict[str, Any]) -> dict[str, tuple[str, float]]:
    return {
        id_: (result["status"], result["scores"][0]["score"]) for id_, result in results.items()
    }


def test_example_1_passes_and_reports_the_documented_keys(judge: Judge) -> None:
    code, results = judge(evaluator("contains"), EVALSET)
    assert code == 0, results
    (row,) = results["travel_booking_001"]["scores"]
    assert (row["evaluator_name"], row["evaluator_type"]) == (
        "SubAgentEvaluator",
        "subagent_evaluator",
    )
    assert (row["passed"], row["score"], row["threshold"], row["success"]) == (True, 1.0, 0.8, True)
    details = row["details"]
    chain = ["router", "flight_search_agent", "booking_agent"]
    assert details["all_expected_agents"] == details["all_actual_agents"] == chain
    assert (details["agents_missing"], details["agents_extra"]) == ([], [])
    (turn,) = details["invocation_results"]
    assert (turn["invocation"], turn["actual_agents"], turn["score"]) == (0, chain, 1.0)
    assert turn["match_details"] == {
        "all_expected_present": True,
        "missing_agents": [],
        "extra_agents": [],
    }


def test_the_router_that_nobody_expects_is_extra_in_the_documented_result(judge: Judge) -> None:
    expected = ["flight_search_agent", "booking_agent"]
    code, results = judge(
        "  - type: subagent_evaluator\n",
        {"eval_cases": [sent("booking", "Book a flight to Paris", expected)]},
    )
    details = results["booking"]["scores"][0]["details"]
    assert code == 0
    assert details["all_expected_agents"] == expected
    assert details["all_actual_agents"] == ["router", *expected]
    assert details["agents_extra"] == ["router"]


EXACT = ["router", "search_agent", "response_agent"]
PAIR = ["search_agent", "response_agent"]


def test_exact_wants_order_and_count(judge: Judge) -> None:
    code, results = judge(
        evaluator("exact"),
        {
            "eval_cases": [
                sent("same", "search_agent > response_agent", EXACT),
                sent("order", "response_agent > search_agent", EXACT),
                sent("missing", "search_agent", EXACT),
            ]
        },
    )
    assert code == 1
    assert scores(results) == {
        "same": ("passed", 1.0),
        "order": ("failed", 0.0),
        "missing": ("failed", 0.0),
    }


def test_subset_wants_the_expected_agents_in_order(judge: Judge) -> None:
    code, results = judge(
        evaluator("subset"),
        {
            "eval_cases": [
                sent("between", "search_agent > helper > response_agent", PAIR),
                sent("order", "response_agent > search_agent", PAIR),
            ]
        },
    )
    assert code == 1
    assert scores(results) == {"between": ("passed", 1.0), "order": ("failed", 0.5)}


def test_contains_wants_all_expected_agents_in_any_order(judge: Judge) -> None:
    code, results = judge(
        evaluator("contains"),
        {
            "eval_cases": [
                sent("any", "response_agent > router > search_agent", PAIR),
                sent("missing", "helper", PAIR),
            ]
        },
    )
    assert code == 1
    assert scores(results) == {"any": ("passed", 1.0), "missing": ("failed", 0.0)}
    actual = results["any"]["scores"][0]["details"]["invocation_results"][0]["actual_agents"]
    assert actual == ["router", "response_agent", "router", "search_agent"]


def test_flexible_gives_credit_for_a_part(judge: Judge) -> None:
    code, results = judge(
        evaluator("flexible", 0.5),
        {
            "eval_cases": [
                sent("half", "search_agent > helper", PAIR),
                sent("none", "completely_different", PAIR),
            ]
        },
    )
    assert code == 1
    assert scores(results) == {"half": ("passed", 0.5), "none": ("failed", 0.0)}


def test_example_2_lets_no_extra_agent_pass(judge: Judge) -> None:
    code, results = judge(
        evaluator("exact", extra=False),
        {
            "eval_cases": [
                sent("as stated", "search_agent > response_agent", EXACT),
                sent("one more", "search_agent > helper > response_agent", EXACT),
            ]
        },
    )
    assert code == 1
    assert scores(results) == {"as stated": ("passed", 1.0), "one more": ("failed", 0.0)}


def test_example_4_overrides_the_options_for_one_case(judge: Judge) -> None:
    route = "search_agent > helper > response_agent"
    override = {"sequence_match_type": "exact", "allow_extra_agents": False}
    strict = sent(
        "critical_workflow_001", route, EXACT, evaluator_config={"SubAgentEvaluator": override}
    )
    code, results = judge(
        evaluator("contains"), {"eval_cases": [strict, sent("ordinary", route, EXACT)]}
    )
    assert code == 1
    assert scores(results) == {
        "critical_workflow_001": ("failed", 0.0),
        "ordinary": ("passed", 1.0),
    }


@pytest.mark.parametrize("method", METHODS)
def test_expected_agents_may_be_stated_in_three_ways(judge: Judge, method: str) -> None:
    stated = METHODS[method].strip().replace("\n", "\n          ")
    evalset = f"""
eval_cases:
  - eval_id: way
    conversation:
      - user_content:
          parts:
            - text: "search_agent > response_agent"
        intermediate_data:
          {stated}
"""
    code, results = judge(evaluator("subset"), evalset)
    assert (code, scores(results)) == (0, {"way": ("passed", 1.0)})


def test_it_goes_together_with_the_trajectory_evaluator(judge: Judge) -> None:
    calls = [
        {"name": "search", "args": {"query": "flights"}},
        {"name": "transfer_to_agent", "args": {"agent_name": "response_agent"}},
    ]
    good, bad = (sent(id_, "search_agent > response_agent", PAIR) for id_ in ("good", "bad"))
    good["conversation"][0]["intermediate_data"]["tool_uses"] = calls
    bad["conversation"][0]["intermediate_data"]["tool_uses"] = [{"name": "book"}, {"name": "pay"}]
    both = (
        "  - type: subagent_evaluator\n"
        "    config:\n"
        "      sequence_match_type: contains\n"
        "  - type: trajectory_evaluator\n"
        "    config:\n"
        "      sequence_match_type: partial\n"
    )
    code, results = judge(both, {"eval_cases": [good, bad]})
    assert code == 1
    assert [
        [(row["evaluator_type"], row["status"]) for row in results[id_]["scores"]]
        for id_ in ("good", "bad")
    ] == [
        [("subagent_evaluator", "passed"), ("trajectory_evaluator", "passed")],
        [("subagent_evaluator", "passed"), ("trajectory_evaluator", "failed")],
    ]


def test_the_agent_id_says_which_agents_of_the_server_are_meant(judge: Judge) -> None:
    expected = ["intent_classifier", "booking_agent"]
    flow = sent("flow", "intent_classifier > booking_agent", expected)
    code, results = judge(evaluator("contains"), {"eval_cases": [flow]}, "multi_agent_system")
    assert (code, scores(results)) == (0, {"flow": ("passed", 1.0)})


def test_an_agent_id_that_the_server_does_not_know_is_one_clear_reason(judge: Judge) -> None:
    code, results = judge(evaluator("contains"), EVALSET, "travel_desk")
    assert code == 3
    reason = results["travel_booking_001"]["error"]
    assert "none of them is `travel_desk`" in reason
    assert "multi_agent_system, orchestrator" in reason
