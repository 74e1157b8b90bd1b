"""Efficiency counters: of one trace, and summed up."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import baton
from baton.model import (
    AgentRun,
    Efficiency,
    EfficiencySums,
    ToolCall,
    Trace,
    Usage,
)
from baton.reports.terminal import case_line, efficiency_line
from baton.testing import build
from baton.testing.build import dispatch


def run(number: int, *calls: ToolCall, **fields: Any) -> AgentRun:
    return build.run("a", *calls, id=f"r{number}", **fields)


def trace(*runs: AgentRun, usage: Usage | None = None, **fields: Any) -> Trace:
    asked, back = dispatch("b"), dispatch("a", id="d2", kind="return")
    return build.trace(build.turn(*runs, asked, back, **fields), usage=usage)


def efficiency_of(actual: Trace) -> Efficiency:
    """Return the counters that a result of the trace has."""
    (result,) = baton.score(actual, None, ["handoff_loops"])
    assert result.efficiency is not None
    return result.efficiency


CALLS = (ToolCall(id="c1", name="search"), ToolCall(id="c2", name="task", dispatch="d1"))


def test_hand_offs_are_no_tool_calls_and_returns_are_no_dispatches() -> None:
    found = efficiency_of(trace(run(0, *CALLS)))
    assert (found.dispatches, found.tool_calls) == (1, 1)


def test_requests_and_tokens_are_those_of_the_source_or_the_sum_over_runs() -> None:
    of_runs = [
        run(n, usage=Usage(input_tokens=10, cache_read_tokens=5, output_tokens=2, requests=1))
        for n in range(2)
    ]
    summed = efficiency_of(trace(*of_runs))
    assert (summed.model_calls, summed.tokens, summed.at_least) == (2, 34, [])
    told = efficiency_of(trace(*of_runs, usage=Usage(input_tokens=50)))
    assert (told.model_calls, told.tokens) == (2, 50)


def test_costs_are_summed_and_shown_in_total_and_for_each_case() -> None:
    sums = EfficiencySums()
    for cost in (0.02, None, 0.00005):
        sums.add(Efficiency(tokens=3, cost_usd=cost))
    assert sums.known()["cost_usd"].sum == pytest.approx(0.02005)
    assert "cost $0.0200 ($0.0100) in 2 of 3 cases" in efficiency_line(sums)
    assert case_line(Efficiency(tokens=3, cost_usd=0.00005)) == "3 tokens · $0.000050"
    sums.add(Efficiency(cost_usd=0.02), -1)
    assert sums.known()["cost_usd"].sum == 0.00005


def test_the_time_is_that_of_the_turns_and_stands_under_timings() -> None:
    assert efficiency_of(trace(started=5.0, ended=7.5)).timings == {"seconds": 2.5}
    assert efficiency_of(trace(started=5.0)).timings == {}


def test_what_is_known_in_part_is_a_lower_bound_and_what_is_not_at_all_is_not_one() -> None:
    silent = run(1, unknown=["steps", "usage"])
    spent = Usage(input_tokens=10, requests=1)
    part = efficiency_of(trace(run(0, *CALLS, usage=spent), silent, unknown=["dispatches"]))
    assert part.at_least == ["dispatches", "tool_calls", "model_calls", "tokens"]
    assert (part.tool_calls, part.tokens) == (1, 10)
    nothing = efficiency_of(trace(silent))
    assert (nothing.tool_calls, nothing.model_calls, nothing.tokens) == (None, None, None)


def test_a_recording_that_breaks_off_gives_lower_bounds() -> None:
    found = efficiency_of(trace(run(0, *CALLS), status="incomplete", started=1.0, ended=2.0))
    assert found.at_least == ["dispatches", "tool_calls"]
    assert found.timings == {}


def test_sums_say_of_how_many_results_they_are_and_forget_what_is_taken_back() -> None:
    sums = EfficiencySums()
    sums.add(Efficiency(tool_calls=3, tokens=100, at_least=["tokens"], timings={"seconds": 0.1}))
    sums.add(Efficiency(tool_calls=4))
    sums.add(None)
    wrong = Efficiency(tool_calls=9, model_calls=1, timings={"seconds": 0.2})
    sums.add(wrong)
    sums.add(wrong, -1)
    assert msgspec.to_builtins(sums) == {
        "results": 2,
        "tool_calls": {"sum": 7, "results": 2, "at_least": 0},
        "tokens": {"sum": 100, "results": 1, "at_least": 1},
        "timings": {"seconds": {"sum": pytest.approx(0.1), "results": 1, "at_least": 0}},
    }
    assert sums.tool_calls.mean == 3.5
    assert sums.model_calls.mean is None
