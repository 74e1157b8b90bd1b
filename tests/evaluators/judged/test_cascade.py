"""Findings settle what they prove, are evidence for what they don't, and no judge is asked twice."""

from __future__ import annotations

from typing import Any

import pytest
from tests.evaluators.judged.scripted import (
    Judged,
    ScriptedJudge,
    blocks,
    capture,
    judge_with,
    scores,
    shipped,
)
from tests.findings.trips import called, said, trip

from baton.model import Trace

PROVEN = "What the record proves by itself"
REPORT = "The invoice 4711 of Smith Ltd is due on 2026-03-01, total 1250.75 EUR, order PO-881."


def ignored() -> Trace:
    return trip(REPORT, said("I'll look that up first and get back to you shortly."))


def used() -> Trace:
    return trip(
        REPORT, said("Invoice 4711 of Smith Ltd, 1250.75 EUR, is due on 2026-03-01 (PO-881).")
    )


def test_a_finding_that_settles_the_question_spares_the_judge() -> None:
    (first, second), judge = judge_with(
        "dispatch_correctness", capture("14_unknown_type"), "correct"
    )
    assert (first.status, first.value, first.judge) == ("failed", 0.0, None)
    assert first.reason.startswith("settled by `target_known`, no judge was asked: there is no")
    settled = first.details["settled_by"]
    assert (settled["finding"], settled["kind"]) == ("target_known", "unknown_target")
    assert first.reason.endswith(settled["says"])
    assert first.details["label"] == "wrong"
    assert first.evidence
    assert second.judge is not None
    assert len(judge.asked) == 1


def test_without_the_cascade_the_judge_is_asked_and_given_the_finding() -> None:
    (first, _), judge = judge_with(
        "dispatch_correctness", capture("14_unknown_type"), "wrong", cascade=False
    )
    assert len(judge.asked) == 2
    assert first.judge is not None
    assert "settled_by" not in first.details
    assert "target_known: wrong (unknown_target)" in blocks(judge.asked[0])[PROVEN]


@pytest.mark.parametrize(("cascade", "asked"), [(True, 0), (False, 1)])
def test_a_result_that_was_ignored_needs_no_judge(cascade: bool, asked: int) -> None:
    (found,), judge = judge_with("result_integration", ignored(), "ignored", cascade=cascade)
    assert len(judge.asked) == asked
    assert (found.status, found.value) == ("failed", 0.0)


def test_a_result_that_was_used_is_for_the_judge_who_is_told_what_is_known() -> None:
    (found,), judge = judge_with("result_integration", used(), "partly")
    assert found.value == 0.5
    assert "result_used: nothing wrong: the result was used" in blocks(judge.asked[0])[PROVEN]


def test_a_tool_outside_the_scope_that_ran_settles_fidelity() -> None:
    trace = trip("done", said("Done."), child=(called("Edit", path="a.py"),), received="check a.py")
    dispatch = trace.turns[0].dispatches[0]
    dispatch.tools_allowed, dispatch.tools_source = ["Read"], "definition"
    (found,), judge = judge_with("scope_fidelity", trace, "inside")
    assert judge.asked == []
    assert found.details["settled_by"]["kind"] == "tool_executed"
    assert found.value == 0.0


def test_a_warning_settles_nothing_and_is_reported_as_what_it_is() -> None:
    trace = trip(
        "The migration failed: 3 of 17 tables were copied, checksum ab12cd34 differs.",
        said("The migration succeeded: 3 of 17 tables, checksum ab12cd34."),
    )
    (found,), judge = judge_with("result_integration", trace, "ignored")
    assert len(judge.asked) == 1
    assert found.judge is not None
    proven = blocks(judge.asked[0])[PROVEN]
    assert "wrong (" not in proven.replace("perhaps wrong (", "")


def _settling(**findings: dict[str, str]) -> Any:
    from msgspec.structs import replace

    return replace(shipped()["dispatch_correctness"], findings=findings)


def test_of_several_findings_the_worst_label_counts() -> None:
    trace = capture("14_unknown_type")
    rubric = _settling(
        completed={"refused": "weak", "failed": "weak"}, target_known={"unknown_target": "wrong"}
    )
    first = scores(Judged(rubric), trace, ScriptedJudge("correct"))[0]
    assert first.details["label"] == "wrong"


def test_without_a_judge_only_what_findings_settle_has_a_verdict() -> None:
    found = scores(Judged(shipped()["dispatch_correctness"]), capture("14_unknown_type"), None)
    assert [score.status for score in found] == ["failed", "error"]
    assert found[1].reason.startswith("no judge is configured")
