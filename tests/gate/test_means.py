"""The gate: means over all cases, of everybody or of each sub-agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import baton
from baton.gate.decide import decide
from baton.gate.read_thresholds import read_gate
from baton.model import (
    AgentScores,
    Case,
    Content,
    EvalContext,
    Evaluation,
    ExpectedTurn,
    InputError,
    Low,
    Score,
    Trace,
    Unit,
)
from baton.reports.figures import gate_line

from .rows import by_desk, row


class Values:
    """Gives the values that a case's id says, each about an agent: ``a=1,b=0.5``."""

    name = type = "values"
    version = "1"
    unit: Unit = "dispatch"

    def with_options(self, override: Mapping[str, Any]) -> Values:
        assert not override
        return self

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        return [self._score(part) for part in trace.id.split(",") if "=" in part] or [
            Score(evaluator="values", type="values", version="1", status="skipped")
        ]

    def _score(self, part: str) -> Score:
        agent, _, value = part.partition("=")
        return Score(
            evaluator="values",
            type="values",
            version="1",
            unit="dispatch",
            subject=[f"d-{agent}"],
            status="passed",
            value=float(value),
            details={"to": agent},
        )


def scored(names: list[str], *gate: str, **more: str) -> Evaluation:
    return baton.score(
        [by_desk(name) for name in names], None, [Values()], gate=gate, agent_names=more
    )


def test_the_mean_over_all_agents_decides() -> None:
    names = ["a=1,b=1", "a=1,b=0.4"]
    assert scored(names, "values >= 0.85").exit_code == 0
    found = scored(names, "values >= 0.9")
    assert found.exit_code == 1
    (result,) = found.gate
    assert (result.status, result.agent, result.mean, result.scored) == ("failed", None, 0.85, 4)
    assert result.cases == [Low(case_id="a=1,b=0.4", value=0.4, subject=["d-b"])]


def test_by_agent_one_that_is_good_does_not_make_up_for_one_that_is_bad() -> None:
    found = scored(["a=1,b=1", "a=1,b=0.4"], "values by agent >= 0.85")
    assert found.exit_code == 1
    assert [(r.agent, r.status) for r in found.gate] == [("a", "passed"), ("b", "failed")]


def test_agents_go_by_the_names_that_cases_use() -> None:
    found = scored(["recorded=1"], "values by agent >= 1", recorded="known")
    assert [result.agent for result in found.gate] == ["known"]


def test_a_limit_from_above_names_the_highest() -> None:
    found = scored(["a=0.1", "a=0.9", "a=0.2"], "values <= 0.3")
    (result,) = found.gate
    assert (result.status, [low.case_id for low in result.cases]) == ("failed", ["a=0.9"])


def test_no_more_than_three_cases_are_named_the_worst_first() -> None:
    found = scored([f"a=0.{n}" for n in (5, 3, 4, 1, 2)], "values >= 0.8")
    assert [low.value for low in found.gate[0].cases] == [0.1, 0.2, 0.3]


def test_a_rule_without_a_verdict_is_no_pass() -> None:
    found = scored(["nothing"], "values >= 0")
    assert found.exit_code == 3
    assert "the gate's `values >= 0` could not be decided: no verdict" in found.problems


def test_a_trace_that_comes_twice_counts_once() -> None:
    case = Case(id="a=0.2", turns=[ExpectedTurn(input=Content(text="hi"))])
    both = [by_desk("a=0.2"), by_desk("a=0.2")]
    found = baton.score(both, [case], [Values()], gate=["values >= 0.1"])
    assert [one.scored for one in found.by_agent] == []
    assert found.exit_code == 3


def test_a_rule_is_about_an_evaluator_that_is_asked_for() -> None:
    with pytest.raises(
        InputError, match="`valeus` is not part of this evaluation; did you mean `values`"
    ):
        scored(["a=1"], "valeus >= 0.5")


@pytest.mark.parametrize(
    "text",
    ["values", "values > 0.5", "values >= high", "values by agents >= 1", ">= 1", "v >= ..1"],
)
def test_what_is_not_a_rule_says_how_one_is_written(text: str) -> None:
    with pytest.raises(InputError, match=r"is not a rule: write `EVALUATOR >= 0\.85`"):
        read_gate([text])


def test_rounding_does_not_decide() -> None:
    third = AgentScores(evaluator="values", agent="a", passed=3, total=0.1 + 0.2 + 0.3)
    (result,) = decide(read_gate(["values >= 0.2"]), [row("c", by_agent=[third])]).results
    assert result.status == "passed"


def test_a_limit_in_percent_is_named_where_values_are_shares() -> None:
    (percent,) = scored(["a=1"], "values >= 80").gate
    assert "is 1.00 over 1; values are from 0 to 1: write 0.8" in gate_line(percent)
    (scale,) = scored(["a=1"], "values >= 4").gate
    assert "from 0 to 1" not in gate_line(scale)
