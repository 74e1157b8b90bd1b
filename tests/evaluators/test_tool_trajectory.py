"""`tool_trajectory_avg_score`: what Google ADK gives for the same calls."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import baton
from baton.evaluators import ToolTrajectoryAvgScore
from baton.model import (
    AgentRun,
    Case,
    Dispatch,
    InputError,
    Scenario,
    ToolCall,
    Trace,
)
from baton.testing import build, verdict
from baton.testing.build import call, expect, run, turn

Call = tuple[str, Any]


def called(*turns: list[Call]) -> Trace:
    """A turn for each list, in which a helper makes the calls."""
    return build.trace(*(turn(run("helper", *(call(*one) for one in calls))) for calls in turns))


def wants(*turns: list[Call] | None) -> Case:
    return build.case(*(expect(tool_calls=calls) for calls in turns))


score = partial(verdict, "tool_trajectory_avg_score")


def bare(names: str) -> list[Call]:
    return [(name, {}) for name in names]


@pytest.mark.parametrize(
    ("wanted", "made", "values"),
    [
        ("", "", (1, 1, 1)),
        ("", "a", (0, 1, 1)),
        ("a", "", (0, 0, 0)),
        ("ab", "ab", (1, 1, 1)),
        ("ab", "ba", (0, 0, 1)),
        ("ab", "axb", (0, 1, 1)),
        ("aa", "a", (0, 0, 0)),
        ("aab", "baa", (0, 0, 1)),
    ],
)
def test_the_three_ways_to_match(wanted: str, made: str, values: tuple[int, ...]) -> None:
    for way, value in zip(("EXACT", "IN_ORDER", "ANY_ORDER"), values, strict=True):
        assert score(called(bare(made)), wants(bare(wanted)), match_type=way).value == value


@pytest.mark.parametrize(
    ("expected", "actual", "equal"),
    [
        ({"x": 1}, {"x": 1.0}, True),
        ({"x": 1}, {"x": True}, True),
        ({"x": [0, {"y": 1}]}, {"x": [False, {"y": 1.0}]}, True),
        ({"x": "1"}, {"x": 1}, False),
        ({"x": 0.3}, {"x": 0.1 + 0.2}, False),
        ({"x": None}, {}, False),
        (None, {}, False),
        (None, None, True),
        ({"x": [1, 2]}, {"x": [2, 1]}, False),
        ({"x": 1, "y": 2}, {"y": 2, "x": 1}, True),
        ({"x": "Oslo"}, {"x": "oslo"}, False),
    ],
)
def test_arguments_compare_as_python_does(expected: Any, actual: Any, equal: bool) -> None:
    for way in ("EXACT", "IN_ORDER", "ANY_ORDER"):
        found = score(called([("f", actual)]), wants([("f", expected)]), match_type=way)
        assert found.value == equal
        ignoring = {"match_type": way, "ignore_args": True}
        assert score(called([("f", actual)]), wants([("f", expected)]), **ignoring).value == 1


leaves = st.sampled_from([0, 1, 1.0, True, None, "1"])
calls = st.lists(
    st.tuples(st.sampled_from("fg"), st.none() | st.dictionaries(st.just("x"), leaves)), max_size=5
)


@given(calls, calls)
def test_it_agrees_with_a_plain_reading_of_the_rules(wanted: list[Call], made: list[Call]) -> None:
    rest = iter(made)
    in_order = all(any(one == other for other in rest) for one in wanted)
    left = list(made)
    for one in wanted:
        if one in left:
            left.remove(one)
    any_order = len(left) == len(made) - len(wanted)
    plain = {"EXACT": wanted == made, "IN_ORDER": in_order, "ANY_ORDER": any_order}
    for way, value in plain.items():
        assert score(called(made), wants(wanted), match_type=way).value == value


def test_a_turn_that_states_no_calls_expects_none_and_the_mean_counts() -> None:
    found = score(called(bare("a"), bare("b")), wants(bare("a"), None), threshold=0.5)
    assert (found.value, found.status) == (0.5, "passed")
    assert "1 of 2 turns match EXACT" in found.reason
    assert "turn 2: called `b`; not expected `b`" in found.reason


def test_the_share_of_steps_is_beside_the_score() -> None:
    found = score(called(bare("ac"), bare("z")), wants(bare("abcd"), bare("z")))
    assert found.value == 0.5
    assert found.details["step_average"] == 0.75
    assert [row["step_share"] for row in found.details["turns"]] == [0.5, 1.0]
    assert "(step average 0.75)" in found.reason
    assert "missing `b`, `d`" in found.reason


def test_what_differs_is_named_with_its_values() -> None:
    found = score(called([("f", {"x": 2})]), wants([("f", {"x": 1})]))
    assert found.reason.endswith("turn 1: called `f`; `f(x)`: expected 1, got 2")
    assert found.evidence[0].ids == ["c1"]
    nothing = score(called([("f", {})]), wants([("f", None)]))
    assert (
        "turn 1: called `f`; `f()`: expected null, got {}; for a call without arguments"
        in nothing.reason
    )


def test_transfers_count_and_what_a_delegate_calls_does_not() -> None:
    actual = called([("clerk", {"request": "x"})])
    turn = actual.turns[0]
    turn.dispatches.append(
        Dispatch(id="d1", kind="delegate", from_run="r1", to_agent="clerk", runs=["r2"])
    )
    hidden = ToolCall(id="c9", name="lookup", arguments={})
    turn.runs.append(AgentRun(id="r2", agent="clerk", started_by=["d1"], steps=[hidden]))
    step = turn.runs[0].steps[0]
    assert isinstance(step, ToolCall)
    step.dispatch = "d1"
    assert score(actual, wants([("clerk", {"request": "x"})])).value == 1


def test_more_or_fewer_turns_than_planned_are_an_error() -> None:
    assert score(called(bare("a")), wants(bare("a"), None)).status == "error"
    more = score(called(bare("a"), bare("a")), wants(bare("a")))
    assert (more.status, more.value) == ("error", None)
    assert more.reason == "2 turns were played, and 1 are planned"


def test_a_turn_that_broke_is_an_error() -> None:
    actual = called(bare("a"))
    actual.turns[0].error = "quota"
    assert score(actual, wants(bare("a"))).status == "error"


@pytest.mark.parametrize(
    "wanted",
    [
        None,
        Case(id="x", turns=[]),
        Case(id="x", turns=[], scenario=Scenario(start="hi", plan="ask")),
    ],
)
def test_without_turns_to_compare_it_is_skipped(wanted: Case | None) -> None:
    assert score(called(), wanted).status == "skipped"


def test_what_the_source_did_not_record_is_skipped() -> None:
    actual = called(bare("a"))
    step = actual.turns[0].runs[0].steps[0]
    assert isinstance(step, ToolCall)
    step.unknown.append("arguments")
    assert score(actual, wants(bare("a"))).status == "skipped"
    assert score(actual, wants(bare("a")), ignore_args=True).status == "passed"
    actual.turns[0].runs[0].unknown.append("steps")
    assert score(actual, wants(bare("a")), ignore_args=True).status == "skipped"


@pytest.mark.parametrize(
    "options",
    [
        {"match_type": "IN_ORDER", "ignore_args": True},
        {"match_type": "in_order", "ignore_args": True},
        {"matchType": "IN_ORDER", "ignoreArgs": True},
    ],
)
def test_options_are_read_the_way_adk_files_write_them(options: dict[str, Any]) -> None:
    spec = {"type": "tool_trajectory_avg_score", "config": options}
    actual = called([("a", {"x": 1}), ("b", {})])
    actual.case = "x"
    evaluation = baton.score(actual, [wants([("a", {}), ("b", {})])], [spec])
    (result,) = evaluation
    assert result.scores[0].status == "passed"
    assert result.scores[0].details["match_type"] == "IN_ORDER"


def test_a_case_may_override_options_in_either_spelling() -> None:
    wanted = wants(bare("ab"))
    wanted.evaluators = {"tool_trajectory_avg_score": {"matchType": "any_order"}}
    spec = {"type": "tool_trajectory_avg_score", "config": {"match_type": "EXACT"}}
    actual = called(bare("ba"))
    actual.case = "x"
    (result,) = baton.score(actual, [wanted], [spec])
    assert result.scores[0].status == "passed"


def test_a_match_type_adk_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean `ANY_ORDER`"):
        ToolTrajectoryAvgScore(match_type="any_ordr")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("in order", "IN_ORDER"),
        ("In-Order", "IN_ORDER"),
        (0, "EXACT"),
        (1, "IN_ORDER"),
        (True, "IN_ORDER"),
        (2, "ANY_ORDER"),
    ],
)
def test_a_match_type_is_spelled_in_every_way_that_adk_takes(spelled: Any, meant: str) -> None:
    assert ToolTrajectoryAvgScore(match_type=spelled).match_type == meant


@pytest.mark.parametrize("spelled", ["0", 3, None, 1.5])
def test_a_match_type_that_adk_refuses_is_refused(spelled: Any) -> None:
    with pytest.raises(InputError, match="match_type"):
        ToolTrajectoryAvgScore(match_type=spelled)


def test_nothing_reaches_a_threshold_above_one() -> None:
    found = score(called([("f", {})]), wants([("f", {})]), threshold=1.5)
    assert (found.status, found.value) == ("failed", 1.0)
