"""A judge beside people: what is compared, what it adds up to, and when it is evidence."""

from __future__ import annotations

import pytest
from tests.stats.bounds import bounds

from baton.stats.calibration import (
    Item,
    JudgeVerdict,
    Opinion,
    Quality,
    Terms,
    Votes,
    opinion_fault,
    quality,
    scheme_of,
)

LABELS = Terms(labels={"right": 1.0, "weak": 0.5, "wrong": 0.0}, threshold=0.85)
SCALE = Terms(threshold=0.6, bounds=(1, 5), normalise=True)


def judged(
    label: str, *, votes: dict[str, int] | None = None, length: int | None = None, position: int = 1
) -> JudgeVerdict:
    score = LABELS.labels[label]
    assert score is not None
    counted = Votes(counts=votes) if votes else None
    return JudgeVerdict(
        label=label,
        score=score,
        passed=LABELS.passes(score),
        votes=counted,
        length=length,
        position=position,
    )


def scored(score: float) -> JudgeVerdict:
    return JudgeVerdict(label=None, score=score, passed=SCALE.passes(score))


def items(*groups: tuple[str, str, int]) -> list[Item]:
    return [(Opinion(label=a), judged(b)) for a, b, count in groups for _ in range(count)]


def labelled(found: list[Item]) -> Quality:
    return quality(found, LABELS, asked=len(found))


def test_labels_are_compared_label_by_label() -> None:
    found = labelled(items(("right", "right", 50), ("right", "weak", 4), ("wrong", "wrong", 26)))
    assert found.compared == "labels"
    assert found.agreement is not None
    assert found.agreement.value == 0.95
    assert [(one.label, one.labelled, one.judged) for one in found.classes] == [
        ("right", 54, 50),
        ("weak", 0, 4),
        ("wrong", 26, 26),
    ]
    assert found.is_evidence


def test_a_near_miss_weighs_less_than_a_far_one() -> None:
    near = labelled(items(("right", "right", 30), ("right", "weak", 10), ("wrong", "wrong", 30)))
    far = labelled(items(("right", "right", 30), ("right", "wrong", 10), ("wrong", "weak", 1), ("wrong", "wrong", 29)))  # fmt: skip
    assert near.weighted_kappa is not None
    assert far.weighted_kappa is not None
    assert near.weighted_kappa.value > 0.9
    assert far.weighted_kappa.value < 0.75


def test_people_who_only_say_passed_or_failed_are_compared_by_the_verdict() -> None:
    opinions = [Opinion(label="passed"), Opinion(label="failed")]
    found = labelled([(opinions[0], judged("right")), (opinions[1], judged("weak"))] * 30)
    assert found.compared == "verdicts"
    assert found.agreement is not None
    assert found.agreement.value == 1


def test_a_rubric_whose_own_labels_are_passed_and_failed_keeps_them() -> None:
    terms = Terms(labels={"passed": 1.0, "failed": 0.0})
    assert scheme_of([Opinion(label="passed")], terms) == "labels"


def test_scores_on_a_scale_are_compared_by_verdict_distance_and_rank() -> None:
    pairs = [(1.0, 1.0), (0.75, 1.0), (0.25, 0.0), (0.0, 0.25), (0.5, 0.75)] * 12
    found = quality([(Opinion(score=p), scored(j)) for p, j in pairs], SCALE, asked=60)
    assert found.compared == "verdicts"
    assert found.agreement is not None
    assert found.agreement.value == 0.8
    assert found.distance is not None
    assert found.distance.value == pytest.approx(0.2)
    assert found.rank is not None
    assert found.rank.value > 0.8
    assert found.weighted_kappa is not None
    assert bounds(found.weighted_kappa).low > 0.6


def test_an_opinion_that_the_rubric_does_not_have_is_a_fault() -> None:
    assert opinion_fault(Opinion(label="rihgt"), "labels", LABELS) is not None
    assert opinion_fault(Opinion(score=0.7), "labels", LABELS) is not None
    assert opinion_fault(Opinion(score=0.5), "labels", LABELS) is None
    assert opinion_fault(Opinion(label="right"), "verdicts", SCALE) is not None


