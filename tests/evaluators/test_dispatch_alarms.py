"""The evaluators of single dispatches over real recordings: what they prove, and no false alarm."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

import baton
from baton.evaluators import DispatchCompleted, DispatchScope, DispatchTargetKnown, HandoffLoops
from baton.model import Dispatch, EvalContext, Evaluator, Score, Trace

DATA = Path(__file__).parent.parent / "data"
EVALUATORS = (DispatchTargetKnown(), DispatchScope(), DispatchCompleted(), HandoffLoops())
# What the recorded scenarios are called in which something goes wrong, by their `truth.json`.
FAULTY = {
    "dispatch_target_known": r"unknown|nobody|failures|handoff_fails",
    "dispatch_scope": r"scope_bleed",
    "dispatch_completed": (
        r"fail|raises|unknown|nobody|bad_input|multiple_handoffs|two_transfers|killed|dead_child"
        r"|agno/direct|unrelated_agent|empty_answer|single_turn_content|agent_is_busy"
    ),
    "handoff_loops": r"(?!)",
}


@functools.cache
def recordings() -> list[tuple[str, Trace]]:
    found = []
    for folder in ("otel", "claude", "strands"):
        for path in sorted((DATA / folder).rglob("*.json*")):
            if path.name != "truth.json":
                try:
                    traces = baton.load_traces(path)
                except baton.InputError:
                    continue
                found += [(path.relative_to(DATA).as_posix(), trace) for trace in traces]
    return found


def alarms(evaluator: Evaluator, trace: Trace) -> list[Score]:
    scores = evaluator.evaluate(trace, None, EvalContext())
    assert isinstance(scores, list)
    return [score for score in scores if score.status == "failed"]


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda e: e.type)
def test_every_alarm_is_of_a_scenario_in_which_something_went_wrong(
    evaluator: Evaluator,
) -> None:
    assert len(recordings()) > 400
    false = [
        (path, score.reason)
        for path, trace in recordings()
        for score in alarms(evaluator, trace)
        if not re.search(FAULTY[evaluator.type], path)
    ]
    assert false == []


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda e: e.type)
def test_every_alarm_names_what_proves_it(evaluator: Evaluator) -> None:
    for _, trace in recordings():
        for score in alarms(evaluator, trace):
            assert score.evidence
            assert {id_ for e in score.evidence for id_ in e.ids} <= ids_of(trace)


def ids_of(trace: Trace) -> set[str]:
    ids = set()
    for turn in trace.turns:
        ids |= {turn.id, *(d.id for d in turn.dispatches), *(run.id for run in turn.runs)}
        ids |= {step.id for run in turn.runs for step in run.steps}
    return ids


@pytest.mark.parametrize(
    ("path", "type_", "kind"),
    [
        ("otel/strands/swarm_failures.json", "dispatch_target_known", "unknown_target"),
        ("otel/autogen/failures_rooted.json", "dispatch_target_known", "unknown_target"),
        ("otel/crewai/unknown_coworker.json", "dispatch_target_known", "unknown_target"),
        ("otel/langgraph/handoff_fails.json", "dispatch_target_known", "unknown_target"),
        ("otel/openai-agents/handoff_unknown.json", "dispatch_target_known", "unknown_target"),
        (
            "claude/current/14_unknown_type/messages.jsonl",
            "dispatch_target_known",
            "unknown_target",
        ),
        ("claude/current/14_unknown_type/messages.jsonl", "dispatch_completed", "refused"),
        ("claude/current/13_killed/messages.jsonl", "dispatch_completed", "killed"),
        ("claude/legacy/22_dead_child/messages.jsonl", "dispatch_completed", "failed"),
        ("otel/strands/swarm_failed_node.json", "dispatch_completed", "receiver_failed"),
        ("otel/langgraph/supervisor_two_transfers.json", "dispatch_completed", "unanswered"),
    ],
)
def test_a_recorded_fault_is_found(path: str, type_: str, kind: str) -> None:
    evaluator = next(e for e in EVALUATORS if e.type == type_)
    scores = [s for trace in baton.load_traces(DATA / path) for s in alarms(evaluator, trace)]
    assert kind in [found["kind"] for score in scores for found in score.details["findings"]]


def test_a_tool_of_a_sibling_that_was_tried_is_named_with_its_owner() -> None:
    path = DATA / "claude/current/03_scope_bleed/session"
    scores = [s for trace in baton.load_traces(path) for s in alarms(DispatchScope(), trace)]
    assert scores
    (found,) = scores[0].details["findings"]
    assert (found["kind"], found["tool"]) == ("tool_attempted", "Edit")
    assert "refactor-agent" in found["belongs_to"]


def test_hand_offs_of_half_a_recording_prove_no_fault() -> None:
    path = DATA / "otel/autogen/swarm_ping_pong_noruntime.json"
    for trace in baton.load_traces(path):
        for evaluator in EVALUATORS:
            assert alarms(evaluator, trace) == []


def dispatches(trace: Trace) -> list[Dispatch]:
    return [dispatch for turn in trace.turns for dispatch in turn.dispatches]


def test_each_dispatch_but_a_return_gets_one_score() -> None:
    for _, trace in recordings():
        made = [d.id for d in dispatches(trace) if d.kind != "return" and d.basis != "order"]
        scores = DispatchCompleted().evaluate(trace, None, EvalContext())
        assert [s.subject for s in scores if s.subject] == [[id_] for id_ in made]
