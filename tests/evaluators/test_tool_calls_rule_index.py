"""`tool_calls`: rules about numbers and lists find what agrees, and find it fast."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.evaluators.calls import values
from baton.evaluators.calls.compare import CallRules, Made
from baton.evaluators.calls.fitting import fitting_kinds
from baton.evaluators.calls.rules import Rule
from baton.evaluators.calls.scores import pair_calls
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
    alike = [other for other in every if values.identity(other) == values.identity(value)]
    assert alike == [value]


def test_a_flag_finds_its_call_among_lists_that_look_like_it() -> None:
    comparing = CallRules("exact", "exact", 0.8, [])
    pairs = pair_calls(expected(True), actual(["flag", "True"], True), "any_order", comparing)
    assert pairs == [(0, 1)]


@pytest.mark.parametrize("mode", ["any_order", "partial", "f1"])
@pytest.mark.parametrize(
    "rule",
    [
        Rule(argument="x", within=0.4),
        Rule(argument="x", within_percent=0.01),
        Rule(argument="x", one_of=list(range(1000, 1100))),
        Rule(argument="x", regex="7"),
    ],
    ids=lambda rule: rule.kind,
)
def test_5000_distinct_numbers_are_compared_in_no_time(rule: Rule, mode: Any) -> None:
    made = sorted(range(1000, 6000), key=lambda number: number * 7919 % 5003)
    comparing = CallRules("exact", "exact", 0.8, [rule])
    start = time.process_time()
    pair_calls(expected(*range(1000, 6000)), actual(*made), mode, comparing)
    assert time.process_time() - start < 2
