"""Means by sub-agent, what judges took, and the gate, as a terminal shows them."""

from __future__ import annotations

import io

from baton.model import AgentScores, Asked, GateResult, Low
from baton.reports.figures import (
    asked_line,
    gate_line,
    plain_judges,
    print_asked,
    print_by_agent,
)
from baton.reports.text import console_for


def found(agent: str | None, total: float, scored: int = 1, **more: object) -> AgentScores:
    sums = AgentScores(evaluator="axis", agent=agent, passed=scored, total=total)
    for name, value in more.items():
        setattr(sums, name, value)
    return sums


def table(sums: list[AgentScores], gate: list[GateResult] | None = None) -> list[str]:
    out = io.StringIO()
    print_by_agent(sums, gate or [], console_for(out))
    return [" ".join(line.split()) for line in out.getvalue().splitlines() if line.strip()]


def rule(**more: object) -> GateResult:
    told = {"rule": "axis by agent >= 0.9", "evaluator": "axis", "threshold": 0.9}
    return GateResult(**{**told, "status": "failed", "mean": 0.5, "scored": 2, **more})  # type: ignore[arg-type]


def test_the_mean_of_all_counts_every_verdict_once() -> None:
    lines = table([found("one", 3.0, 4), found("two", 0.5)])
    assert lines == ["mean (verdicts) axis", "one 0.75 (4)", "two 0.50 (1)", "all 0.70 (5)"]


def test_errors_are_reported_beside_the_mean_and_not_in_it() -> None:
    assert table([found("one", 1.0, 1, error=2)])[1] == "one 1.00 (1, 2 errors)"
    assert table([found("one", 0.0, 0, error=2)])[1] == "one – (0, 2 errors)"


def test_without_agents_and_gate_there_is_no_table() -> None:
    assert table([found(None, 1.0)]) == []
    assert table([found(None, 1.0)], [rule(agent=None)])[-1] == "gate by agent >= 0.9"


def test_of_many_agents_the_worst_are_shown() -> None:
    lines = table([found(f"agent{n:02d}", n / 40) for n in range(40)])
    assert "agent29 0.72 (1)" in lines
    assert not any(line.startswith("agent30") for line in lines)
    assert lines[-1] == "… and 10 more agents; the JSON report has them all"
    assert "all 0.49 (40)" in lines


def test_names_in_a_trace_cannot_write_to_the_terminal() -> None:
    assert table([found("\x1b[31mred", 1.0)])[1] == "\\u001b[31mred 1.00 (1)"


def test_a_cost_that_is_not_known_is_not_nothing() -> None:
    assert asked_line(Asked(scores=1, requests=1, unpriced=1), 0).endswith("unknown")
    half = Asked(scores=2, requests=2, cost_usd=0.5, unpriced=1)
    assert asked_line(half, 3) == (
        "2 verdicts, 0 cached, 3 settled by findings, 2 calls, 0 tokens, ≥ $0.5000"
    )


def test_what_judges_took_is_summed_up_by_evaluator_and_in_detail_by_agent() -> None:
    asked = Asked(scores=1, requests=2, tokens=30, cost_usd=0.25, timings={"seconds": 3.0})
    sums = [found("one", 1.0, asked=asked), found("two", 1.0, asked=asked, settled=1)]
    for detailed, rows in ((False, ["axis"]), (True, ["axis", "one", "two"])):
        out = io.StringIO()
        print_asked(sums, console_for(out), detailed=detailed)
        lines = [line.split() for line in out.getvalue().splitlines() if line.strip()]
        assert [line[0] for line in lines[1:]] == rows
        assert lines[1] == ["axis", "2", "0", "1", "4", "60", "$0.5000", "1.50", "s"]
    assert plain_judges(sums)["by_evaluator"]["axis"]["tokens"] == 60


def test_where_nobody_was_asked_nothing_is_said_of_it() -> None:
    out = io.StringIO()
    print_asked([found("one", 1.0)], console_for(out))
    assert out.getvalue() == ""


def test_a_missed_rule_names_agent_mean_and_cases() -> None:
    line = gate_line(rule(agent="two", cases=[Low(case_id="c1", value=0.25, subject=["d1"])]))
    assert line == (
        "gate: axis by agent >= 0.9: the mean of `two` is 0.50 over 2; the worst: c1 0.25 at d1"
    )
    at = "dispatch d1 (one → two), step s5 (two)"
    low = Low(case_id="c1", value=0.25, subject=["d1"], steps=["s5"], at=at)
    assert gate_line(rule(agent="two", cases=[low])).endswith(f"the worst: c1 0.25 at {at}")
    of_turn = Low(case_id="c1", value=0.25, steps=["turn1"])
    assert gate_line(rule(agent="two", cases=[of_turn])).endswith("c1 0.25 at turn1")
