"""Which evaluators score a dataset: criteria of ADK, by folder, and what cases state."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.config.dialects.adk import read_criteria
from baton.evaluators.defaults import PROVEN_BY_RECORD
from baton.model import InputError

Run = Callable[..., Any]
AGENT = """
def reply(message, case):
    calls = [{"name": "refund", "arguments": {}}] if "refund" in message else []
    return {"output": "It is done now", "agents": ["desk"], "tool_calls": calls}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an agent that always says `It is done now`."""
    (tmp_path / "scored_agent.py").write_text(AGENT)
    return tmp_path


def evalset(path: Path, *ids: str, answer: str = "It is done now", **data: Any) -> Path:
    """Write an eval set of ADK; `data` is what should have happened on the way."""
    turn = {
        "invocation_id": "i",
        "user_content": {"parts": [{"text": "hello"}]},
        "final_response": {"parts": [{"text": answer}]},
        "intermediate_data": {"tool_uses": [], "intermediate_responses": [], **data},
    }
    cases = [{"eval_id": id_, "conversation": [turn]} for id_ in ids]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"eval_set_id": path.stem, "eval_cases": cases}))
    return path


def criteria(path: Path, **values: Any) -> Path:
    path.write_text(json.dumps({"criteria": values}))
    return path


PROVEN = set(PROVEN_BY_RECORD)


def scores(outcome: Any) -> dict[str, dict[str, float | None]]:
    """Return threshold by evaluator by case, without what the record alone proves."""
    return {
        result["case_id"]: {
            s["evaluator_type"]: s["threshold"]
            for s in result["scores"]
            if s["evaluator_type"] not in PROVEN
        }
        for result in json.loads(outcome.out)["results"]
    }


def evaluate(baton: Run, *arguments: Any) -> Any:
    return baton("eval", "scored_agent.py:reply", *arguments, "--json")


def test_each_folder_is_scored_by_its_own_criteria(baton: Run, folder: Path) -> None:
    evalset(folder / "sets" / "plain.evalset.json", "a")
    for name, threshold in (("strict", 0.9), ("lax", 0.1)):
        evalset(folder / "sets" / name / "x.evalset.json", name, answer="It is done")
        criteria(folder / "sets" / name / "test_config.json", response_match_score=threshold)
    outcome = evaluate(baton, "sets")
    assert scores(outcome) == {
        "a": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8},
        "lax": {"response_match_score": 0.1},
        "strict": {"response_match_score": 0.9},
    }
    statuses = {r["case_id"]: r["status"] for r in json.loads(outcome.out)["results"]}
    assert statuses == {"a": "passed", "lax": "passed", "strict": "failed"}
    assert outcome.code == 1


def test_criteria_of_a_folder_that_no_chosen_case_is_in_do_not_count(
    baton: Run, folder: Path
) -> None:
    evalset(folder / "sets" / "one" / "x.evalset.json", "a")
    criteria(folder / "sets" / "one" / "test_config.json", tool_trajectory_avg_score=1.0)
    evalset(folder / "sets" / "two" / "y.evalset.json", "b")
    criteria(folder / "sets" / "two" / "test_config.json", response_match_score=0.5)
    outcome = evaluate(baton, "sets", "--filter", "b")
    assert (outcome.code, scores(outcome)) == (0, {"b": {"response_match_score": 0.5}})


def test_criteria_given_by_name_go_before_all_others(baton: Run, folder: Path) -> None:
    cases = evalset(folder / "sets" / "x.evalset.json", "a")
    criteria(folder / "sets" / "test_config.json", tool_trajectory_avg_score=1.0)
    mine = criteria(folder / "mine.json", response_match_score={"threshold": 0.25})
    for option in ("--config_file_path", "--config-file-path"):
        outcome = evaluate(baton, cases, option, mine)
        assert scores(outcome) == {"a": {"response_match_score": 0.25}}
    assert scores(evaluate(baton, cases)) == {"a": {"tool_trajectory_avg_score": 1.0}}


def test_evaluators_of_a_config_go_before_the_folder_s_criteria(baton: Run, folder: Path) -> None:
    evalset(folder / "sets" / "x.evalset.json", "a")
    criteria(folder / "sets" / "test_config.json", tool_trajectory_avg_score=1.0)
    head = "dataset: sets\nproviders: [{type: python, target: 'scored_agent.py:reply'}]\n"
    (folder / "baton.yaml").write_text(head + "evaluators: [{type: response_match}]\n")
    assert list(scores(baton("eval", "--json"))["a"]) == ["response_match"]
    (folder / "baton.yaml").write_text(head)
    assert list(scores(baton("eval", "--json"))["a"]) == ["tool_trajectory_avg_score"]


def test_cases_of_baton_are_scored_by_what_they_state(baton: Run, folder: Path) -> None:
    (folder / "cases.yaml").write_text("""
