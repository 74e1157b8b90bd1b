"""The routing matrix: what scores tell of it, and precision and recall per agent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.model import (
    OTHERS,
    ChainDifference,
    ChainTurn,
    Routed,
    RoutingCell,
    RoutingCounts,
    Score,
    Status,
)
from baton.stats.routing import agents_of, mistakes, plain_matrix, routed
from baton.testing import build


def cell(expected: str | None, actual: str | None, count: int) -> RoutingCell:
    return RoutingCell(expected=expected, actual=actual, count=count)


def typed(type_: str, status: Status = "passed", name: str | None = None, **details: Any) -> Score:
    return build.score(status, name or type_, type=type_, details=details)


def dispatch(expected: str | None, actual: str | None, status: Status = "passed") -> Score:
    return typed("dispatch_routing", status, expected_agent=expected, actual_agent=actual)


def chain(expected: str, actual: str) -> Score:
    """An `agent_chain` score of one turn; a letter is an agent."""
    turn = ChainTurn(
        invocation=0,
        expected_agents=list(expected),
        actual_agents=list(actual),
        score=1.0,
        match_details=ChainDifference(
            all_expected_present=True, missing_agents=[], extra_agents=[]
        ),
    )
    return typed("agent_chain", invocation_results=[msgspec.to_builtins(turn)])


def test_every_verdict_on_a_dispatch_counts_and_nothing_else() -> None:
    scores = [
        dispatch("a", "a"), dispatch("a", "b", "failed"), dispatch("b", None, "failed"),
        dispatch(None, "c", "failed"), dispatch(None, None), dispatch("a", "a", "skipped"),
    ]  # fmt: skip
    assert routed(scores) == [("a", "a"), ("a", "b"), ("b", None), (None, "c")]


def test_a_second_evaluator_of_the_same_type_does_not_count_again() -> None:
    again = dispatch("a", "a")
    again.evaluator = "strict_routing"
    assert routed([dispatch("a", "a"), again]) == [("a", "a")]


@pytest.mark.parametrize(
    ("expected", "actual", "pair"),
    [
        ("ra", "ra", ("a", "a")),
        ("rab", "rba", ("a", "a")),  # both ran: in parallel, or in another order
        ("ra", "rb", ("a", "b")),
        ("ra", "r", ("a", None)),
        ("rab", "rb", ("a", None)),  # b is expected, so that it ran is no mistake
        ("a", "ra", ("a", "a")),  # the opener is left out
        ("a", "rb", ("a", "b")),
        ("r", "rb", None),  # nothing is stated of a dispatch
        ("ra", "xb", None),  # another opened the turn: who should hand to whom is unknown
        ("ra", "", None),
    ],
)
def test_a_chain_tells_where_the_opener_hands_to_first(
    expected: str, actual: str, pair: Routed | None
) -> None:
    assert routed([chain(expected, actual)]) == ([pair] if pair else [])


def test_stated_dispatches_go_before_stated_agents() -> None:
    assert routed([chain("ra", "rb"), dispatch("c", "c")]) == [("c", "c")]


def test_precision_and_recall_come_with_their_counts_and_may_be_undefined() -> None:
    cells = [cell("a", "a", 6), cell("a", "b", 2), cell("b", None, 1), cell(None, "c", 3)]
    table = {row.agent: row for row in agents_of(cells)}
    assert (table["a"].precision, table["a"].recall) == (1.0, 0.75)
    assert (table["b"].precision, table["b"].recall) == (0.0, 0.0)
    assert (table["c"].precision, table["c"].recall) == (0.0, None)
    assert (table["a"].expected, table["a"].actual, table["a"].right) == (8, 6, 6)
    assert [found.count for found in mistakes(cells)] == [3, 2, 1]
    assert plain_matrix([]) is None


names = st.one_of(st.none(), st.sampled_from("abc"))


@given(st.lists(st.tuples(names, names)), st.lists(st.tuples(names, names)))
def test_what_is_taken_back_was_never_there(first: list[Routed], second: list[Routed]) -> None:
    once, both = RoutingCounts(), RoutingCounts()
    once.add(first)
    both.add([*first, *second])
    both.add(second, -1)
    assert once.cells() == both.cells()
    assert sum(found.count for found in once.cells()) == len(first)


def test_names_beyond_a_limit_are_one_so_that_memory_does_not_grow() -> None:
    counts = RoutingCounts(names=2)
    counts.add([("a", "b"), *(("a", f"made-up-{n}") for n in range(1000)), ("a", "a")])
    assert counts.cells() == [cell("a", OTHERS, 1000), cell("a", "a", 1), cell("a", "b", 1)]
