"""What asks for a judge: refused by name where none is configured, judged where one is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton
from tests.seeds.printed import PRINTED, agent, did, statuses

from baton.testing import LlmServer, Received, llm_server

GUIDE = PRINTED / "guide"
ACCELERATOR = PRINTED / "accelerator"
BASELINE = ["TaskCompletion", "EvaluateFunctionCalling", "AnswerRefusal", "ConversationCoherence"]
CRITERIA = {
    "judged": ["final_response_match_v2", "rubric_based_final_response_quality_v1"],
    "grounded": ["rubric_based_final_response_quality_v1"],
}


def at_end(node: Any, place: int) -> Any:
    """Fill in a schema with the first (0) or the last (-1) of its labels, or a number as far out."""
    if "enum" in node:
        return node["enum"][place]
    if node.get("type") == "object":
        return {name: at_end(part, place) for name, part in node["properties"].items()}
    if node.get("type") in ("number", "integer"):
        return node.get("maximum", 1) if place == 0 else node.get("minimum", 0)
    return "so it is"


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[LlmServer]:
    """A judge that finds everything as good as it can be, until told otherwise."""
    with llm_server(praise) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url())
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield server


def praise(request: Received) -> Any:
    return at_end(request.schema, 0)


def blame(request: Received) -> Any:
    return at_end(request.schema, -1)


@pytest.mark.parametrize("name", CRITERIA)
def test_criteria_that_need_a_judge_say_so_where_none_is_configured(
    baton: Baton, tmp_path: Path, name: str
) -> None:
    path = GUIDE / f"{name}.test_config.json"
    desk = agent(tmp_path, "desk", did("app"))
    assert baton("check", path).code == 0
    outcome = baton("eval", desk, GUIDE / "evalset.json", "--config_file_path", path)
    assert outcome.code == 2
    assert "no model is configured" in outcome.err
    assert all(f"`{judged}`" in outcome.err for judged in CRITERIA[name])
    assert not (tmp_path / ".baton").exists()


@pytest.mark.parametrize("name", CRITERIA)
def test_criteria_are_judged_as_printed(
    baton: Baton, tmp_path: Path, llm: LlmServer, name: str
) -> None:
    path = GUIDE / f"{name}.test_config.json"
    cases = GUIDE / "evalset.json"
    desk = agent(tmp_path, "desk", *[did("app", output="It is sunny.")] * 9)
    how = ["eval", desk, cases, "--config_file_path", path, "--judge", "openai:judge", "--json"]
    found = statuses(baton(*how))
    for judged in CRITERIA[name]:
        assert "passed" in {scores[judged] for scores in found.values()}
        assert "failed" not in {scores[judged] for scores in found.values()}
    llm.script = blame
    worse = statuses(baton(*how, "--no-cache"))
    for judged in CRITERIA[name]:
        assert "failed" in {scores[judged] for scores in worse.values()}
        assert "passed" not in {scores[judged] for scores in worse.values()}


@pytest.mark.parametrize(
    "listed",
    [
        ["OutputEvaluator", "HelpfulnessEvaluator", "FaithfulnessEvaluator"],
        ["ToolSelectionAccuracyEvaluator", "ToolParameterAccuracyEvaluator"],
        ["GoalSuccessRateEvaluator"],
        ["StructuredOutputEvaluator", "OutputEvaluator"],
        ["InteractionsEvaluator", "StructuredOutputEvaluator"],
        [*BASELINE, "DispatchCorrectness", "ScopeFidelity", "ResultIntegration"],
    ],
)
def test_evaluators_by_their_printed_names_make_a_config(
    baton: Baton, tmp_path: Path, listed: list[str]
) -> None:
    printed = (ACCELERATOR / "evaluator_config.yaml").read_text(encoding="utf-8")
    wanted = json.dumps([{"type": name} for name in listed])
    (tmp_path / "config.yaml").write_text(f"{printed}\nevaluators: {wanted}\n")
    outcome = baton("check", "config.yaml")
    assert outcome.code == 0, outcome.err


def test_an_experiment_is_judged_by_the_rubrics_it_states(
    baton: Baton, tmp_path: Path, llm: LlmServer
) -> None:
    cases = json.loads((ACCELERATOR / "single_agent.json").read_text(encoding="utf-8"))
    names = ["OutputEvaluator", "TrajectoryEvaluator"]
    evaluators = [{"evaluator_type": name, "rubric": f"Is it {name}?"} for name in names]
    (tmp_path / "experiment.json").write_text(
        json.dumps({"cases": cases, "evaluators": evaluators})
    )
    desk = agent(tmp_path, "desk", *[did("app")] * 9)
    refused = baton("eval", desk, "experiment.json")
    assert refused.code == 2
    assert all(f"`{name}`" in refused.err for name in names)
    found = statuses(baton("eval", desk, "experiment.json", "--judge", "openai:judge", "--json"))
    assert {status for scores in found.values() for status in scores.values()} <= {
        "passed",
        "skipped",
    }
    asked = "".join(request.system for request in llm.requests)
    assert "Is it OutputEvaluator?" in asked
