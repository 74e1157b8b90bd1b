"""The seven rubrics of the guide to sub-agents, over real sessions, with its thresholds in a gate."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT, Baton
from tests.seeds.test_judged import blame, praise

from baton.testing import LlmServer, Received, llm_server

SESSIONS = sorted((ROOT / "tests" / "data" / "claude" / "current").glob("*/session"))
AXES = ["DispatchCorrectness", "ScopeFidelity", "ResultIntegration"]
NAMES = ["dispatch_correctness", "scope_fidelity", "result_integration"]
BASELINE = ["TaskCompletion", "EvaluateFunctionCalling", "AnswerRefusal", "ConversationCoherence"]
QUESTIONS = {
    "DispatchCorrectness": "was handing this work on, in this way, the right decision",
    "ScopeFidelity": "did the receiver stay inside what it was handed",
    "ResultIntegration": "did the caller make use of what came back",
    "TaskCompletion": "did the user get what this message asks for",
    "EvaluateFunctionCalling": "did the agents use their tools as this request calls for",
    "AnswerRefusal": "was refusing, or not refusing, the right thing to do here",
    "ConversationCoherence": "do the answers of this conversation hang together",
}
SHOWN = {
    "DispatchCorrectness": {
        "What the user asked", "What the caller saw and did before", "The dispatch",
        "The agents there are",
    },
    "ScopeFidelity": {"The dispatch", "All that the receiver did", "What the receiver was really given"},
    "ResultIntegration": {"The dispatch", "What came back", "What the caller did then"},
    "TaskCompletion": {"What the user asked", "The answer", "All that the agents did"},
    "EvaluateFunctionCalling": {"What the user asked", "Tool calls"},
    "AnswerRefusal": {"What the user asked", "The answer"},
    "ConversationCoherence": {"The conversation"},
}  # fmt: skip
"""What each question shows its judge, by the headings of the blocks."""


@pytest.fixture
def llm() -> Iterator[LlmServer]:
    with llm_server(praise) as server:
        yield server


def config(folder: Path, llm: LlmServer) -> Path:
    told = {
        "judge": llm.judge(retries=0),
        "evaluators": [{"type": name, "optional": True} for name in (*AXES, *BASELINE)],
        "gate": [
            "DispatchCorrectness >= 0.85",
            "ScopeFidelity by agent >= 0.90",
            "ResultIntegration by agent >= 0.80",
        ],
        "pass_rule": {"mean": 0},
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(told))
    return path


def question(request: Received) -> str:
    (name,) = [name for name, text in QUESTIONS.items() if text in request.system]
    return name


def test_each_question_shows_the_judge_what_it_is_about(
    baton: Baton, tmp_path: Path, llm: LlmServer
) -> None:
    outcome = baton("score", *SESSIONS, "-c", config(tmp_path, llm), "--json")
    assert outcome.code == 0, outcome.err
    asked: dict[str, list[str]] = defaultdict(list)
    for request in llm.requests:
        asked[question(request)].append(request.user)
    assert set(asked) == set(QUESTIONS)
    for name, prompts in asked.items():
        for heading in SHOWN[name]:
            assert all(heading in prompt for prompt in prompts), (name, heading)
        others = {h for each in SHOWN.values() for h in each} - SHOWN[name]
        only = {"What came back", "What the caller did then"} & others
        if name == "DispatchCorrectness":
            assert not any(heading in prompt for prompt in prompts for heading in only)
    by_agent = json.loads(outcome.out)["by_agent"]
    assert {row["evaluator"] for row in by_agent} >= set(NAMES)


def test_the_failing_axis_sub_agent_and_case_are_named(
    baton: Baton, tmp_path: Path, llm: LlmServer
) -> None:
    def strict(request: Received) -> Any:
        answer = praise(request)
        if question(request) == "ResultIntegration" and "validator" in request.user:
            answer["label"] = blame(request)["label"]
        return answer

    llm.script = strict
    outcome = baton("score", *SESSIONS, "-c", config(tmp_path, llm))
    assert outcome.code == 1
    missed = [line for line in outcome.out.splitlines() if line.startswith("✗ gate:")]
    assert all("by agent >= 0.80" in line for line in missed)
    (line,) = [line for line in missed if "`validator-agent`" in line]
    assert "the worst: " in line
    header, *_ = [line for line in outcome.out.splitlines() if line.startswith("mean (verdicts)")]
    assert all(name in header for name in NAMES)
