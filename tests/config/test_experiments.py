"""Experiments of Strands: the evaluators in the file of the cases become the plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton as package
from baton.config.dialects.strands import read_experiment
from baton.model import Case, InputError, Trace
from baton.testing import build

Run = Callable[..., Any]
DATA = Path(__file__).parent.parent / "data" / "strands"
EXPERIMENT = DATA / "experiment.json"
REPORT = DATA / "report_interactions.json"
CASE = {"name": "c", "input": "hi", "expected_output": "done"}


def player(case: Case) -> Trace:
    """Answer that it is done."""
    return build.trace(build.turn(output="done"), id=case.id)


def written(folder: Path, *evaluators: Any, cases: Any = (CASE,)) -> Path:
    path = folder / "experiment.json"
    content = {"cases": [*cases], "evaluators": [*evaluators]}
    path.write_text(json.dumps(content, indent=1))
    return path


def scores(outcome: Any) -> dict[str, dict[str, str]]:
    """Return the status by evaluator by case."""
    return {
        result["case_id"]: {score["evaluator_name"]: score["status"] for score in result["scores"]}
        for result in json.loads(outcome.out)["results"]
    }


def test_an_experiment_of_the_sdk_scores_what_the_sdk_recorded(baton: Run) -> None:
    found = scores(baton("score", REPORT, "--dataset", EXPERIMENT, "--json"))
    # The SDK lists visited nodes where it lists tools: a node is not a tool, and none is told.
    assert found["maps"] == {"Equals": "passed", "archivist was asked": "skipped"}


def test_python_and_live_runs_take_the_evaluators_of_the_experiment_too(tmp_path: Path) -> None:
    evaluation = package.score(REPORT, EXPERIMENT)
    names = [counts.evaluator for counts in evaluation.evaluators]
    assert names == ["Equals", "archivist was asked"]
    path = written(tmp_path, {"evaluator_type": "Contains", "value": "two", "name": "says two"})
    played = package.evaluate(path, player)
    assert [(s.evaluator, s.status) for r in played for s in r.scores] == [("says two", "failed")]


def test_evaluators_that_are_asked_for_go_before_those_of_the_experiment(baton: Run) -> None:
    found = scores(baton("score", REPORT, "-d", EXPERIMENT, "-e", "agent_chain", "--json"))
    assert set(found["maps"]) == {"agent_chain"}


def test_arguments_become_options(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"evaluator_type": "Equals", "value": {"a": 1}},
        {"evaluator_type": "Contains", "value": "x", "case_sensitive": False, "name": "x"},
        {"evaluator_type": "StartsWith", "value": "y"},
        {"evaluator_type": "ToolCalled", "tool_name": "search"},
        {"evaluator_type": "StateEquals", "name": "cart", "value": 2},
        {"evaluator_type": "StateEquals", "name": "paid"},
        {"evaluator_type": "StructuredOutputEvaluator"},
    )
    evaluation = package.score(build.trace(case="c"), path)
    assert [(counts.evaluator, counts.type) for counts in evaluation.evaluators] == [
        ("Equals", "equals"),
        ("x", "contains"),
        ("StartsWith", "starts_with"),
        ("ToolCalled", "tool_called"),
        ("cart", "state_equals"),
        ("paid", "state_equals"),
        ("StructuredOutputEvaluator", "structured_output"),
    ]


def test_a_file_without_evaluators_is_scored_by_what_its_cases_state(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert read_experiment(path) is None
    evaluation = package.score(build.trace(case="c"), path)
    assert [counts.type for counts in evaluation.evaluators] == ["response"]


def test_two_experiments_are_scored_each_by_its_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, {"evaluator_type": "Contains", "value": name})
    dataset = package.load_dataset(tmp_path)
    evaluation = package.evaluate(dataset, player)
    found = [score.details["value"] for result in evaluation for score in result.scores]
    assert found == ["one", "two"]


def test_every_evaluator_that_has_no_rubric_is_named_with_its_line(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"evaluator_type": "AttackSuccessEvaluator", "rubric": "good?"},
        {"evaluator_type": "Equals"},
        {"evaluator_type": "MultimodalOutputEvaluator", "rubric": "good?"},
    )
    with pytest.raises(InputError) as raised:
        read_experiment(path)
    first, second = raised.value.problems
    assert "no rubric for `AttackSuccessEvaluator`" in first.message
    assert "no rubric for `MultimodalOutputEvaluator`" in second.message
    assert (first.line, second.line) == (10, 17)


def test_interactions_are_judged_by_their_rubric_and_count_once(baton: Run, tmp_path: Path) -> None:
    visits = [{"node_name": "clerk"}, {"node_name": "archivist"}]
    cases = [{"name": "maps", "input": "?", "expected_interactions": visits}]
    path = written(
        tmp_path,
        {"evaluator_type": "InteractionsEvaluator", "rubric": "good?", "model_id": "mock.model"},
        cases=cases,
    )
    outcome = baton("score", REPORT, "-d", path, "--cache-only", "--json")
    found = scores(outcome)["maps"]
    assert list(found) == ["InteractionsEvaluator"]
    assert found["InteractionsEvaluator"] in ("error", "skipped")


@pytest.mark.parametrize(
    ("evaluator", "said"),
    [
        ({"evaluator_type": "Equal"}, "did you mean `Equals` or `equals`"),
        ({"evaluator_type": "Contains"}, "`value` is missing"),
        ({"evaluator_type": "ToolCalled", "tool": "x", "toolname": "x"}, "unknown key"),
        ({"name": "x"}, "an evaluator is an object with `evaluator_type`"),
        ("Equals", "an evaluator is an object with `evaluator_type`"),
    ],
)
def test_what_is_wrong_with_an_evaluator_is_reported_with_its_line(
    tmp_path: Path, evaluator: Any, said: str
) -> None:
    with pytest.raises(InputError, match=r"experiment\.json:\d+: ") as raised:
        read_experiment(written(tmp_path, evaluator))
    assert said in str(raised.value)