cases:
- {id: chain, input: hi, agents: [desk]}
- {id: tools, input: refund me, tools: [refund]}
- {id: words, input: hi, response_contains: done}
""")
    outcome = evaluate(baton, "cases.yaml")
    assert outcome.code == 0
    assert set(scores(outcome)["chain"]) == {"agent_chain", "tool_calls", "response"}
    only = evaluate(baton, "cases.yaml", "--filter", "words")
    assert (only.code, set(scores(only)["words"])) == (0, {"response"})
    chosen = evaluate(baton, "cases.yaml:tools")
    assert (chosen.code, set(scores(chosen)["tools"])) == (0, {"tool_calls"})


def test_each_file_is_scored_by_what_its_own_cases_state(baton: Run, folder: Path) -> None:
    (folder / "sets").mkdir()
    (folder / "sets" / "own.yaml").write_text("cases: [{id: chain, input: hi, agents: [desk]}]")
    evalset(folder / "sets" / "theirs.evalset.json", "a")
    assert scores(evaluate(baton, "sets")) == {
        "chain": {"agent_chain": 0.8},
        "a": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8},
    }


def test_what_is_stated_and_not_scored_is_reported(baton: Run, folder: Path) -> None:
    (folder / "c.yaml").write_text("cases: [{id: a, input: hi, agents: [desk], rubrics: [polite]}]")
    outcome = evaluate(baton, "c.yaml")
    assert outcome.code == 0
    assert "no evaluator checks it: `rubrics`" in outcome.out


def read(folder: Path, text: str) -> Any:
    path = folder / "test_config.json"
    path.write_text(text)
    return read_criteria(path)


def test_a_file_without_criteria_asks_for_those_of_adk(tmp_path: Path) -> None:
    specs = read(tmp_path, "{}")
    assert {s.type: s.config["threshold"] for s in specs} == {
        "tool_trajectory_avg_score": 1.0,
        "response_match_score": 0.8,
    }


def test_both_spellings_and_options_are_read(tmp_path: Path) -> None:
    text = (
        '{"criteria": {"tool_trajectory_avg_score": {"threshold": 0.5, "matchType": "IN_ORDER"}}}'
    )
    (spec,) = read(tmp_path, text)
    assert spec.config == {"threshold": 0.5, "match_type": "IN_ORDER"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "test_config.json"),
        ("[]", "an object with `criteria` is expected"),
        ('{"criteria": {}}', "has to name at least one metric"),
        ('{"criteria": 1}', "has to name at least one metric"),
        ('{"critera": {}}', "did you mean `criteria`?"),
        ('{"criteria": {"response_match_scor": 1}}', "did you mean `response_match_score`?"),
        ('{"criteria": {"safety_v2": 0.8}}', "did you mean `safety_v1`"),
        ('{"criteria": {"final_response_match_v2": {}}}', "`threshold` is missing"),
        ('{"criteria": {"response_match_score": "high"}}', "has to be a number, got 'high'"),
        ('{"criteria": {"response_match_score": null}}', "has to be a number, got None"),
        ('{"criteria": {"response_match_score": true}}', "has to be a number, got True"),
        ('{"criteria": {"response_match_score": "nan"}}', "has to be a number, got 'nan'"),
        ('{"criteria": {"response_match_score": {}}}', "`threshold` is missing"),
        (
            '{"criteria": {"response_match_score": {"threshold": 1, "judge_model": 1}}}',
            "unknown key",
        ),
        (
            '{"criteria": {"response_match_score": 5}}',
            "1: criteria.response_match_score: `threshold`: expected a number <= 1",
        ),
        (
            '{"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "match_type": "ANYORDER"}}}',
            "did you mean `ANY_ORDER`?",
        ),
        ('{"criteria": {"token_usage_v1": 1}}', "needs no entry"),
        ('{"custom_metrics": {"mine": {}}}', 'mine: needs `"code_config": {"name":'),
        ('{"custom_metrics": []}', "has to name metrics"),
        (
            '{"custom_metrics": {"mine": {"code_config": {"name": "a.b"}}}}',
            "mine: is not among the `criteria`",
        ),
        (
            '{"criteria": {"m": 1}, "custom_metrics": {"m": {"code_config": {"name": "nowhere.f"}}}}',
            "no module `nowhere`",
        ),
        (
            '{"criteria": {"m": {}}, "custom_metrics": {"m": {"code_config": {"name": "math.sqrt"}}}}',
            "`threshold` is missing",
        ),
        (
            '{"criteria": {"m": 1}, "custom_metrics": {"m": {"code_confg": {"name": "math.sqrt"}}}}',
            "did you mean `code_config`?",
        ),
    ],
)
def test_criteria_that_cannot_be_scored_stop_the_run(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert any(said in str(problem) for problem in caught.value.problems), caught.value
    assert all("test_config.json" in str(problem) for problem in caught.value.problems)


def test_every_fault_of_criteria_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, '{"x": 1, "criteria": {"safety_v2": 1, "response_match_score": []}}')
    assert len(caught.value.problems) == 3


def test_broken_criteria_leave_no_folder(baton: Run, folder: Path) -> None:
    cases = evalset(folder / "sets" / "x.evalset.json", "a")
    criteria(folder / "sets" / "test_config.json", hallucinations_v1=0.5)
    outcome = evaluate(baton, cases)
    assert outcome.code == 2
    assert "`hallucinations_v1` asks a judge, but no model is configured" in outcome.err
    assert not (folder / ".baton").exists()
