"""What several people say, and what it is about."""

from __future__ import annotations

from typing import Any

import pytest

from baton.datasets.labels import Label
from baton.model import InputError, Location
from baton.runner.calibration_report import people, placed
from baton.runner.judged_subjects import JudgedThing
from baton.stats.calibration import Opinion, Terms

LABELS = Terms(labels={"right": 1.0, "wrong": 0.0})
SCALE = Terms(bounds=(1, 5), normalise=True)
HERE = Location(file="labels.jsonl", line=4)


def thing(subject: str, agent: str = "finder", trace: str = "t1", case: str = "c1") -> JudgedThing:
    return JudgedThing(
        trace=trace, case=case, subject=subject, agent=agent, position=1, version="1"
    )


def said(value: str | float = "right", **more: Any) -> Label:
    return Label(**{"rubric": "r", "trace": "t1", "subject": "d1", "value": value, "where": HERE, **more})  # fmt: skip


def opinions(*labels: Label, terms: Terms = LABELS) -> dict[str, Opinion]:
    found = people(placed(labels, [thing("d1"), thing("d2")]), terms)
    return {subject: opinion for (_, subject), opinion in found.opinions.items()}


def test_the_majority_of_people_counts_and_a_tie_is_left_out() -> None:
    three = [said("right", by="a"), said("right", by="b"), said("wrong", by="c")]
    torn = [said("right", by="a", subject="d2"), said("wrong", by="b", subject="d2")]
    found = people(placed([*three, *torn], [thing("d1"), thing("d2")]), LABELS)
    assert dict(found.opinions) == {("t1", "d1"): Opinion(label="right")}
    assert found.disputed == [("t1", "d2")]
    assert found.agreement is not None
    assert (found.agreement.value, found.agreement.n) == (0.25, 4)


def test_numbers_are_put_on_the_scale_of_the_rubric() -> None:
    assert opinions(said(4.0), terms=SCALE) == {"d1": Opinion(score=0.75)}
    with pytest.raises(InputError, match=r"labels\.jsonl:4: 7 is not on the scale, which goes from 1 to 5"):  # fmt: skip
        opinions(said(7.0), terms=SCALE)


def test_numbers_of_cases_stand_as_text() -> None:
    of_case = said("4", trace=None, case="c1", subject="d2")
    assert opinions(of_case, terms=SCALE) == {"d2": Opinion(score=0.75)}


def test_beside_passed_and_failed_labels_of_the_rubric_say_whether_it_passes() -> None:
    assert opinions(said("passed"), said("failed", subject="d2"))["d2"] == Opinion(label="failed")
    mixed = opinions(said("passed", by="a"), said("right", by="b"), said("wrong", subject="d2"))
    assert mixed == {"d1": Opinion(label="passed"), "d2": Opinion(label="failed")}
    with pytest.raises(InputError, match="no label `rihgt`"):
        opinions(said("passed"), said("rihgt", subject="d2"))


def test_a_label_of_a_case_finds_the_only_thing_the_agent_or_the_id() -> None:
    two = [thing("d1", "finder"), thing("d2", "writer")]
    for subject, key in (("writer", "d2"), ("d1", "d1")):
        assert list(placed([said(trace=None, case="c1", subject=subject)], two)) == [("t1", key)]
    renamed = said(trace=None, case="c1", subject="the_writer")
    assert list(placed([renamed], two, {"writer": "the_writer"})) == [("t1", "d2")]
    assert list(placed([said(trace=None, case="c1", subject=None)], two[:1])) == [("t1", "d1")]


@pytest.mark.parametrize(
    ("label", "told"),
    [
        (said(trace="t2"), "no trace `t2` to judge; known: t1"),
        (said(trace=None, case="c2"), "case `c2` has nothing to judge; known: c1"),
        (said(trace=None, case="c1", subject=None), "`r` may mean 2 things: write `r/d1`, `r/d2`"),
        (said(trace=None, case="c1", subject="finder"), "`r/finder` may mean 2 things"),
        (said(trace=None, case="c1", subject="fnider"), "did you mean `finder`"),
    ],
)
def test_a_label_that_finds_nothing_or_too_much_says_so(label: Label, told: str) -> None:
    with pytest.raises(InputError) as caught:
        placed([label], [thing("d1"), thing("d2")])
    assert told in str(caught.value)
    assert str(caught.value).startswith("labels.jsonl:4: ")


def test_very_many_traces_are_not_all_named() -> None:
    many = [thing("d1", trace=f"session-{number:04}") for number in range(500)]
    with pytest.raises(InputError, match="no trace `x` to judge; there are 500"):
        placed([said(trace="x")], many)
    with pytest.raises(InputError, match="did you mean `session-0042`"):
        placed([said(trace="sesion-0042")], many)
