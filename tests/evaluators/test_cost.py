"""`cost`: limits, lower bounds, and what it does when the cost is unknown."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import baton
from baton.model import (
    AgentCard,
    InputError,
    Trace,
    Usage,
)
from baton.testing import build, verdict
from baton.testing.build import case, run

RECORDS = Path(__file__).parent.parent / "records"


def spent(cost: float | None, tokens: int | None = 100, **fields: Any) -> Usage:
    return Usage(
        input_tokens=tokens,
        output_tokens=tokens,
        cost_usd=cost,
        cost_from=None if cost is None else "source",
        **fields,
    )


def spends(*usages: Usage | None, total: Usage | None = None, model: str | None = "m") -> Trace:
    """One turn, with a run of `a0`, `a1`... for each usage."""
    runs = [run(f"a{i}", usage=usage, model=model) for i, usage in enumerate(usages)]
    return build.trace(*runs, usage=total)


score = partial(verdict, "cost")


def test_a_cost_within_the_limit_passes_and_says_what_each_agent_spent() -> None:
    found = score(spends(spent(0.25), spent(0.5)), agent_names={"a0": "router"})
    assert (found.status, found.value) == ("passed", 1.0)
    assert found.reason == "$0.75 spent of $1 allowed"
    assert found.details == {
        "max_usd": 1.0,
        "cost_usd": 0.75,
        "agents": {"router": 0.25, "a1": 0.5},
    }
    assert found.evidence == []


def test_a_cost_over_the_limit_scores_its_share_and_names_the_dearest_run_first() -> None:
    found = score(spends(spent(0.5), spent(1.5)), max_usd=0.5)
    assert (found.status, found.value) == ("failed", 0.25)
    assert found.reason == "$2 spent; at most $0.5 allowed"
    assert [(e.ids, e.quote) for e in found.evidence] == [(["r2"], "$1.5"), (["r1"], "$0.5")]


def test_the_cost_that_the_source_states_goes_before_the_sum_of_runs() -> None:
    found = score(spends(spent(0.1), total=spent(2.0)))
    assert (found.status, found.value) == ("failed", 0.5)


def test_costs_that_add_up_to_the_limit_pass_however_they_round() -> None:
    assert score(spends(*[spent(0.1)] * 3), max_usd=0.3).status == "passed"
    assert score(spends(*[spent(0.1)] * 3), max_usd=0.2999).status == "failed"


def test_nothing_may_be_spent_when_the_limit_is_zero() -> None:
    assert score(spends(spent(0.0)), max_usd=0).status == "passed"
    assert score(spends(spent(0.01)), max_usd=0).value == 0


def test_a_model_without_a_price_is_skipped_and_named() -> None:
    found = score(spends(spent(None)))
    assert (found.status, found.value) == ("skipped", None)
    assert "no price for `m`" in found.reason
    assert "pip install" not in found.reason, "the list of prices is installed"
    assert "`prices:`" in found.reason


def test_the_agents_definition_may_name_the_model_without_a_price() -> None:
    actual = spends(spent(None), model=None)
    actual.agents = {"a0": AgentCard(model="defined")}
    assert "no price for `defined`" in score(actual).reason


def test_tokens_of_no_known_model_are_skipped() -> None:
    assert "does not name the model" in score(spends(spent(None), model=None)).reason


@pytest.mark.parametrize("actual", [spends(), spends(None), spends(spent(None, None))])
def test_a_trace_that_tells_no_tokens_is_skipped(actual: Trace) -> None:
    found = score(actual)
    assert found.status == "skipped"
    assert "neither tokens nor cost" in found.reason


def test_a_cost_known_in_part_is_skipped_until_that_part_is_too_much() -> None:
    actual = spends(spent(0.4), spent(None))
    assert score(actual).status == "skipped"
    assert score(actual).reason.startswith("at least $0.4 spent; no price for `m`")
    found = score(actual, max_usd=0.1)
    assert (found.status, found.value) == ("failed", 0.25)
    assert found.reason == "at least $0.4 spent; at most $0.1 allowed"
    assert found.details["at_least"] is True


@pytest.mark.parametrize(
    "actual",
    [
        spends(total=spent(0.4, complete=False)),
        spends(spent(0.4, complete=False)),
        spends(spent(0.4), spent(None, None, requests=2)),
    ],
)
def test_requests_that_reported_nothing_leave_a_lower_bound(actual: Trace) -> None:
    assert score(actual).status == "skipped"
    assert "some requests reported no usage" in score(actual).reason
    assert score(actual, max_usd=0.2).status == "failed"


def test_a_run_of_unknown_usage_leaves_a_lower_bound_and_one_without_requests_does_not() -> None:
    actual = spends(spent(0.4), None)
    assert score(actual).status == "passed"
    actual.turns[0].runs[1].unknown = ["usage"]
    assert score(actual).status == "skipped"


def test_tokens_that_no_run_tells_of_have_no_cost() -> None:
    actual = spends(spent(0.4), total=spent(None, 300))
    assert score(actual).status == "skipped"
    assert score(spends(spent(0.4), total=spent(None, 100))).status == "passed"


def test_a_turn_that_failed_can_fail_by_its_cost_and_cannot_pass() -> None:
    actual = spends(spent(0.4))
    actual.turns[0].error = "quota"
    assert score(actual).status == "error"
    assert score(actual, max_usd=0.1).status == "failed"


def test_a_planned_turn_that_was_not_played_is_an_error() -> None:
    wanted = case("hi", "hi")
    assert score(spends(spent(0.4)), wanted).status == "error"


def test_a_recorded_session_states_its_cost() -> None:
    data = (RECORDS / "claude_two_dispatches.json").read_bytes()
    found = score(msgspec.json.decode(data, type=Trace), max_usd=0.05208)
    assert (found.status, found.details["cost_usd"]) == ("passed", 0.05208)


@pytest.mark.parametrize("name", ["cost_evaluator", "CostEvaluator"])
def test_it_answers_to_the_names_of_judge_llm_and_to_its_options(name: str) -> None:
    spec = {"type": name, "config": {"max_cost_per_case": 0.2, "currency": "USD"}}
    (result,) = baton.score(spends(spent(0.4)), evaluators=[spec])
    (found,) = result.scores
    assert (found.evaluator, found.type, found.value) == (name, "cost", 0.5)


def test_another_currency_is_refused() -> None:
    spec = {"type": "cost_evaluator", "config": {"currency": "EUR"}}
    with pytest.raises(InputError, match=r"config\.currency: 'EUR' is not known"):
        baton.score(spends(), evaluators=[spec])


def test_a_case_may_cost_more() -> None:
    wanted = case(evaluators={"cost": {"max_usd": 1}})
    specs = [{"type": "cost", "config": {"max_usd": 0.1}}]
    assert baton.score(spends(spent(0.4)), [wanted], specs).status == "passed"


def test_an_evaluation_in_which_no_cost_is_known_is_an_error() -> None:
    assert baton.score(spends(spent(None)), evaluators=["cost"]).exit_code == 3