def test_where_less_is_better_a_low_score_passes() -> None:
    terms = Terms(threshold=0.2, higher=False)
    assert terms.passes(0.1)
    assert not terms.passes(0.3)


def test_a_number_beside_the_scale_is_no_score() -> None:
    assert SCALE.score(3) == 0.5
    with pytest.raises(ValueError, match="goes from 1 to 5"):
        SCALE.score(6)


@pytest.mark.parametrize(
    ("found", "asked", "why"),
    [
        (items(("right", "right", 6), ("wrong", "wrong", 6)), 12, "12 labels, at least 40 are needed"),
        (items(("right", "right", 60)), 60, "at least 8 of each of two labels"),
        (items(("right", "right", 30), ("wrong", "wrong", 10), ("wrong", "right", 20)), 60, "labels are needed for ±0.10"),
        (items(("right", "right", 30), ("wrong", "wrong", 15)), 60, "a verdict on 45 of 60"),
        ([], 50, "0 labels"),
    ],
)  # fmt: skip
def test_too_few_labels_are_no_evidence_and_it_says_what_is_lacking(
    found: list[Item], asked: int, why: str
) -> None:
    told = quality(found, LABELS, asked=asked)
    assert not told.is_evidence
    assert why in "; ".join(told.lacking)


def test_a_judge_that_always_says_right_has_no_better_kappa_than_chance() -> None:
    found = labelled(items(("right", "right", 90), ("wrong", "right", 10)))
    assert found.agreement is not None
    assert found.agreement.value == 0.9
    assert found.kappa is not None
    assert found.kappa.value == 0


def test_each_score_of_the_judge_is_compared_with_what_people_say_there() -> None:
    found = labelled(items(("right", "right", 18), ("wrong", "right", 2), ("right", "weak", 10), ("wrong", "weak", 10)))  # fmt: skip
    assert found.reliability is not None
    assert [(one.judge, one.people.value, one.people.n) for one in found.reliability.bins] == [
        (0.5, 0.5, 20),
        (1.0, 0.9, 20),
    ]
    assert found.reliability.expected_error == pytest.approx(0.05)


def test_many_different_scores_are_put_in_ten_bins() -> None:
    pairs = [(Opinion(label="passed" if n > 50 else "failed"), scored(n / 100)) for n in range(100)]
    found = quality(pairs, SCALE, asked=100)
    assert found.reliability is not None
    assert [one.people.n for one in found.reliability.bins] == [10] * 10


def test_self_agreement_counts_items_on_which_all_samples_agree() -> None:
    steady, torn = {"right": 2}, {"right": 2, "wrong": 1}
    found = labelled(
        [(Opinion(label="right"), judged("right", votes=votes)) for votes in [steady] * 9 + [torn]]
    )
    assert found.self_agreement is not None
    assert found.self_agreement.unanimous.value == 0.9
    assert (found.self_agreement.fewest, found.self_agreement.most) == (2, 3)


def test_one_sample_each_says_nothing_of_self_agreement() -> None:
    assert labelled(items(("right", "right", 10))).self_agreement is None


def test_a_judge_that_likes_long_texts_is_found_out() -> None:
    long = [(Opinion(label="wrong"), judged("right", length=9000 + n)) for n in range(20)]
    short = [(Opinion(label="wrong"), judged("wrong", length=100 + n)) for n in range(20)]
    found = labelled([*long, *short]).effects
    assert found.error_length is not None
    assert bounds(found.error_length).low > 0.5
    assert found.score_position is None


def test_a_judge_that_is_worse_further_down_a_trace_is_found_out() -> None:
    late = [(Opinion(label="wrong"), judged("right", position=9)) for _ in range(20)]
    early = [(Opinion(label="wrong"), judged("wrong", position=1)) for _ in range(20)]
    found = labelled([*late, *early]).effects
    assert found.error_position is not None
    assert bounds(found.error_position).low > 0.5
