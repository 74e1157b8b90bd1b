"""Budgets hold, also for those who ask at the same time."""

from __future__ import annotations

import pytest

from baton.judges.network import Budget
from baton.model import JudgeError


def test_requests_end_at_their_limit() -> None:
    budget = Budget(max_calls=2)
    budget.book(None)
    budget.book(None)
    with pytest.raises(JudgeError, match="no more than 2 requests") as refused:
        budget.book(None)
    assert refused.value.kind == "budget"
    assert budget.calls == 2


def test_no_requests_at_all_are_a_limit_too() -> None:
    with pytest.raises(JudgeError):
        Budget(max_calls=0).book(None)


def test_requests_that_are_under_way_count_at_their_estimate() -> None:
    budget = Budget(max_cost=1.0)
    budget.book(0.4)
    budget.book(0.4)
    with pytest.raises(JudgeError, match="budget"):
        budget.book(0.4)
    budget.settle(0.4, 0.1)
    budget.book(0.4)
    budget.settle(0.4, 0.0)
    budget.settle(0.4, 0.2)
    assert budget.spent == pytest.approx(0.3)


def test_a_request_whose_cost_is_not_known_counts_as_a_request() -> None:
    budget = Budget()
    budget.book(None)
    budget.settle(None, None)
    assert (budget.calls, budget.spent) == (1, 0.0)


def test_a_part_of_a_budget_ends_with_the_whole_and_counts_in_it() -> None:
    whole = Budget(max_calls=3)
    part = Budget(max_calls=2, whole=whole)
    part.book(None)
    whole.book(None)
    part.book(None)
    with pytest.raises(JudgeError, match="no more than 2 requests"):
        part.book(None)
    with pytest.raises(JudgeError, match="no more than 3 requests"):
        Budget(whole=whole).book(None)
    assert (part.calls, whole.calls) == (2, 3)
    assert not part.counts_cost
    assert Budget(whole=Budget(max_cost=1.0)).counts_cost
