"""`tokens`: what counts as input, output and total, and what it does when they are unknown."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import baton
from baton.model import (
    InputError,
    Trace,
    Usage,
)
from baton.testing import build, verdict
from baton.testing.build import case, run

RECORDS = Path(__file__).parent.parent / "records"
CACHED = Usage(
    input_tokens=1000, cache_read_tokens=460, cache_write_tokens=290, output_tokens=50, requests=2
)


def spends(*usages: Usage | None, total: Usage | None = None) -> Trace:
    """One turn, with a run of `a0`, `a1`... for each usage."""
    return build.trace(*(run(f"a{i}", usage=one) for i, one in enumerate(usages)), usage=total)


score = partial(verdict, "tokens")


def test_input_is_with_cached_tokens_and_total_with_all() -> None:
    found = score(spends(CACHED), max_total=1800, max_input=1750, max_output=50)
    assert found.status == "passed"
    assert found.details["tokens"] == {"total": 1800, "input": 1750, "output": 50}
    assert found.reason == (
        "1,800 tokens of 1,800 allowed; 1,750 input tokens of 1,750 allowed; "
        "50 output tokens of 50 allowed"
    )


@pytest.mark.parametrize(
    ("options", "value", "said"),
    [
        ({"max_total": 900}, 0.5, "1,800 tokens; at most 900 allowed"),
        ({"max_input": 1400}, 0.8, "1,750 input tokens; at most 1,400 allowed"),
        ({"max_output": 10}, 0.2, "50 output tokens; at most 10 allowed"),
        ({"max_output": 0}, 0.0, "50 output tokens; at most 0 allowed"),
        (
            {"max_input": 1749, "max_output": 25},
            0.5,
            "1,750 input tokens; at most 1,749 allowed; 1 more over a limit",
        ),
    ],
)
def test_the_lowest_share_of_a_limit_is_the_score(
    options: dict[str, Any], value: float, said: str
) -> None:
    found = score(spends(CACHED), **options)
    assert (found.status, found.reason) == ("failed", said)
    assert found.value == pytest.approx(value)


def test_the_run_that_used_most_stands_first_in_the_evidence() -> None:
    small = Usage(input_tokens=3, output_tokens=2)
    found = score(spends(small, CACHED, None), max_total=10)
    assert [(e.ids, e.quote) for e in found.evidence] == [
        (["r2"], "1,800 tokens"),
        (["r1"], "5 tokens"),
    ]
    assert found.details["agents"] == {"a0": 5, "a1": 1800}


def test_the_usage_that_the_source_sums_up_goes_before_the_sum_of_runs() -> None:
    found = score(spends(CACHED, total=Usage(input_tokens=4000, output_tokens=0)), max_total=2000)
    assert found.value == 0.5


@pytest.mark.parametrize("actual", [spends(), spends(None), spends(Usage(requests=1))])
def test_a_trace_that_tells_no_tokens_is_skipped(actual: Trace) -> None:
    found = score(actual, max_total=10)
    assert (found.status, found.value) == ("skipped", None)
    assert "records no tokens" in found.reason


def test_output_that_is_not_told_hides_the_total_and_not_the_input() -> None:
    actual = spends(Usage(input_tokens=100))
    assert score(actual, max_input=100).status == "passed"
    assert score(actual, max_total=100).status == "skipped"
    assert score(actual, max_output=100).reason == "the trace records no output tokens: record them"
    assert score(actual, max_total=50).reason == "at least 100 tokens; at most 50 allowed"


def test_incomplete_usage_is_a_lower_bound_that_can_fail_and_cannot_pass() -> None:
    actual = spends(total=Usage(input_tokens=100, output_tokens=20, complete=False))
    found = score(actual, max_total=500)
    assert found.status == "skipped"
    assert found.reason.startswith("at least 120 tokens; some requests reported no usage")
    assert score(actual, max_total=60).value == 0.5


def test_an_agent_whose_requests_were_not_seen_makes_the_sum_a_lower_bound() -> None:
    data = (RECORDS / "adk_agent_tool_opaque.json").read_bytes()
    actual = msgspec.json.decode(data, type=Trace)
    assert score(actual, max_total=10_000).status == "skipped"
    assert score(actual, max_total=100).status == "failed"


def test_a_turn_that_failed_can_fail_by_its_tokens_and_cannot_pass() -> None:
    actual = spends(CACHED)
    actual.turns[0].status = "failed"
    assert score(actual, max_total=5000).status == "error"
    assert score(actual, max_total=500).status == "failed"


def test_a_planned_turn_that_was_not_played_is_an_error() -> None:
    wanted = case("hi", "hi")
    assert score(spends(CACHED), wanted, max_total=5000).status == "error"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "needs at least one limit: `max_total`, `max_input`, `max_output`"),
        ({"max_tokens": 3}, "unknown key"),
        ({"max_total": -1}, ">= 0"),
        ({"max_total": 1.5}, "expected a whole number"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        baton.score(spends(), evaluators=[{"type": "tokens", "config": options}])
    assert said in str(caught.value)


def test_a_case_may_set_its_own_limit() -> None:
    wanted = case(evaluators={"tokens": {"max_total": 100}})
    specs = [{"type": "tokens", "config": {"max_total": 5000}}]
    assert baton.score(spends(CACHED), evaluators=specs).status == "passed"
    assert baton.score(spends(CACHED), [wanted], specs).status == "failed"


COUNTS = st.one_of(st.none(), st.integers(0, 50))
USAGES = st.builds(
    Usage,
    input_tokens=COUNTS,
    cache_read_tokens=COUNTS,
    cache_write_tokens=COUNTS,
    output_tokens=COUNTS,
    complete=st.booleans(),
)


@given(usages=st.lists(USAGES, max_size=3), limit=st.integers(0, 200))
def test_it_passes_only_what_is_reported_in_full_and_fails_only_what_is_proven(
    usages: list[Usage], limit: int
) -> None:
    told = [
        (u.input_tokens or 0) + (u.cache_read_tokens or 0) + (u.cache_write_tokens or 0)
        + (u.output_tokens or 0)
        for u in usages
    ]  # fmt: skip
    found = score(spends(*usages), max_total=limit)
    assert (found.status == "failed") == (sum(told) > limit)
    if found.status == "passed":
        assert all(u.complete for u in usages)
