"""What gates decide, from the rows of an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import baton
from baton.gate.baseline import Snapshot, SnapshotBuilder, write_baseline
from baton.gate.decide import Decision, decide
from baton.gate.rules import read_gate
from baton.model import (
    AgentScores,
    Case,
    Content,
    DatasetHash,
    ExpectedTurn,
    GateResult,
    InputError,
    Provenance,
)
from baton.store import IndexRow

from .rows import row, trace


def decided(gate: Any, rows: list[IndexRow], **more: Any) -> Decision:
    return decide(read_gate(gate), rows, **more)


def one(gate: Any, rows: list[IndexRow]) -> GateResult:
    (result,) = decided(gate, rows).results
    return result


def judged(case: str, agent: str, value: float, *tags: str) -> IndexRow:
    score = AgentScores(evaluator="values", agent=agent, passed=1, total=value)
    return row(case, by_agent=[score], tags=list(tags))


def cost(case: str, usd: float | None, *, least: bool = False) -> IndexRow:
    plain = {"cost_usd": usd, "at_least": ["cost_usd"] if least else []}
    return row(case, efficiency=plain)


def test_the_pass_rate_counts_errors_and_skipped_cases_as_not_passed() -> None:
    rows = [row("a"), row("b", "failed"), row("c", "error"), row("d", "skipped")]
    result = one("pass_rate >= 0.5", rows)
    assert (result.status, result.mean, result.scored) == ("failed", 0.25, 4)
    assert [low.case_id for low in result.cases] == ["b", "c", "d"]
    assert result.reason == "1 of 4 passed, 0.25"


def test_a_pass_rate_decides_in_place_of_single_cases() -> None:
    decision = decided("pass_rate >= 0.5", [row("a"), row("b", "failed")])
    assert (decision.on_cases, decision.missed) == (True, False)
    assert not decided("pass_rate by tag:x >= 0.5", [row("a", tags=["x"])]).on_cases


def test_a_tag_chooses_its_cases() -> None:
    rows = [row("a", tags=["checkout"]), row("b", "failed")]
    assert one("pass_rate by tag:checkout >= 1", rows).status == "passed"
    values = [judged("a", "x", 1.0, "checkout"), judged("b", "x", 0.0)]
    assert one("values by tag:checkout >= 1", values).mean == 1.0


def test_a_tag_that_no_case_has_decides_nothing() -> None:
    decision = decided("pass_rate by tag:chekout >= 1", [row("a", tags=["checkout"])])
    assert "has nothing to decide by: no case" in decision.problems()[0]


def test_too_few_verdicts_of_an_agent_are_neither_good_nor_bad() -> None:
    rows = [judged(f"c{n}", "often", 1.0) for n in range(20)] + [judged("x", "rarely", 0.0)]
    decision = decided("values by agent >= 0.9 (min 20)", rows)
    assert [(r.agent, r.status) for r in decision.results] == [
        ("often", "passed"),
        ("rarely", "unclear"),
    ]
    assert decision.results[1].reason == "1 verdict, and it takes 20 to tell"
    assert (decision.missed, decision.problems()) == (False, [])


def test_too_few_verdicts_of_everybody_are_an_error() -> None:
    decision = decided("values by agent >= 0.9 (min 20)", [judged("x", "rarely", 1.0)])
    assert decision.problems()


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ("cost_usd.p95 <= 0.10", "failed"),
        ("cost_usd.p50 <= 0.10", "passed"),
        ("cost_usd.max <= 1", "passed"),
        ("cost_usd.sum <= 1.5", "failed"),
        ("cost_usd.mean >= 0.1", "passed"),
    ],
)
def test_what_cases_took_has_statistics(rule: str, status: str) -> None:
    rows = [cost(f"c{n}", 0.05) for n in range(18)] + [cost("x", 0.9), cost("y", 0.9)]
    result = one(rule, rows)
    assert result.status == status
    if rule.startswith("cost_usd.p95"):
        assert [low.case_id for low in result.cases][:2] == ["x", "y"]


def test_a_cost_that_is_not_known_is_no_low_cost() -> None:
    assert one("cost_usd.p95 <= 1", [cost("a", 0.1), cost("b", None)]).status == "error"
    assert one("cost_usd.p95 <= 1", [cost("a", 0.1, least=True)]).status == "error"
    assert one("cost_usd.p95 <= 1", [cost("a", 2.0, least=True)]).status == "failed"


def test_a_case_that_must_pass_does_so_in_every_repeat() -> None:
    rows = [row("refund"), row("refund", "failed", repeat=1), row("policy")]
    gate = {"must_pass": ["refund", "pol*", "nobody"]}
    results = {r.rule: r for r in decided(gate, rows).results}
    assert {name: r.status for name, r in results.items()} == {
        "must pass: refund": "failed",
        "must pass: pol*": "passed",
        "must pass: nobody": "error",
    }
    assert results["must pass: refund"].cases[0].repeat == 1


def test_errors_are_no_error_where_the_gate_allows_them() -> None:
    rows = [row(f"c{n}") for n in range(19)] + [row("x", "error")]
    assert decided("error_rate <= 0.05", rows).on_errors
    assert one("error_rate == 0", rows).status == "failed"


def test_thresholds_of_another_dataset_decide_nothing() -> None:
    made = Provenance(dataset=DatasetHash(hash="new", cases=1), prompts={"desk": "p2"})
    gate = {"thresholds": ["pass_rate >= 0"], "for": {"dataset": "old", "prompts": {"desk": "p1"}}}
    problems = decided(gate, [row("a")], provenance=made).problems()
    assert "dataset: they are for old, this is new" in problems[0]
    assert "prompts of desk: they are for p1, this is p2" in problems[1]


def compared(tmp_path: Path, before: list[IndexRow], after: list[IndexRow]) -> Decision:
    builder = SnapshotBuilder()
    for each in before:
        builder.add(each)
    snapshot = Snapshot(id="b", name="b", status="passed", cases=builder.cases())
    write_baseline(snapshot, tmp_path / "b.json")
    gate = read_gate({"regression": {"baseline": "b.json"}}, tmp_path)
    return decide(gate, after, Provenance())


def test_a_case_that_the_baseline_has_and_nobody_played_is_no_pass(tmp_path: Path) -> None:
    decision = compared(tmp_path, [row("a"), row("b")], [row("a")])
    assert "without a verdict that they have there: 1 case, b" in decision.problems()[0]


def test_a_case_that_is_skipped_now_is_no_pass(tmp_path: Path) -> None:
    decision = compared(tmp_path, [row("a"), row("b")], [row("a"), row("b", "skipped")])
    assert decision.problems()


def test_failures_that_were_there_before_are_no_regression(tmp_path: Path) -> None:
    rows = [row(f"c{n}", "failed" if n < 3 else "passed") for n in range(30)]
    decision = compared(tmp_path, rows, rows)
    assert [result.status for result in decision.results] == ["passed"]
    assert decision.on_cases


def test_from_python_a_gate_for_another_dataset_does_not_start() -> None:
    case = Case(id="a", turns=[ExpectedTurn(input=Content(text="hi"))])
    gate = {"thresholds": ["pass_rate >= 0"], "for": {"dataset": "0123456789abcdef"}}
    with pytest.raises(InputError, match="the thresholds are not for this dataset"):
        baton.score([trace("a")], [case], gate=gate)
