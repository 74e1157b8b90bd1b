"""What gates decide, from the rows of an index."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.gate.decide import decide
from baton.gate.read_thresholds import Decision, read_gate
from baton.gate.snapshot import Snapshot, SnapshotBuilder, write_baseline
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

from .rows import by_desk, row


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


def test_the_pass_rate_is_of_what_was_scored_and_names_the_errors() -> None:
    rows = [row("a"), row("b", "failed"), row("c", "error"), row("d", "skipped")]
    result = one("pass_rate >= 0.6", rows)
    assert (result.status, result.mean, result.scored) == ("failed", 0.5, 2)
    assert [low.case_id for low in result.cases] == ["b"]
    assert result.reason == "1 of 2 passed, 0.5; not among them: 1 error, 1 skipped"


def test_a_pass_rate_of_nothing_but_errors_decides_nothing() -> None:
    result = one("pass_rate >= 0", [row("a", "error"), row("b", "error")])
    assert (result.status, result.mean) == ("error", None)
    assert result.reason == "no case was scored (2 errors)"


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
    assert "could not be decided: no case" in decision.problems()[0]


def test_too_few_verdicts_of_an_agent_are_neither_good_nor_bad() -> None:
    rows = [judged(f"c{n}", "often", 1.0) for n in range(20)] + [judged("x", "rarely", 0.0)]
    decision = decided("values by agent >= 0.9 (min 20)", rows)
    assert [(r.agent, r.status) for r in decision.results] == [
        ("often", "passed"),
        ("rarely", "unclear"),
    ]
    assert decision.results[1].reason == "1 verdict, but at least 20 are needed"
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
    assert "dataset: they are for old, but this is new" in problems[0]
    assert "prompts of desk: they are for p1, but this is p2" in problems[1]


@pytest.mark.parametrize(
    ("stated", "is_met"),
    [("9f28c5b75fb61a17", True), ("9f28c5b7", True), ("9f28", False), ("9f28c5b8", False)],
)
def test_a_version_may_be_stated_by_the_characters_that_tables_print(
    stated: str, is_met: bool
) -> None:
    hash_ = "9f28c5b75fb61a17"
    made = Provenance(dataset=DatasetHash(hash=hash_, cases=1), prompts={"desk": hash_})
    for bound in ({"dataset": stated}, {"prompts": {"desk": stated}}):
        assert (not decided({"for": bound}, [row("a")], provenance=made).problems()) == is_met


@pytest.mark.parametrize(
    ("bound", "problem"),
    [
        ({"prompts": {"desk": "p1"}}, "prompts of desk: they are for p1, but this is p2"),
        ({"prompts": {"dsk": "p2"}}, "prompts of dsk: they are for p2, but this is unknown"),
        ({"agents": "a1"}, "agents: they are for a1, but this is unknown"),
        ({"prompts": {"desk": "p2"}}, None),
    ],
)
def test_a_gate_that_only_states_versions_is_a_gate(
    bound: dict[str, Any], problem: str | None
) -> None:
    found = decided({"for": bound}, [row("a")], provenance=Provenance(prompts={"desk": "p2"}))
    assert (not found.problems()) if problem is None else (problem in found.problems()[0])


def compared(
    tmp_path: Path, before: list[IndexRow], after: list[IndexRow], **how: bool
) -> Decision:
    builder = SnapshotBuilder()
    for each in before:
        builder.add(each)
    snapshot = Snapshot(id="b", name="b", status="passed", cases=builder.cases())
    write_baseline(snapshot, tmp_path / "b.json")
    gate = read_gate({"regression": {"baseline": "b.json", **how}}, tmp_path)
    return decide(gate, after, Provenance())


def many(case: str, *statuses: str) -> list[IndexRow]:
    return [row(case, status, repeat) for repeat, status in enumerate(statuses)]  # type: ignore[arg-type]


@pytest.mark.parametrize("cases", [3, 4, 7, 30])
@pytest.mark.parametrize("repeats", [1, 5])
def test_total_failure_is_red(tmp_path: Path, cases: int, repeats: int) -> None:
    sides = [
        [each for n in range(cases) for each in many(f"c{n}", *[status] * repeats)]
        for status in ("passed", "failed")
    ]
    (result,) = compared(tmp_path, *sides).results
    assert (result.status, result.evaluator) == ("failed", "cases passed")


def test_a_case_that_always_passed_and_now_always_fails_is_red_by_itself(tmp_path: Path) -> None:
    steady = [each for n in range(9) for each in many(f"c{n}", *["passed"] * 5)]
    before = [*steady, *many("x", *["passed"] * 5)]
    after = [*steady, *many("x", *["failed"] * 5)]
    (result,) = compared(tmp_path, before, after).results
    assert result.status == "failed"
    assert [low.case_id for low in result.cases] == ["x"]
    once = compared(tmp_path, [*steady[::5], row("x")], [*steady[::5], row("x", "failed")])
    assert [each.status for each in once.results] == ["unclear"]


def test_other_axes_that_move_at_random_do_not_hide_that_cases_break(tmp_path: Path) -> None:
    def side(status: str, seed: int) -> list[IndexRow]:
        draw = random.Random(seed)
        return [
            row(
                f"c{n}",
                status,  # type: ignore[arg-type]
                scores=[(f"e{axis}", "passed", draw.random()) for axis in range(20)],
            )
            for n in range(7)
        ]

    results = compared(tmp_path, side("passed", 1), side("failed", 2)).results
    assert (results[0].evaluator, results[0].status) == ("cases passed", "failed")


def test_failures_and_errors_at_once_are_both_reported(tmp_path: Path) -> None:
    before = [row(f"c{n}") for n in range(8)]
    after = [row(f"c{n}", "failed" if n else "error") for n in range(8)]
    decision = compared(tmp_path, before, after)
    assert [result.status for result in decision.results] == ["error", "failed"]
    assert "1 case (1 with errors), c0" in decision.problems()[0]


def test_a_case_that_the_baseline_has_and_nobody_played_is_no_pass(tmp_path: Path) -> None:
    decision = compared(tmp_path, [row("a"), row("b")], [row("a")])
    assert "a verdict in the baseline, but none here: 1 case, b" in decision.problems()[0]


def test_a_case_that_is_skipped_now_is_no_pass(tmp_path: Path) -> None:
    decision = compared(tmp_path, [row("a"), row("b")], [row("a"), row("b", "skipped")])
    assert decision.problems()


def test_failures_that_were_there_before_are_no_regression_and_still_fail(tmp_path: Path) -> None:
    rows = [row(f"c{n}", "failed" if n < 3 else "passed") for n in range(30)]
    decision = compared(tmp_path, rows, rows)
    assert [result.status for result in decision.results] == ["passed"]
    assert not decision.on_cases
    assert compared(tmp_path, rows, rows, allow_failures=True).on_cases


def test_a_baseline_in_which_nothing_passed_is_reported(tmp_path: Path) -> None:
    rows = [row(f"c{n}", "failed") for n in range(4)]
    flaw, *_ = compared(tmp_path, rows, rows, allow_failures=True).results
    assert flaw.status == "unclear"
    assert "the baseline failed: 4 of 4 cases did not always pass" in flaw.reason


def test_without_a_baseline_yet_single_failures_decide(tmp_path: Path) -> None:
    asked = {"baseline": "mian", "allow_failures": True}
    decision = decide(read_gate({"regression": asked}, tmp_path), [row("a")], Provenance())
    assert [result.status for result in decision.results] == ["unclear"]
    assert "`baton baseline set --name mian` saves this" in decision.results[0].reason
    assert (decision.on_cases, decision.missed, decision.problems()) == (False, False, [])


def test_from_python_a_gate_for_another_dataset_does_not_start() -> None:
    case = Case(id="a", turns=[ExpectedTurn(input=Content(text="hi"))])
    gate = {"thresholds": ["pass_rate >= 0"], "for": {"dataset": "0123456789abcdef"}}
    with pytest.raises(InputError, match="the thresholds are not for this dataset"):
        baton.score([by_desk("a")], [case], gate=gate)
