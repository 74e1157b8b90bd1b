"""What asks for a judge stops with exit code 2 and is named: there are no judges yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import Baton
from tests.seeds.printed import PRINTED, agent, did

GUIDE = PRINTED / "guide"
ACCELERATOR = PRINTED / "accelerator"
BASELINE = ["TaskCompletion", "EvaluateFunctionCalling", "AnswerRefusal", "ConversationCoherence"]


@pytest.mark.parametrize(
    ("config", "judged"),
    [
        (
            "judged",
            {"final_response_match_v2": 4, "rubric_based_final_response_quality_v1": 5},
        ),
        ("grounded", {"rubric_based_final_response_quality_v1": 7}),
    ],
)
def test_criteria_that_need_a_judge_are_named_with_their_lines(
    baton: Baton, tmp_path: Path, config: str, judged: dict[str, int]
) -> None:
    path = GUIDE / f"{config}.test_config.json"
    desk = agent(tmp_path, "desk", did("app"))
    for arguments in (["check", path], ["eval", desk, GUIDE / "evalset.json"]):
        more = ["--config_file_path", path] if arguments[0] == "eval" else []
        outcome = baton(*arguments, *more)
        assert outcome.code == 2
        assert outcome.err.count("needs a judge") == len(judged)
        for name, line in judged.items():
            assert f"{path}:{line}: criteria.{name}: `{name}` needs a judge" in outcome.err
    assert not (tmp_path / ".baton").exists()


@pytest.mark.parametrize(
    ("listed", "judged"),
    [
        (["OutputEvaluator", "HelpfulnessEvaluator", "FaithfulnessEvaluator"], 3),
        (["OutputEvaluator", "HelpfulnessEvaluator"], 2),
        (["ToolSelectionAccuracyEvaluator", "ToolParameterAccuracyEvaluator"], 2),
        (["GoalSuccessRateEvaluator"], 1),
        (["StructuredOutputEvaluator", "OutputEvaluator"], 1),
        (["InteractionsEvaluator", "StructuredOutputEvaluator"], 0),
        ([*BASELINE, "DispatchCorrectness", "ScopeFidelity", "ResultIntegration"], 7),
    ],
)
def test_evaluators_that_need_a_judge_are_all_named(
    baton: Baton, tmp_path: Path, listed: list[str], judged: int
) -> None:
    config = {"evaluators": [{"type": name} for name in listed]}
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    outcome = baton("check", "config.yaml")
    assert outcome.code == (2 if judged else 0)
    assert outcome.err.count("needs a judge") == judged


def test_an_experiment_whose_evaluators_need_a_judge_names_each(
    baton: Baton, tmp_path: Path
) -> None:
    cases = json.loads((ACCELERATOR / "single_agent.json").read_text(encoding="utf-8"))
    names = ["OutputEvaluator", "TrajectoryEvaluator"]
    evaluators = [{"evaluator_type": name, "rubric": "Is it right?"} for name in names]
    (tmp_path / "experiment.json").write_text(
        json.dumps({"cases": cases, "evaluators": evaluators})
    )
    outcome = baton("eval", agent(tmp_path, "desk", did("app")), "experiment.json")
    assert outcome.code == 2
    for name in names:
        assert f"`{name}` needs a judge" in outcome.err
