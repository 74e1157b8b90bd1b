"""Which agent a score is about, and scores that sum up several verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from baton.model import AgentScores, JudgeUse, Score
from baton.runner.plan import Plan
from baton.runner.scoring import agent_scores
from baton.testing import build

USE = JudgeUse(model="m", rubric_version="1", samples=1, requests=1)


def on_axis(value: float | None, **details: Any) -> Score:
    status: Any = "skipped" if value is None else "passed" if value >= 0.5 else "failed"
    return build.score(status, "axis", value, details=details, judge=USE, subject=["s"])  # fmt: skip


def sums(*scores: Score) -> dict[str | None, AgentScores]:
    plan = Plan(evaluators=(), by_agent=frozenset({"axis"}))
    return {one.agent: one for one in agent_scores(plan, scores, {})}


def test_a_dispatch_is_about_its_receiver_and_anything_else_about_its_agent() -> None:
    found = sums(
        on_axis(1.0, **{"from": "main", "to": "writer"}), on_axis(0.0, agent="main"), on_axis(1.0)
    )
    assert {agent: one.mean for agent, one in found.items()} == {"writer": 1, "main": 0, None: 1}


def test_parts_of_a_score_count_for_the_agent_of_each() -> None:
    parts = [
        {"subject": ["t1"], "agent": "a", "status": "passed", "value": 1.0},
        {"subject": ["t2"], "agent": "b", "status": "failed", "value": 0.25},
        {"subject": ["t3"], "agent": "b", "status": "skipped"},
    ]
    found = sums(on_axis(0.625, units=parts))
    assert (found["a"].mean, found["b"].mean, found["b"].skipped) == (1, 0.25, 1)
    assert found["b"].worst[0].subject == ["t2"]
    assert found[None].asked.requests == 1  # nobody knows whose part took how much
    assert found[None].scored == 0


def test_what_is_asked_of_one_agent_alone_is_its_own() -> None:
    parts = [{"agent": "a", "status": "passed", "value": 1.0}] * 2
    found = sums(on_axis(1.0, units=parts))
    assert (list(found), found["a"].scored, found["a"].asked.requests) == (["a"], 2, 1)


def test_verdicts_that_findings_gave_are_distinguished() -> None:
    one = sums(on_axis(0.0, to="a", settled_by={"finding": "dispatch_scope"}))["a"]
    assert (one.settled, one.failed) == (1, 1)


@pytest.mark.parametrize("details", [{"units": "three"}, {"to": 3}, {"units": []}, {"units": [{}]}])
def test_details_of_an_evaluator_of_ones_own_may_be_anything(details: dict[str, Any]) -> None:
    assert sums(on_axis(1.0, **details))[None].scored == 1


def test_other_evaluators_are_not_counted() -> None:
    assert agent_scores(Plan(evaluators=()), [on_axis(1.0, to="a")], {}) == []
