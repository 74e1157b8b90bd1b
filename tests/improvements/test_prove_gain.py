"""Whether a candidate is proven to be better on held-out cases."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from baton.gate.compare_axes import PASSED, Axis, CaseValues
from baton.improvements.prove_gain import ERRORS, Side, prove

AIM = Axis(PASSED)
TONE, SECOND, ROUTE = Axis("tone"), Axis("tone by second"), Axis("dispatch_correctness")


def side(
    passes: Sequence[float | None],
    *,
    text: str = "a text",
    cost: float | None = None,
    repeats: int = 1,
    **axes: Sequence[float | None],
) -> Side:
    """A value a case and axis; ``None`` for a case that is an error."""
    named = {
        AIM: passes, TONE: axes.get("tone", ()), SECOND: axes.get("second", ()),
        ROUTE: axes.get("route", ()), Axis("dispatch_correctness", "billing"): axes.get("billing", ()),
    }  # fmt: skip
    cases: dict[str, CaseValues] = {}
    for at, passed in enumerate(passes):
        if passed is None:
            cases[f"c{at}"] = CaseValues(errors=repeats)
            continue
        values: Mapping[Axis, Sequence[float]] = {
            axis: [float(own[at] or 0)] * repeats for axis, own in named.items() if at < len(own)
        }
        cases[f"c{at}"] = CaseValues(values=values)
    return Side(cases, text, cost)


def test_a_gain_on_nearly_all_cases_is_proven() -> None:
    decided = prove(
        side([0] * 8 + [1] * 8, cost=0.1), side([1] * 16, text="a longer text", cost=0.2)
    )
    assert decided.outcome == "proven"
    assert decided.reason == "cases passed rises from 0.50 to 1.00, and nothing is worse"
    assert decided.proof.words == (2, 3)
    assert decided.proof.cost_usd == (0.1, 0.2)


def test_a_gain_that_may_be_chance_is_none_and_says_how_many_cases_would_tell() -> None:
    decided = prove(side([0, 0] + [1] * 10), side([1] * 12))
    assert decided.outcome == "no proven gain"
    assert decided.proof.cases_needed is not None
    assert decided.proof.cases_needed > 12
    assert f"about {decided.proof.cases_needed} would be enough to tell" in decided.reason


def test_figures_that_differ_are_written_so_that_they_differ() -> None:
    decided = prove(side([0] + [1] * 299), side([1] * 300))
    assert "rises from 0.997 to 1.000 over" in decided.reason


def test_no_difference_is_no_gain() -> None:
    decided = prove(side([0, 1] * 8), side([0, 1] * 8))
    assert decided.outcome == "no proven gain"
    assert decided.reason == "cases passed stays at 0.50"


def test_a_gain_that_makes_another_agent_worse_is_none_and_names_it() -> None:
    old = side([0] * 20 + [1] * 4, billing=[1] * 24)
    new = side([1] * 24, billing=[0] * 12 + [1] * 12)
    decided = prove(old, new)
    assert decided.outcome == "no proven gain"
    assert decided.proof.worse == ["dispatch_correctness of billing"]
    assert decided.reason == "it is worse in dispatch_correctness of billing"


def test_the_aimed_axis_is_not_corrected_for_all_others() -> None:
    # It was named before: among 20 axes that do not move it would drown.
    def given(route: Sequence[float]) -> Side:
        cases = side([1, 0] * 8, route=route).cases
        more = {Axis(f"other{n}"): [1.0] for n in range(20)}
        return Side({i: CaseValues(values={**c.values, **more}) for i, c in cases.items()}, "t")

    decided = prove(given([0] * 6 + [1] * 10), given([1] * 16), ROUTE)
    assert decided.outcome == "proven"


def test_errors_are_no_gain_and_no_zero() -> None:
    before = side([0] * 8 + [1] * 8)
    lost = prove(before, side([None] * 8 + [1] * 8))
    assert lost.outcome == "no proven gain"
    assert lost.reason == (
        "8 of 16 held-out cases have no value of cases passed on one side (8 had one before), "
        "because of errors, or because it says nothing about them"
    )
    assert ERRORS in lost.proof.worse
    one = prove(before, side([1] * 15 + [None]))
    assert one.outcome == "proven"
    assert one.proof.comparison.errors == [("c15", 0, 1)]


def test_all_cases_that_are_errors_prove_nothing() -> None:
    decided = prove(side([None] * 8), side([None] * 8))
    assert decided.outcome == "no proven gain"


@pytest.mark.parametrize(
    ("second", "outcome"), [([1] * 12, "proven"), ([0] * 12, "no proven gain")]
)
def test_a_gain_that_a_judge_alone_sees_needs_a_second_one(
    second: Sequence[float], outcome: str
) -> None:
    old = side([1] * 12, tone=[0.0] * 12, second=[0.0] * 12)
    new = side([1] * 12, tone=[1.0] * 12, second=second)
    decided = prove(old, new, TONE, judged={"tone"}, witnesses=[SECOND])
    assert decided.outcome == outcome
    alone = prove(old, new, TONE, judged={"tone"})
    assert alone.outcome == "no proven gain"
    assert "may flatter a judge" in alone.reason


def test_a_group_counts_once() -> None:
    groups = {f"c{n}": f"g{n // 10}" for n in range(30)}
    old, new = side([0] * 20 + [1] * 10), side([1] * 30)
    assert prove(old, new).outcome == "proven"
    assert prove(old, new, groups=groups).outcome == "no proven gain"


def test_repeats_tell_more_of_few_cases() -> None:
    old, new = side([0, 0, 1, 1], repeats=8), side([1, 1, 1, 1], repeats=8)
    assert prove(old, new).outcome == "proven"


def test_noise_is_proven_to_be_a_gain_in_at_most_one_of_twenty() -> None:
    chance = random.Random(11)

    def drawn(cases: int) -> Side:
        passes, billing = ([float(chance.random() < 0.5) for _ in range(cases)] for _ in "ab")
        return side(passes, billing=billing)

    found = sum(prove(drawn(n), drawn(n)).outcome == "proven" for n in [8, 10, 12] * 80)
    # 12 of 240, and three standard deviations of such a count.
    assert found <= 12 + 3 * 3.4


def silent_on(whole: Side, axis: Axis, count: int) -> Side:
    """A side without a value of an axis on the first cases, and without an error."""
    cases = {}
    for at, (id_, case) in enumerate(whole.cases.items()):
        own = {name: values for name, values in case.values.items() if at >= count or name != axis}
        cases[id_] = CaseValues(values=own)
    return Side(cases, whole.text)


def test_what_is_aimed_at_may_not_fall_silent_on_cases() -> None:
    before, after = side([1] * 10 + [0] * 10), side([1] * 20)
    assert prove(before, after).outcome == "proven"
    decided = prove(before, silent_on(after, AIM, 10))
    assert decided.outcome == "no proven gain"
    assert "10 of 20 held-out cases have no value of cases passed on one side" in decided.reason


def test_another_evaluator_may_fall_silent_only_where_the_case_passes() -> None:
    before = side([0] * 12 + [1] * 12, tone=[1] * 24)
    passing = side([1] * 24, tone=[1] * 24)
    of_work = {"tone"}
    assert prove(before, silent_on(passing, TONE, 12), of_work=of_work).outcome == "proven"
    failing = side([0] * 4 + [1] * 20, tone=[1] * 24)
    assert prove(before, failing).outcome == "proven"
    decided = prove(before, silent_on(failing, TONE, 4), of_work=of_work)
    assert decided.outcome == "no proven gain"
    assert decided.reason == "tone no longer has a value on 4 of 24 cases"


def test_an_evaluator_of_the_whole_case_may_not_fall_silent_even_where_the_case_passes() -> None:
    """The agent waits for somebody: its answer is not judged, and its route alone passes."""
    before = side([0] * 12 + [1] * 12, tone=[0] * 12 + [1] * 12)
    passing = side([1] * 24, tone=[1] * 24)
    decided = prove(before, silent_on(passing, TONE, 12))
    assert decided.outcome == "no proven gain"
    assert decided.reason == "tone no longer has a value on 12 of 24 cases"


def test_cases_that_pass_by_a_judge_are_flattery_as_well() -> None:
    before = side([0] * 12, tone=[0.0] * 12, second=[1.0] * 12)
    after = side([1] * 12, tone=[1.0] * 12, second=[1.0] * 12)
    decided = prove(before, after, judged={"tone", "cases passed"}, witnesses=[SECOND])
    assert decided.outcome == "no proven gain"
    assert "a judge finds it better in cases passed" in decided.reason


def test_a_gain_is_none_where_fewer_cases_pass_be_it_by_chance() -> None:
    old = side([1] * 8 + [0] * 8, route=[0] * 12 + [1] * 4)
    new = side([1] * 6 + [0] * 10, route=[1] * 16)
    decided = prove(old, new, ROUTE)
    assert decided.proof.worse == []
    assert decided.outcome == "no proven gain"
    assert decided.reason == (
        "dispatch_correctness is better, but cases passed falls from 0.50 to 0.38"
    )
