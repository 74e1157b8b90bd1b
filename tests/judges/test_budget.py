"""Budgets hold, also for those who ask at the same time."""

from __future__ import annotations

import pytest

from baton.judges.budget import Budget
from baton.model import JudgeError


def test_requests_end_at_their_limit() -> None:
    budget = Budget(max_calls=2)
    budget.reserve(None)
    budget.reserve(None)
    with pytest.raises(JudgeError, match="no more than 2 requests") as refused:
        budget.reserve(None)
    assert refused.value.kind == "budget"
    assert budget.calls == 2


def test_no_requests_at_all_are_a_limit_too() -> None:
    with pytest.raises(JudgeError):
        Budget(max_calls=0).reserve(None)


def test_requests_that_are_under_way_count_at_their_estimate() -> None:
    budget = Budget(max_cost=1.0)
    budget.reserve(0.4)
    budget.reserve(0.4)
    with pytest.raises(JudgeError, match="budget"):
        budget.reserve(0.4)
    budget.settle(0.4, 0.1)
    budget.reserve(0.4)
    budget.settle(0.4, 0.0)
    budget.settle(0.4, 0.2)
    assert budget.spent == pytest.approx(0.3)


def test_a_request_whose_cost_is_not_known_counts_as_a_request() -> None:
    budget = Budget()
    budget.reserve(None)
    budget.settle(None, None)
    assert (budget.calls, budget.spent) == (1, 0.0)


def test_a_part_of_a_budget_ends_with_the_whole_and_counts_in_it() -> None:
    whole = Budget(max_calls=3)
    part = Budget(max_calls=2, whole=whole)
    part.reserve(None)
    whole.reserve(None)
    part.reserve(None)
    with pytest.raises(JudgeError, match="no more than 2 requests"):
        part.reserve(None)
    with pytest.raises(JudgeError, match="no more than 3 requests"):
        Budget(whole=whole).reserve(None)
    assert (part.calls, whole.calls) == (2, 3)
    assert not part.counts_cost
    assert Budget(whole=Budget(max_cost=1.0)).counts_cost
