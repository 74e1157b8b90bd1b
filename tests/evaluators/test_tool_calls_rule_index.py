"""`tool_calls`: rules about numbers and lists find what agrees, and find it fast."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clock import cpu_limit
from tests.evaluators.test_tool_calls_matching import most_in_order, most_pairs

from baton.evaluators.matching import argument_values
from baton.evaluators.matching.assignment import assign
from baton.evaluators.matching.call_pairing import fitting_kinds, pair_calls
from baton.evaluators.matching.call_rules import CallRules, Made, Rule
from baton.model import ExpectedToolCall

numbers = st.one_of(
    st.floats(-1e3, 1e3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-5, 5),
    st.sampled_from([0, 1e-9, -1e-9, 5e-6, 1.0, 1.05, 0.95, "1.0", "x", None, True, 10**400]),
)
rules = st.one_of(
    st.builds(lambda size: Rule(argument="x", within=size), st.sampled_from([0, 0.4, 1, 1e6])),
    st.builds(
        lambda size: Rule(argument="x", within_percent=size), st.sampled_from([0, 0.01, 5, 99, 200])
    ),
    st.just(Rule(argument="x", one_of=[1, "x", None])),
    st.just(Rule(argument="x", regex="^1")),
)


def expected(*arguments: Any) -> list[ExpectedToolCall]:
    return [ExpectedToolCall(name="f", arguments={"x": each}) for each in arguments]


def actual(*arguments: Any) -> list[Made]:
    return [Made("id", "f", {"x": each}, "a", frozenset("a")) for each in arguments]


@given(st.lists(numbers, max_size=8), st.lists(numbers, max_size=8), rules)
def test_the_index_finds_exactly_what_a_rule_accepts(
    wanted: list[Any], made: list[Any], rule: Rule
) -> None:
    comparing = CallRules("exact", "exact", 0.8, [rule])
    calls, others = expected(*wanted), actual(*made)
    kinds = fitting_kinds(calls, others, comparing)
    found = {
        (one, other)
        for left, fits in zip(kinds.wanted, kinds.edges, strict=True)
        for right in fits
        for one in left
        for other in kinds.made[right]
    }
    agreeing = {
        (one, other)
        for one, call in enumerate(calls)
        for other, each in enumerate(others)
        if comparing.same(call, each)
    }
    assert found == agreeing


@given(st.floats(0.1, 10), st.floats(-1, 1), st.sampled_from([0.5, 5.0, 50.0]))
def test_numbers_at_the_edge_of_a_reach_are_found(size: float, share: float, reach: float) -> None:
    for rule, other in (
        (Rule(argument="x", within=reach), size + share * reach),
        (Rule(argument="x", within_percent=reach), size * (1 + share * reach / 100)),
    ):
        comparing = CallRules("exact", "exact", 0.8, [rule])
        calls, others = expected(size), actual(other)
        pairs = pair_calls(calls, others, "any_order", comparing)
        assert bool(pairs) == comparing.same(calls[0], others[0])


@pytest.mark.parametrize("value", [True, False, 1, "True", ["flag", "True"], ["list", 1], [1]])
def test_values_of_different_kinds_are_never_taken_for_each_other(value: Any) -> None:
    every = [True, False, 1, "True", ["flag", "True"], ["list", 1], [1], ["list", ["list", 1]]]
    alike = [
        other
        for other in every
        if argument_values.identity(other) == argument_values.identity(value)
    ]
    assert alike == [value]


def test_a_flag_finds_its_call_among_lists_that_look_like_it() -> None:
    comparing = CallRules("exact", "exact", 0.8, [])
    pairs = pair_calls(expected(True), actual(["flag", "True"], True), "any_order", comparing)
    assert pairs == [(0, 1)]


spans = st.builds(lambda first, many: range(first, min(first + many, 5)), *2 * [st.integers(0, 4)])


@given(st.lists(spans, max_size=6), st.data())
def test_a_matching_of_ranges_is_the_largest(edges: list[range], data: st.DataObject) -> None:
    supply = [data.draw(st.integers(0, 2)) for _ in edges]
    room = [data.draw(st.integers(0, 2)) for _ in range(5)]
    flow = assign(edges, room, supply=supply)
    columns = [place for place, many in enumerate(room) for _ in range(many)]
    rows = [row for row, many in zip(edges, supply, strict=True) for _ in range(many)]
    table = [[place in row for place in columns] for row in rows]
    assert sum(sum(shares.values()) for shares in flow) == most_pairs(table)
    for shares, row, many in zip(flow, edges, supply, strict=True):
        assert set(shares) <= set(row)
        assert sum(shares.values()) <= many
    assert all(sum(shares.get(right, 0) for shares in flow) <= room[right] for right in range(5))


json_values = st.recursive(
    st.sampled_from([True, False, None, 0, 1, 1.0, "flag", "list", "True", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["flag", "list"]), inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(max_examples=300)
@given(json_values, json_values)
def test_values_have_one_identity_exactly_when_they_are_equal(one: Any, other: Any) -> None:
    assert (
        argument_values.identity(one) == argument_values.identity(other)
    ) == argument_values.equal(one, other)
    assert argument_values.identity(one) != argument_values.identity([one])


def near_rule(kind: str, size: float, argument: str | None = None) -> Rule:
    if kind == "within":
        return Rule(argument=argument, within=size)
    return Rule(argument=argument, within_percent=size)


near_numbers = st.sampled_from([0, 1, 1.5, 2, "2", 3, 3.0, "x", None, [1], 10**400])
near_calls = st.dictionaries(st.sampled_from(["x", "y", "k"]), near_numbers, max_size=3)
near_rules = st.lists(
    st.builds(
        near_rule,
        st.sampled_from(["within", "within_percent"]),
        st.sampled_from([0, 0.5, 1, 50]),
        st.sampled_from(["x", "y", None]),
    ),
    min_size=1,
    max_size=2,
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.none() | near_calls, max_size=6),
    st.lists(near_calls, max_size=6),
    near_rules,
    st.sampled_from(["exact", "subset", "superset", "ignore", "tolerant"]),
    st.sampled_from(["exact", "contains"]),
)
def test_calls_with_several_near_numbers_are_paired_as_by_trying_every_pair(
    wanted: list[Any], made: list[Any], rules: list[Rule], way: Any, names: Any
) -> None:
    comparing = CallRules(names, way, 0.8, rules)
    calls = [ExpectedToolCall(name="f", arguments=each) for each in wanted]
    others = [Made("id", "f", each, "a", frozenset("a")) for each in made]
    table = [[comparing.same(call, other) for other in others] for call in calls]
    pairs = pair_calls(calls, others, "f1", comparing)
    assert len(pairs) == len({other for _, other in pairs}) == most_pairs(table)
    in_order = pair_calls(calls, others, "partial", comparing)
    assert len(in_order) == most_in_order(table)
    assert all(table[one][other] for one, other in [*pairs, *in_order])


def test_numbers_too_large_for_a_float_are_compared_exactly() -> None:
    large = 10**400
    assert Rule(within=1).accepts(large, large + 1)
    assert not Rule(within=1).accepts(large, large + 2)
    assert not Rule(within=1).accepts(large, 1.5)
    assert Rule(within_percent=1).accepts(large, large + large // 100)


@pytest.mark.parametrize("kind", ["within", "within_percent"])
@pytest.mark.parametrize("size", [float("inf"), float("nan")])
def test_a_reach_without_end_is_refused(kind: str, size: float) -> None:
    with pytest.raises(ValueError, match=f"`{kind}` has to be a finite number"):
        near_rule(kind, size)


def large(more: bool, offset: int) -> tuple[list[ExpectedToolCall], list[Made]]:
    shuffled = sorted(range(1000, 6000), key=lambda number: number * 7919 % 5003)
    made = [{"x": n + offset, **({"id": n} if more else {})} for n in shuffled]
    others = [Made("id", "f", each, "a", frozenset("a")) for each in made]
    return expected(*range(1000, 6000)), others


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("rule", "names", "more", "mode"),
    [
        (Rule(argument="x", within=0.4), "exact", False, "any_order"),
        (Rule(argument="x", within=0.4), "exact", False, "partial"),
        (Rule(argument="x", within=300), "contains", False, "partial"),
        (Rule(argument="x", within=1e6), "exact", False, "any_order"),
        (Rule(within_percent=5), "exact", False, "partial"),
        (Rule(argument="x", within_percent=5), "exact", True, "any_order"),
        (Rule(argument="x", within_percent=5), "exact", True, "partial"),
        (Rule(argument="x", one_of=list(range(1000, 1100))), "contains", False, "any_order"),
        (Rule(argument="x", regex="7"), "exact", False, "partial"),
    ],
)
def test_5000_distinct_numbers_are_compared_in_no_time(
    rule: Rule, names: Any, more: bool, mode: Any
) -> None:
    comparing = CallRules(names, "subset" if more else "exact", 0.8, [rule])
    calls, others = large(more, offset=1)
    with cpu_limit(2):
        pair_calls(calls, others, mode, comparing)
