"""`dispatch_limits` on money: for each dispatch with all below it, and for each agent."""

from __future__ import annotations

from functools import partial

import pytest

from baton.evaluators import DispatchLimits
from baton.model import (
    Dispatch,
    InputError,
    Trace,
    Usage,
)
from baton.testing import build, verdict
from baton.testing.build import delegate, run


def scouted(**costs: float | None) -> Trace:
    """A lead delegates to a scout, who delegates to a clerk; then to the clerk itself."""
    usd: dict[str, float | None] = {"scout": 0.02, "below": 0.03, "clerk": 0.01, **costs}

    def spent(cost: float | None) -> Usage | None:
        return None if cost is None else Usage(requests=1, cost_usd=cost)

    return build.trace(
        run(
            "lead",
            delegate("scout", id="d1", depth=1),
            delegate("clerk", id="d2", depth=1, runs=["r4"]),
            usage=spent(5.0),
        ),
        run("scout", delegate("clerk", id="d3", depth=2), usage=spent(usd["scout"])),
        run("clerk", usage=spent(usd["below"])),
        run("clerk", usage=spent(usd["clerk"])),
    )


score = partial(verdict, "dispatch_limits")


def test_a_dispatch_costs_what_its_agent_and_all_below_it_cost() -> None:
    assert score(scouted(), max_cost_usd=0.05).status == "passed"
    found = score(scouted(), max_cost_usd=0.04)
    assert found.value == pytest.approx(0.8)
    assert found.reason == "turn 1: $0.05 for one dispatch to `scout`; at most $0.04 allowed"
    assert found.evidence[0].ids == ["d1", "r2"]


def test_all_dispatches_to_one_agent_have_a_limit_of_their_own() -> None:
    assert score(scouted(), max_agent_cost_usd={"clerk": 0.04, "scout": 1}).status == "passed"
    found = score(scouted(), max_agent_cost_usd={"clerk": 0.02})
    assert found.value == pytest.approx(0.5)
    assert found.reason == "$0.04 for all dispatches to `clerk`; at most $0.02 allowed"
    assert found.evidence[0].ids == ["d2", "d3"]
    assert found.details["agent_cost_usd"] == {"clerk": 0.04}


def test_a_run_below_two_dispatches_to_one_agent_costs_once() -> None:
    actual = scouted()
    actual.turns[0].dispatches[2].to_agent = "scout"
    found = score(actual, max_agent_cost_usd={"scout": 1.0})
    assert found.details["agent_cost_usd"] == {"scout": pytest.approx(0.05)}


def test_control_that_is_passed_on_costs_a_delegate_and_not_a_transfer() -> None:
    actual = scouted()
    first, _, second = actual.turns[0].dispatches
    second.kind = "transfer"
    assert score(actual, max_cost_usd=0.04).status == "failed"
    first.kind = "transfer"
    assert score(actual, max_cost_usd=0.04).status == "passed"


def test_control_that_comes_back_does_not_cost_the_one_that_returns_it() -> None:
    actual = scouted()
    first = actual.turns[0].dispatches[0]
    first.kind = "transfer"
    actual.turns[0].runs.append(run("lead", id="r5", usage=Usage(cost_usd=9.0), started_by=["d4"]))
    actual.turns[0].dispatches.append(
        Dispatch(id="d4", kind="return", from_run="r2", to_agent="lead", runs=["r5"], answers="d1")
    )
    assert score(actual, max_cost_usd=0.05).status == "passed"


def test_a_cost_known_in_part_fails_when_that_is_too_much_and_is_skipped_otherwise() -> None:
    actual = scouted(below=None)
    assert score(actual, max_cost_usd=0.01).status == "failed"
    found = score(actual, max_cost_usd=0.05)
    assert found.status == "skipped"
    assert "`prices:`" in found.reason
    assert score(actual, max_agent_cost_usd={"clerk": 1.0}).status == "skipped"


def test_what_was_refused_cost_nothing_and_what_was_not_seen_may_have() -> None:
    actual = scouted()
    actual.turns[0].dispatches.append(
        Dispatch(id="d4", kind="delegate", from_run="r1", to_agent="ghost", status="refused")
    )
    assert score(actual, max_cost_usd=0.05).status == "passed"
    actual.turns[0].dispatches[-1].status = "completed"
    assert score(actual, max_cost_usd=0.05).status == "skipped"


def test_agents_go_by_the_names_a_config_gives_them() -> None:
    found = score(scouted(), max_agent_cost_usd={"desk": 0.02}, agent_names={"clerk": "desk"})
    assert found.status == "failed"


def test_limits_of_no_agent_are_refused() -> None:
    with pytest.raises(InputError):
        DispatchLimits(max_agent_cost_usd={})
