"""Custom metrics of ADK: the user's own functions, called as ADK calls them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.config.dialects.adk import read_criteria
from baton.model import Evaluation

Run = Callable[..., Any]
PLAIN = """
from types import SimpleNamespace as Result

def calls_made(eval_metric, actual, expected, scenario):
    names = [
        [p.function_call.name for e in i.intermediate_data.invocation_events
         for p in e.content.parts if p.function_call]
        for i in actual
    ]
    scores = [float("lookup_order" in each) for each in names]
    overall = sum(scores) / len(scores)
    assert eval_metric.threshold is None and eval_metric.criterion.threshold == 0.5
    assert eval_metric.metric_name == "looked_up" and scenario is None
    assert expected[0].user_content.parts[0].text == actual[0].user_content.parts[0].text
    results = [Result(score=score) for score in scores]
    return Result(overall_score=overall, overall_eval_status=1, per_invocation_results=results)

async def polite(eval_metric, actual, expected):
    said = actual[-1].final_response.parts[0].text
    return Result(overall_score=float("please" in said), per_invocation_results=[])

def silent(*given):
    return Result(overall_score=None, overall_eval_status=3, per_invocation_results=[])

def wrong(*given):
    return 0.5
"""
TYPED = """
from google.adk.evaluation.eval_case import Invocation, get_all_tool_calls
from google.adk.evaluation.evaluator import EvaluationResult

def typed(eval_metric, actual, expected, scenario):
    assert all(isinstance(i, Invocation) for i in [*actual, *expected])
    made = get_all_tool_calls(actual[0].intermediate_data)
    wanted = get_all_tool_calls(expected[0].intermediate_data)
    same = [c.name for c in wanted] == ["lookup_order"] and made[0].name == "transfer_to_agent"
    return EvaluationResult(overall_score=float(same))
"""


def criteria(folder: Path, function: str, name: str = "looked_up", **more: Any) -> Path:
    path = folder / "test_config.json"
    metric = {"code_config": {"name": function}, "description": "mine"}
    value = {"criteria": {name: {"threshold": 0.5, "x": 1}}, "custom_metrics": {name: metric}}
    path.write_text(json.dumps(value | more))
    return path


def looked_up(
    recordings: Path, tmp_path: Path, function: str, name: str = "looked_up"
) -> Evaluation:
    (tmp_path / "cases.yaml").write_text(
        "cases: [{id: refund, input: Please refund order 42., tools: [lookup_order]}]"
    )
    specs = read_criteria(criteria(tmp_path, function, name))
    run = recordings / "support_desk" / "refund.session.json"
    return baton.score(run, tmp_path / "cases.yaml", specs)


def test_a_function_gets_what_adk_gives_it(recordings: Path, tmp_path: Path) -> None:
    (tmp_path / "plain_metrics.py").write_text(PLAIN)
    evaluation = looked_up(recordings, tmp_path, "plain_metrics.calls_made")
    (found,) = evaluation.results[0].scores
    assert (found.evaluator, found.status, found.value) == ("looked_up", "passed", 1.0), found
    assert found.details["function"] == "plain_metrics.calls_made"
    assert found.details["turns"] == [1.0]
    assert str(tmp_path) not in json.dumps(found.details)


def test_an_async_function_is_awaited_and_may_fail(recordings: Path, tmp_path: Path) -> None:
    (tmp_path / "plain_metrics.py").write_text(PLAIN)
    (found,) = looked_up(recordings, tmp_path, "plain_metrics.polite").results[0].scores
    assert (found.status, found.value, found.threshold) == ("failed", 0.0, 0.5)


def test_no_score_is_no_pass_and_no_verdict_an_error(recordings: Path, tmp_path: Path) -> None:
    (tmp_path / "plain_metrics.py").write_text(PLAIN)
    silent = looked_up(recordings, tmp_path, "plain_metrics.silent")
    assert (silent.results[0].scores[0].status, silent.exit_code) == ("skipped", 3)
    (wrong,) = looked_up(recordings, tmp_path, "plain_metrics.wrong").results[0].scores
    assert wrong.status == "error"
    assert "returned float, not an EvaluationResult" in wrong.reason


@pytest.mark.heavy
def test_code_that_imports_adk_gets_objects_of_its_classes(
    recordings: Path, tmp_path: Path
) -> None:
    (tmp_path / "typed_metrics.py").write_text(TYPED)
    (found,) = looked_up(recordings, tmp_path, "typed_metrics.typed").results[0].scores
    assert (found.status, found.value) == ("passed", 1.0), found


def test_eval_scores_by_custom_metrics_beside_the_cases(baton: Run, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("def reply(message): return 'Yes, please'\n")
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "eval_metrics.py").write_text(PLAIN)
    turn = {"user_content": {"parts": [{"text": "hi"}]}}
    cases = {"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation": [turn]}]}
    (tmp_path / "sets" / "s.evalset.json").write_text(json.dumps(cases))
    criteria(tmp_path / "sets", "eval_metrics.polite", "polite")
    outcome = baton("eval", "bot.py:reply", "sets", "--json")
    assert outcome.code == 0, outcome.err
    (result,) = json.loads(outcome.out)["results"]
    assert [s["evaluator_name"] for s in result["scores"]] == ["polite"], result
