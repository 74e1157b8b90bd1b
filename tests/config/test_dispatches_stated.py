"""Cases that state dispatches are scored by `dispatch_routing`, and nobody leaves them unchecked."""

from __future__ import annotations

import baton
from baton.model import (
    Case,
    ExpectedDispatch,
    RoutingCell,
    Trace,
)
from baton.testing.build import case, run, trace, transfer


def played(case: Case) -> Trace:
    return trace(run("router", transfer("b")), run("b"), case="x")


def test_an_evaluation_asks_for_it_by_itself() -> None:
    both = case(agents=["router", "a"], dispatches=[ExpectedDispatch(to="a")])
    evaluation = baton.evaluate([both], played)
    asked = [counts.type for counts in evaluation.evaluators if not counts.optional]
    assert asked == ["agent_chain", "dispatch_routing"]
    assert evaluation.status == "failed"
    assert [notice for notice in evaluation.notices if "look first" not in notice] == []
    assert evaluation.routing == [RoutingCell(expected="a", actual="b", count=1)]
    assert evaluation.efficiency.dispatches.sum == 1


def test_scoring_by_something_else_says_what_looks_at_dispatches() -> None:
    stated = case(agents=["router", "b"], dispatches=[])
    (notice,) = baton.score(played(stated), [stated]).notices
    assert "`dispatches` (`dispatch_routing`)" in notice


def test_agents_alone_make_a_matrix_of_first_hand_offs() -> None:
    evaluation = baton.score(played(case()), [case(agents=["router", "a"])])
    assert evaluation.routing == [RoutingCell(expected="a", actual="b", count=1)]
    (result,) = evaluation.results
    assert result.routing == [("a", "b")]
