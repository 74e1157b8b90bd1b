"""`latency`: sums of turns, limits, and what it does when times are unknown."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import baton
from baton.evaluators import Latency
from baton.evaluators.usage_limits import share
from baton.model import (
    Case,
    InputError,
    Trace,
)
from baton.testing import build, verdict
from baton.testing.build import turn

START = 1795217720.0


def took(*seconds: float | None, **fields: Any) -> Trace:
    """One turn for each time it took, a minute after each other."""
    starts = [None if taken is None else START + 60 * n for n, taken in enumerate(seconds, 1)]
    ends = [None if taken is None else START + 60 * n + taken for n, taken in enumerate(seconds, 1)]
    return build.trace(
        *(turn(started=a, ended=b, **fields) for a, b in zip(starts, ends, strict=True))
    )


def greets(turns: int, **overrides: dict[str, Any]) -> Case:
    return build.case(*["hi"] * turns, evaluators=overrides)


score = partial(verdict, "latency")


def test_a_case_takes_the_sum_of_its_turns_and_not_the_time_between_them() -> None:
    found = score(took(9.4, 2.3))
    assert (found.status, found.value) == ("passed", 1.0)
    assert found.details["seconds"] == 11.7
    assert found.details["turns"] == [{"turn": 1, "seconds": 9.4}, {"turn": 2, "seconds": 2.3}]
    assert found.reason == "2 turns took 11.7 s of 30 s allowed"


def test_a_case_that_takes_twice_the_limit_scores_a_half() -> None:
    found = score(took(12.0, 8.0), max_seconds=10)
    assert (found.status, found.value, found.threshold) == ("failed", 0.5, 1.0)
    assert found.reason == "2 turns took 20 s; at most 10 s allowed"
    assert [(e.ids, e.quote) for e in found.evidence] == [(["t1"], "12 s"), (["t2"], "8 s")]


def test_a_slow_turn_fails_in_a_case_that_is_quick_enough() -> None:
    found = score(took(1.0, 8.0, 5.0), max_turn_seconds=4)
    assert (found.status, found.value) == ("failed", 0.5)
    assert found.reason == "turn 2 took 8 s; at most 4 s allowed; 1 more over a limit"
    assert [row["score"] for row in found.details["turns"]] == [1.0, 0.5, 0.8]
    assert [evidence.ids for evidence in found.evidence] == [["t2"], ["t3"]]


def test_turns_may_be_limited_alone() -> None:
    found = score(took(40.0), max_seconds=None, max_turn_seconds=60)
    assert found.reason == "turn 1 took 40 s of 60 s allowed"


def test_a_time_on_the_limit_passes_however_clocks_round() -> None:
    assert score(took(9.4, 0.1, 0.2), max_seconds=9.7).status == "passed"
    assert score(took(9.4, 0.1, 0.201), max_seconds=9.7).status == "failed"


@pytest.mark.parametrize("actual", [took(None), took(None, None), took()])
def test_a_trace_without_times_is_skipped(actual: Trace) -> None:
    found = score(actual)
    assert found.status == "skipped"
    assert "the trace has no" in found.reason


def test_a_turn_whose_start_is_not_known_is_skipped_even_when_the_others_are_too_slow() -> None:
    actual = took(99.0, 1.0)
    actual.turns[1].started, actual.turns[1].unknown = None, ["started"]
    found = score(actual)
    assert (found.status, found.reason[:6]) == ("skipped", "turn 2")


def test_a_turn_that_ends_before_it_starts_says_nothing() -> None:
    assert score(took(-5.0)).status == "skipped"


def test_the_time_of_a_turn_that_failed_says_nothing() -> None:
    actual = took(99.0, 1.0)
    actual.turns[1].status, actual.turns[1].error = "failed", "quota"
    found = score(actual)
    assert (found.status, found.value, found.reason) == ("error", None, "turn 2 failed: quota")


def test_an_incomplete_turn_can_fail_and_cannot_pass() -> None:
    assert score(took(2.0, status="incomplete")).status == "skipped"
    assert score(took(31.0, status="incomplete")).status == "failed"


def test_a_planned_turn_that_was_not_played_is_an_error() -> None:
    found = score(took(1.0), greets(2))
    assert (found.status, found.reason) == ("error", "1 of 2 planned turns were played")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_seconds": None}, "needs at least one limit: `max_seconds`, `max_turn_seconds`"),
        ({"max_seconds": 0}, "> 0"),
        ({"max_second": 3}, "did you mean `max_seconds`?"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        Latency(**options)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["latency_evaluator", "LatencyEvaluator"])
def test_it_answers_to_the_names_of_judge_llm_and_to_its_options(name: str) -> None:
    spec = {"type": name, "config": {"max_latency_seconds": 5, "percentile": 95}}
    (result,) = baton.score(took(10.0), evaluators=[spec])
    (found,) = result.scores
    assert (found.evaluator, found.type, found.value) == (name, "latency", 0.5)


@pytest.mark.parametrize(
    "override",
    [{"latency": {"max_seconds": 20}}, {"LatencyEvaluator": {"max_latency_seconds": 20}}],
)
def test_a_case_may_allow_more_time(override: dict[str, Any]) -> None:
    specs = [{"type": "latency", "config": {"max_seconds": 5}}]
    evaluation = baton.score(took(10.0), [greets(1, **override)], specs)
    assert evaluation.status == "passed"


def test_a_wrong_option_is_named_as_the_user_wrote_it() -> None:
    with pytest.raises(InputError, match="max_latency_seconds"):
        baton.score(
            took(1.0),
            evaluators=[{"type": "latency_evaluator", "config": {"max_latency_seconds": "5"}}],
        )


@given(actual=st.integers(0, 10**12), limit=st.integers(0, 10**12))
def test_a_share_is_one_exactly_up_to_the_limit(actual: int, limit: int) -> None:
    found = share(actual, limit)
    assert 0 <= found <= 1
    assert (found >= 1 - 1e-9) == (actual <= limit)


@given(
    limit=st.floats(0.001, 1e6),
    one=st.floats(0, 1e9),
    more=st.floats(0, 1e9),
)
def test_a_share_never_rises_with_the_figure(limit: float, one: float, more: float) -> None:
    assert share(one + more, limit) <= share(one, limit)
