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

import baton as baton_package
from baton.evaluators.judged import RubricEntry
from baton.evaluators.registry import all_evaluators
from baton.model import InputError
from baton.plugins import Entry
from baton.runner.plan import make_plan
from baton.testing import LlmServer, Received, llm_server

SESSIONS = sorted((ROOT / "tests" / "data" / "claude" / "current").glob("*/session"))
AXES = ["DispatchCorrectness", "ScopeFidelity", "ResultIntegration"]
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
    assert {row["evaluator"] for row in by_agent} >= set(AXES)


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
    assert all(name in header for name in AXES)


KNOWN_AGENTS = [path for path in SESSIONS if "unknown_type" not in path.parent.name]
"""Where an agent does not exist, the record itself says that the dispatch is wrong."""
THRESHOLDS = {
    "DispatchCorrectness": 0.85,
    "ScopeFidelity": 0.90,
    "ResultIntegration": 0.80,
    "TaskCompletion": 0.85,
}
OWN_JUDGES = {
    "DispatchCorrectness": {
        "supervisor_plan_state": "supervisor_pre_dispatch_context",
        "dispatch_call": "task_tool_input",
        "available_subagents": "subagent_catalog?",
    },
    "ScopeFidelity": {
        "dispatch_prompt": "subagent_prompt",
        "dispatch_tools": "subagent_allowed_tools",
        "subagent_trace": "subagent_turn_transcript",
    },
    "ResultIntegration": {
        "subagent_result": "task_tool_return_value",
        "supervisor_next_turn": "supervisor_post_dispatch_turn",
    },
}


def too_low(evaluation: baton_package.Evaluation) -> set[str]:
    """Return the axes below their threshold, as a loop in a CI job of one's own finds them."""
    return {
        score.evaluator
        for result in evaluation.results
        for score in result.scores
        if (least := THRESHOLDS.get(score.evaluator)) is not None
        and score.value is not None
        and score.value < least
    }


@pytest.mark.parametrize("own", [False, True])
def test_a_loop_over_thresholds_finds_the_axes_under_the_names_they_were_asked_for(
    llm: LlmServer, own: bool
) -> None:
    """The axes as they ship, and as rubrics of one's own with an `input_mapping`."""

    def judge(name: str) -> dict[str, Any]:
        options = {"rubric": f"Score {name}.", "input_mapping": OWN_JUDGES[name]}
        return {"type": "CustomLLMJudge", "name": name, "config": options, "optional": True}

    axes = [judge(name) for name in AXES] if own else [{"type": n, "optional": True} for n in AXES]
    asked = [*axes, *({"type": name, "optional": True} for name in BASELINE)]

    def run() -> baton_package.Evaluation:
        judging = llm.judge(retries=0, cache=False)
        return baton_package.score(KNOWN_AGENTS, evaluators=asked, judge=judging)

    good = run()
    assert too_low(good) == set()
    for name in THRESHOLDS:
        assert [score for _, score in good.scores(name) if score.value is not None], name
    of_dispatches = [score.unit for name in AXES for _, score in good.scores(name)]
    assert set(of_dispatches) == {"dispatch"}
    llm.script = blame
    assert too_low(run()) == set(THRESHOLDS)


def test_the_loop_works_with_evaluators_constructed_by_their_printed_names(llm: LlmServer) -> None:
    from baton.evaluators import (
        AnswerRefusal,
        ConversationCoherence,
        CustomLLMJudge,
        EvaluateFunctionCalling,
        TaskCompletion,
    )

    known = [session for session in KNOWN_AGENTS if "03_scope_bleed" in session.parts]
    judges = [
        CustomLLMJudge(name=name, rubric=f"Score {name}.", input_mapping=OWN_JUDGES[name])
        for name in AXES
    ]
    templates = [
        TaskCompletion(),
        EvaluateFunctionCalling(),
        AnswerRefusal(),
        ConversationCoherence(),
    ]

    def run() -> baton_package.Evaluation:
        judging = llm.judge(retries=0, cache=False)
        return baton_package.score(known, evaluators=[*templates, *judges], judge=judging)

    good = run()
    assert too_low(good) == set()
    assert {score.evaluator for score in good.results[0].scores} == {*AXES, *BASELINE}
    llm.script = blame
    assert too_low(run()) == set(THRESHOLDS)


def test_class_names_of_other_tools_take_the_options_of_those_tools() -> None:
    from baton import evaluators

    made = evaluators.SubAgentEvaluator(sequence_match_type="exact", allow_extra_agents=False)
    assert (made.name, made.type, made.sequence_match_type) == (
        "SubAgentEvaluator",
        "agent_chain",
        "exact",
    )
    named = evaluators.StructuredOutputEvaluator(name="fields")
    assert (named.name, named.type) == ("fields", "structured_output")
    assert {"SubAgentEvaluator", "CustomLLMJudge"} <= set(dir(evaluators))
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("SubAgentEvaluator", {"sequence_match_typ": "exact"}, "sequence_match_type"),
        ("TrajectoryEvaluator", {"sequence_match_type": "nearly"}, "nearly"),
        ("CustomLLMJudge", {"rubrik": "x"}, "rubric"),
    ]
    for name, options, says in wrong:
        with pytest.raises(InputError, match=says) as raised:
            getattr(evaluators, name)(**options)
        assert "config" not in str(raised.value)
    with pytest.raises(InputError, match="`TaskCompletion` is a class; give an instance of it"):
        baton_package.score(SESSIONS[0], evaluators=[evaluators.TaskCompletion])
    with pytest.raises(AttributeError, match="no attribute `NoSuchEvaluator`"):
        _ = evaluators.NoSuchEvaluator


def test_a_lookup_by_another_name_finds_the_scores_and_one_that_is_unknown_stops(
    llm: LlmServer,
) -> None:
    evaluation = baton_package.score(
        SESSIONS[0], evaluators=["ScopeFidelity"], judge=llm.judge(retries=0)
    )
    assert evaluation.scores() == evaluation.scores("ScopeFidelity")
    assert evaluation.scores("scope_fidelity") == evaluation.scores("ScopeFidelity") != []
    with pytest.raises(InputError, match="`ScopeFidelty` was not asked for; did you mean"):
        evaluation.scores("ScopeFidelty")
    with pytest.raises(InputError, match="`TaskCompletion` was not asked for"):
        evaluation.scores("TaskCompletion")


NEEDED: dict[str, dict[str, Any]] = {
    "contains": {"value": "x"},
    "cost": {"max_usd": 1},
    "dispatch_limits": {"max_depth": 1},
    "latency": {"max_seconds": 1},
    "starts_with": {"value": "x"},
    "tokens": {"max_total": 1},
    "tool_called": {"tool": "x"},
}
"""Options that an evaluator cannot do without."""
ALIASES = [(entry, name) for entry in all_evaluators() for name in entry.names[1:]]


@pytest.mark.parametrize(("entry", "name"), ALIASES, ids=[name for _, name in ALIASES])
def test_an_evaluator_reports_under_each_name_that_other_tools_have_for_it(
    entry: Entry, name: str
) -> None:
    options: dict[str, Any] = NEEDED.get(entry.type, {})
    if isinstance(entry.target, RubricEntry) and "{rubric}" in entry.target.rubric.prompt:
        options = {"rubric": "It is fine."}
    (planned,) = make_plan([{"type": name, "config": options}]).evaluators
    assert (planned.evaluator.name, planned.evaluator.type) == (name, entry.type)
