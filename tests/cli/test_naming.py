"""What a command is given: configs and criteria, datasets among recordings, evaluators to add."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
CASES = "cases:\n  - {id: refund, input: hi, agents: [support_router, billing_agent]}\n"
CRITERIA = {"criteria": {"tool_trajectory_avg_score": 0.5}}
AGENT = "def reply(message):\n    return {'output': 'hello ' + message, 'agents': ['desk']}\n"
EVAL_SET = {
    "eval_set_id": "s",
    "eval_cases": [
        {
            "eval_id": "refund",
            "conversation": [
                {
                    "invocation_id": "i1",
                    "user_content": {"parts": [{"text": "Please refund order 42."}]},
                    "final_response": {"parts": [{"text": "Done."}]},
                }
            ],
        }
    ],
}


@pytest.fixture
def folder(tmp_path: Path, recordings: Path) -> Path:
    """A folder with a recording, cases, criteria of ADK under a name of their own, and an agent."""
    run = (recordings / "support_desk" / "refund.sse").read_bytes()
    (tmp_path / "refund.sse").write_bytes(run)
    (tmp_path / "cases.yaml").write_text(CASES)
    (tmp_path / "strict.json").write_text(json.dumps(CRITERIA))
    (tmp_path / "shop.py").write_text(AGENT)
    return tmp_path


def evaluators(outcome: Any) -> list[str]:
    return [each["evaluator"] for each in json.loads(outcome.out)["evaluators"]]


def test_score_takes_criteria_of_adk_as_the_config(baton: Run, folder: Path) -> None:
    outcome = baton("score", "refund.sse", "-d", "cases.yaml", "-c", "strict.json", "--json")
    assert evaluators(outcome) == ["tool_trajectory_avg_score"], outcome.err


def test_eval_takes_criteria_and_configs_by_the_same_option(baton: Run, folder: Path) -> None:
    line = ["eval", "shop.py:reply", "cases.yaml", "--json"]
    (folder / "baton.yaml").write_text("evaluators: [response, latency]\n")
    assert evaluators(baton(*line, "-c", "strict.json")) == ["tool_trajectory_avg_score"]
    assert evaluators(baton(*line, "-c", "baton.yaml")) == ["response", "latency"]
    old = baton(*line, "--config_file_path", "strict.json")
    assert evaluators(old) == ["tool_trajectory_avg_score"]


def test_a_named_agent_plays_in_the_place_of_the_providers_of_a_config(
    baton: Run, folder: Path
) -> None:
    (folder / "baton.yaml").write_text(
        "dataset: cases.yaml\nevaluators: [latency]\n"
        "providers: [{type: python, target: 'gone.py:a'}, {type: python, target: 'gone.py:b'}]\n"
    )
    outcome = baton("eval", "shop.py:reply", "-c", "baton.yaml", "--json")
    assert [each["case_id"] for each in json.loads(outcome.out)["results"]] == ["refund"]
    (made,) = (folder / ".baton" / "evaluations").iterdir()
    again = baton("eval", "shop.py:reply", "--resume", made)
    assert "baton eval shop.py:reply --config baton.yaml --resume" in again.err
    assert baton("eval", "shop.py:reply", "-c", "baton.yaml", "--resume", made).code == 0


def test_a_config_is_a_target_by_option_as_by_place(baton: Run, folder: Path) -> None:
    (folder / "mine.yaml").write_text(
        "dataset: cases.yaml\nevaluators: [latency]\n"
        "providers: [{type: python, target: 'shop.py:reply'}]\n"
    )
    assert evaluators(baton("eval", "-c", "mine.yaml", "--json")) == ["latency"]


@pytest.mark.parametrize("words", [["refund.sse", "cases.yaml"], ["cases.yaml", "refund.sse"]])
def test_a_dataset_among_the_recordings_is_the_dataset(
    baton: Run, folder: Path, words: list[str]
) -> None:
    outcome = baton("score", *words)
    assert outcome.code == 0, outcome
    assert "cases.yaml: is used as a dataset" in outcome.err


def test_an_eval_set_beside_a_recording_is_its_dataset_and_alone_a_recording(
    baton: Run, folder: Path
) -> None:
    (folder / "set.evalset.json").write_text(json.dumps(EVAL_SET))
    beside = baton("score", "refund.sse", "set.evalset.json", "-c", "strict.json")
    assert "set.evalset.json: is used as a dataset" in beside.err
    both = baton("score", "refund.sse", "set.evalset.json", "-d", "cases.yaml")
    assert "used as" not in both.err
    assert "used as" not in baton("score", "set.evalset.json").err


def test_a_plus_adds_an_evaluator_to_what_is_asked_for_otherwise(baton: Run, folder: Path) -> None:
    line = ["eval", "shop.py:reply", "cases.yaml", "--json"]
    alone = evaluators(baton(*line))
    assert evaluators(baton(*line, "-e", "+latency")) == [*alone, "latency"]
    assert evaluators(baton(*line, "-e", "latency")) == ["latency"]
    with_criteria = baton(*line, "-c", "strict.json", "-e", "+latency", "-e", "+agent_chain")
    assert evaluators(with_criteria) == ["tool_trajectory_avg_score", "latency", "agent_chain"]
    (folder / "baton.yaml").write_text("evaluators: [response]\n")
    scored = baton("score", "refund.sse", "-c", "baton.yaml", "-e", "+handoff_loops", "--json")
    assert evaluators(scored) == ["response", "handoff_loops"]


def test_names_with_and_without_a_plus_do_not_mix(baton: Run, folder: Path) -> None:
    outcome = baton("score", "refund.sse", "-e", "+latency", "-e", "response")
    assert outcome.code == 2
    assert "--evaluator: `+` adds" in outcome.err


def test_what_is_added_by_name_may_not_go_unscored(baton: Run, folder: Path) -> None:
    # `result_used` is among those that are on by default, and may score nothing there.
    assert baton("score", "refund.sse").code == 0
    outcome = baton("score", "refund.sse", "-e", "+result_used")
    assert outcome.code == 3
    assert "`result_used` scored nothing" in outcome.out


def test_a_rule_that_names_a_type_is_below_the_alias_that_was_asked_for(
    baton: Run, folder: Path
) -> None:
    (folder / "baton.yaml").write_text(
        "providers: [{type: python, target: 'shop.py:reply'}]\n"
        "evaluators: [SubAgentEvaluator]\n"
        "gate: ['agent_chain >= 0.9']\n"
    )
    outcome = baton("eval", "baton.yaml", "cases.yaml")
    assert outcome.code == 1
    table = [x for x in outcome.out.splitlines() if x.startswith(("mean (verdicts)", "gate "))]
    assert table[0].split()[-1] == "SubAgentEvaluator"
    assert table[1].split() == ["gate", ">=", "0.9"]
