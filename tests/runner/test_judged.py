"""What a judge said of single things, whichever way the scores are reported."""

from __future__ import annotations

from typing import Any

from baton.model import SCHEMA_VERSION, JudgeUse, Score, Source, Trace
from baton.runner.judged_subjects import JudgedThing, Shown, of_scores
from baton.testing import build

TRACE = Trace(schema_version=SCHEMA_VERSION, id="t1", source=Source(format="baton"), turns=[])
USE = JudgeUse(model="m", rubric_version="1", samples=3)


def judged(status: Any = "passed", **more: Any) -> Score:
    about = {"unit": "dispatch", "subject": ["d1"], "judge": USE}
    return build.score(status, "r", **{**about, **more})


def thing(**more: Any) -> JudgedThing:
    (found,) = of_scores(TRACE, "c1", [judged(**more)], {})
    return found


def test_a_verdict_has_its_label_votes_and_the_model_that_gave_it() -> None:
    votes = {"votes": {"right": 2, "wrong": 1}, "spread": 1.0}
    found = thing(details={"label": "right", "to": "finder", **votes})
    assert (found.key, found.case, found.agent) == (("t1", "d1"), "c1", "finder")
    assert (found.model, found.label, found.value, found.passed) == ("m", "right", 1.0, True)
    assert found.votes is not None
    assert (found.votes.counts, found.votes.spread) == ({"right": 2, "wrong": 1}, 1.0)


def test_what_findings_settled_is_no_verdict_of_a_model() -> None:
    found = thing(judge=None, details={"label": "wrong", "settled_by": {"finding": "scope"}})
    assert (found.model, found.settled) == (None, True)


def test_trouble_has_its_kind() -> None:
    error = thing(status="error", value=None, judge=None, details={"judge_error": "timeout"})
    assert (error.model, error.trouble, error.passed) == (None, "timeout", None)
    assert thing(status="skipped", value=None, judge=None).trouble == "skipped"


def test_a_label_without_a_score_is_a_verdict_all_the_same() -> None:
    found = thing(status="skipped", value=None, details={"label": "no_claim"})
    assert (found.trouble, found.label, found.passed) == (None, "no_claim", None)


def test_a_mean_is_taken_apart_into_the_things_it_is_made_of() -> None:
    units = [
        {"subject": ["turn1"], "status": "passed", "value": 1.0, "label": "yes"},
        {"subject": ["turn2"], "status": "failed", "value": 0.0, "label": "no", "votes": {"no": 2}},
        {"subject": ["turn3"], "status": "passed", "value": 1.0, "settled_by": {"finding": "x"}},
    ]
    mean = judged(subject=["t1"], value=0.7, details={"units": units, "label": "mean"})
    found = of_scores(TRACE, "c1", [mean], {"turn2": Shown(9, 400)})
    assert [(one.subject, one.label, one.value, one.model) for one in found] == [
        ("turn1", "yes", 1.0, "m"),
        ("turn2", "no", 0.0, "m"),
        ("turn3", None, 1.0, None),
    ]
    assert [one.votes is not None for one in found] == [False, True, False]
    assert [(one.position, one.length) for one in found] == [(1, None), (9, 400), (3, None)]


def test_a_score_about_nothing_is_left_out() -> None:
    assert of_scores(TRACE, "c1", [judged(subject=[], status="skipped", value=None)], {}) == []
