"""Kinds of answers, votes, and what becomes of judges that give none."""

from __future__ import annotations

from typing import Any

import pytest
from tests.evaluators.judged.scripted import Judged, ScriptedJudge, capture, number, scores, shipped
from tests.findings.trips import said, trip

from baton.model import JudgeError, JudgeRequest, Score

TRACE = trip("The sky is blue.", said("The sky is blue."))


def ask(*says: Any, **options: Any) -> tuple[Score, ScriptedJudge]:
    judge = ScriptedJudge(*says)
    evaluator = Judged(shipped()["llm_judge"], **{"rubric": "It names a colour.", **options})
    (found,) = scores(evaluator, TRACE, judge)
    return found, judge


def test_a_label_scores_what_the_rubric_says() -> None:
    found, _ = ask("partly_met")
    assert (found.status, found.value, found.threshold) == ("failed", 0.5, 1.0)
    assert (found.reason, found.details["label"]) == ("so it is", "partly_met")
    assert ask("met")[0].status == "passed"


def test_a_level_is_put_between_0_and_1() -> None:
    levels = {"poor": 1, "fair": 2, "good": {"score": 5, "means": "very good"}}
    found, judge = ask("fair", answer={"scale": {"levels": levels}}, threshold=0.2)
    assert (found.status, found.value) == ("passed", 0.25)
    assert "- good: very good" in judge.asked[0].instructions


def test_a_number_is_put_between_0_and_1_or_left_as_it_is() -> None:
    answer = {"scale": {"min": 1, "max": 5, "guide": {"1": "unreadable"}}}
    found, judge = ask(number(4), answer=answer)
    assert found.value == 0.75
    assert "from 1 to 5.\n- 1: unreadable" in judge.asked[0].instructions
    answer["scale"]["normalise"] = False
    found, _ = ask(number(4), answer=answer, threshold=3.5)
    assert (found.status, found.value) == ("passed", 4.0)


def test_lower_may_be_better() -> None:
    scale: dict[str, Any] = {"scale": {"min": 0, "max": 1}}
    for score, status in ((0.2, "passed"), (0.3, "passed"), (0.31, "failed")):
        found, _ = ask(number(score), answer=scale, direction="lower", threshold=0.3)
        assert found.status == status


def test_a_label_without_a_score_gives_no_verdict() -> None:
    found, _ = ask(
        "not_applicable", answer={"choices": {"ok": 1, "bad": 0, "not_applicable": None}}
    )
    assert (found.status, found.value, found.details["label"]) == (
        "skipped",
        None,
        "not_applicable",
    )
    assert found.judge is not None


def test_labels_go_by_majority_and_the_votes_are_reported() -> None:
    found, judge = ask("met", "not_met", "met", samples=3)
    assert (found.value, len(judge.asked)) == (1.0, 3)
    assert found.details["votes"] == {"met": 2, "not_met": 1}
    assert found.details["tie"] is False
    assert round(found.details["spread"], 2) == 0.33


def test_no_more_samples_are_taken_than_can_change_the_verdict() -> None:
    found, judge = ask("met", samples=5)
    assert len(judge.asked) == 3
    assert found.judge is not None
    assert (found.judge.samples, found.judge.requests, found.judge.tokens) == (3, 3, 330)
    assert found.judge.cost_usd == pytest.approx(0.03)


def test_of_as_many_votes_the_worse_label_counts() -> None:
    found, _ = ask("met", "not_met", samples=2)
    assert (found.value, found.details["tie"]) == (0.0, True)


def test_scales_go_by_the_median_and_take_the_words_of_who_said_it() -> None:
    says = [
        {"reason": reason, "quote": "", "score": score}
        for reason, score in (("low", 0.1), ("high", 0.9), ("middle", 0.6))
    ]
    found, _ = ask(*says, answer={"scale": {"min": 0, "max": 1}}, samples=3)
    assert (found.value, found.reason) == (0.6, "middle")
    assert found.details["spread"] == pytest.approx(0.8)


def test_a_judge_that_fails_is_an_error_with_its_kind_and_never_a_zero() -> None:
    found, _ = ask(JudgeError("refusal", "it declined"))
    assert (found.status, found.value) == ("error", None)
    assert (found.reason, found.details) == ("refusal: it declined", {"judge_error": "refusal"})


def test_a_sample_that_fails_is_reported_where_the_others_decide() -> None:
    found, _ = ask("met", JudgeError("timeout", "60 s"), "met", samples=3)
    assert (found.status, found.details["unanswered"]) == ("passed", ["timeout: 60 s"])


def test_one_judge_error_leaves_the_other_scores_alone() -> None:
    found = scores(
        Judged(shipped()["dispatch_correctness"]),
        capture("01_correct_dispatch"),
        ScriptedJudge(JudgeError("outage", "502"), "correct"),
    )
    assert [score.status for score in found] == ["error", "passed"]


def test_words_that_really_stand_in_the_material_become_evidence() -> None:
    found, _ = ask({"reason": "x", "quote": "sky  is\nblue", "label": "met"})
    assert [(each.ids, each.quote) for each in found.evidence] == [(["t"], "sky  is\nblue")]
    found, _ = ask({"reason": "x", "quote": "sky is green", "label": "met"})
    assert (found.evidence, found.details["quote_not_found"]) == ([], "sky is green")


def test_whatever_else_goes_wrong_with_one_thing_leaves_the_others_alone() -> None:
    def says(request: JudgeRequest, _sample: int) -> str:
        if "agent refactor-agent at work" in request.content:
            raise OSError("the disk is full")
        return "inside"

    trace = capture("01_correct_dispatch")
    found = scores(Judged(shipped()["scope_fidelity"]), trace, ScriptedJudge(by=says))
    assert [score.status for score in found] == ["passed", "error"]
    assert (found[1].reason, found[1].subject) == ("OSError: the disk is full", ["dispatch2"])
