"""`dispatch_limits`: number, depth, width, visits and agents, and what cannot be known."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import baton
from baton.evaluators import DispatchLimits
from baton.model import (
    Dispatch,
    InputError,
    Trace,
    Turn,
    Usage,
)
from baton.testing import build, verdict
from baton.testing.build import case, dispatch, run, trace

RECORDS = Path(__file__).parent.parent / "records"
LIMITS = ("max_dispatches", "max_depth", "max_fan_out", "max_visits", "max_agents")


def record(name: str) -> Trace:
    return msgspec.json.decode((RECORDS / f"{name}.json").read_bytes(), type=Trace)


def turn(number: int, agents: str = "", dispatches: int = 0, **fields: Any) -> Turn:
    """A turn with a run for each letter, and dispatches that differ in nothing but their id."""
    made = [dispatch("b", id=f"t{number}d{i}", **fields) for i in range(dispatches)]
    runs = [run(name, id=f"t{number}r{i}") for i, name in enumerate(agents)]
    return build.turn(*runs, *made, id=f"t{number}")


score = partial(verdict, "dispatch_limits")


def test_every_turn_has_to_keep_within_the_number() -> None:
    actual = trace(turn(1, dispatches=2, kind="transfer"), turn(2, dispatches=5, kind="transfer"))
    found = score(actual, max_dispatches=4)
    assert (found.status, found.value) == ("failed", 0.8)
    assert found.reason == "turn 2: 5 dispatches; at most 4 allowed"
    assert [(e.ids, e.quote) for e in found.evidence] == [(["t2d4"], "turn 2: 5 dispatches")]
    assert found.details["turns"] == [
        {"turn": 1, "score": 1.0, "threshold": 1.0, "dispatches": 2},
        {"turn": 2, "score": 0.8, "threshold": 1.0, "dispatches": 5},
    ]


def test_a_verdict_that_passes_tells_the_largest_count() -> None:
    actual = trace(turn(1, dispatches=2, kind="transfer"), turn(2, dispatches=3, kind="transfer"))
    assert score(actual, max_dispatches=3).reason == "turn 2: 3 dispatches of 3 allowed"


def test_a_return_is_no_dispatch_of_its_own() -> None:
    assert score(record("langgraph_supervisor_return"), max_dispatches=1).status == "passed"


def test_a_refused_dispatch_counts() -> None:
    actual = record("claude_unknown_type")
    assert score(actual, max_dispatches=2).status == "passed"
    assert score(actual, max_dispatches=1).value == 0.5


def test_delegates_below_delegates_are_deeper() -> None:
    actual = record("claude_nested_depth_3")
    assert score(actual, max_depth=3).status == "passed"
    found = score(actual, max_depth=1)
    assert found.value == pytest.approx(1 / 3)
    assert found.reason == "turn 1: depth 3; at most 1 allowed"
    assert [e.ids for e in found.evidence] == [["d2", "d3"]]


def test_fan_out_is_the_largest_group_that_was_issued_together() -> None:
    actual = record("claude_parallel_same_type")
    assert score(actual, max_fan_out=3).status == "passed"
    found = score(actual, max_fan_out=2)
    assert found.reason == "turn 1: 3 dispatches at once; at most 2 allowed"
    assert [e.ids for e in found.evidence] == [["d3"]]
    assert score(record("claude_two_dispatches"), max_fan_out=1).status == "passed"


def test_visits_are_the_runs_of_one_agent_in_a_turn() -> None:
    found = score(trace(turn(1, "abab"), turn(2, "abcbcb")), max_visits=2)
    assert found.value == pytest.approx(2 / 3)
    assert found.reason == "turn 2: `b` ran 3 times; at most 2 allowed"
    assert [e.ids for e in found.evidence] == [["t2r5"]]


def test_agents_are_counted_over_the_whole_case_and_by_the_names_that_cases_use() -> None:
    actual = trace(turn(1, "ab"), turn(2, "acd"))
    found = score(actual, max_agents=3)
    assert (found.value, found.reason) == (0.75, "4 different agents; at most 3 allowed")
    assert [e.ids for e in found.evidence] == [["t2r2"]]
    assert found.details["agents"] == 4
    assert score(actual, max_agents=3, agent_names={"d": "c"}).status == "passed"


def test_the_dispatches_that_started_a_visit_too_many_prove_it() -> None:
    found = score(record("swarm_revisit_and_ghost"), max_visits=1)
    assert found.status == "failed"
    (evidence,) = found.evidence
    assert any(id_.startswith("d") for id_ in evidence.ids)


def test_several_limits_give_the_lowest_share() -> None:
    found = score(record("claude_nested_depth_3"), max_dispatches=2, max_depth=1, max_fan_out=1)
    assert found.value == pytest.approx(1 / 3)
    assert found.reason == "turn 1: 3 dispatches; at most 2 allowed; 1 more over a limit"


def test_unknown_dispatches_are_skipped_until_those_that_are_known_are_too_many() -> None:
    actual = trace(turn(1, "a", dispatches=3, kind="delegate"))
    actual.turns[0].unknown = ["dispatches"]
    found = score(actual, max_dispatches=5)
    assert (found.status, found.value) == ("skipped", None)
    assert found.reason.startswith("turn 1: not all dispatches are recorded")
    assert score(actual, max_dispatches=2).status == "failed"
    assert score(actual, max_agents=5).status == "passed"


@pytest.mark.parametrize("field", ["depth", "group"])
def test_what_is_not_told_of_the_dispatches_is_skipped(field: str) -> None:
    actual = trace(turn(1, "a", dispatches=3, kind="delegate", unknown=[field]))
    options: dict[str, Any] = {"depth": {"max_depth": 2}, "group": {"max_fan_out": 2}}
    assert score(actual, **options[field]).status == "skipped"
    assert score(actual, max_dispatches=3).status == "passed"


def test_fewer_dispatches_than_may_go_at_once_pass_whatever_their_groups() -> None:
    actual = trace(turn(1, "a", dispatches=3, kind="delegate", unknown=["group"]))
    assert score(actual, max_fan_out=3).status == "passed"


def test_a_run_of_an_unknown_agent_may_be_one_visit_more_and_one_agent_more() -> None:
    actual = trace(turn(1, "xaab"))
    actual.turns[0].runs[0].unknown = ["agent"]
    assert score(actual, max_visits=3, max_agents=3).status == "passed"
    assert score(actual, max_visits=2).status == "skipped"
    assert score(actual, max_agents=2).status == "skipped"
    assert score(actual, max_visits=1).status == "failed"


def test_an_agent_that_was_not_seen_inside_is_reported_with_a_pass() -> None:
    found = score(record("adk_agent_tool_opaque"), max_dispatches=2)
    assert found.status == "passed"
    assert found.reason.endswith("the steps of 1 run are not recorded")
    assert found.details["unseen_runs"] == ["run-3"]


def test_a_source_without_refused_calls_can_fail_and_cannot_pass() -> None:
    actual = trace(turn(1, "ab", dispatches=2))
    actual.turns[0].runs[0].unknown = ["steps.refused"]
    for found in (
        score(actual, max_dispatches=2),
        score(actual, max_fan_out=2),
        score(actual, max_dispatches=2, max_depth=1),
    ):
        assert found.status == "skipped"
        assert found.reason.startswith("refused calls are not recorded")
    assert score(actual, max_dispatches=1).status == "failed"
    assert score(actual, max_depth=3).status == "passed"
    assert score(actual, max_dispatches=2, count_refused=False).status == "passed"


def test_refused_dispatches_may_be_left_out_of_the_count() -> None:
    actual = trace(turn(1, "ab", dispatches=3))
    actual.turns[0].dispatches[0].status = "refused"
    assert score(actual, max_dispatches=2).status == "failed"
    assert score(actual, max_dispatches=2, count_refused=False).status == "passed"


def test_turns_that_failed_or_were_cut_off_can_fail_and_cannot_pass() -> None:
    actual = trace(turn(1, dispatches=3, kind="transfer"))
    actual.turns[0].status = "incomplete"
    assert score(actual, max_dispatches=3).status == "skipped"
    actual.turns[0].status, actual.turns[0].error = "failed", "recursion limit"
    assert score(actual, max_dispatches=3).reason == "turn 1 failed: recursion limit"
    assert score(actual, max_dispatches=2).status == "failed"


def test_a_planned_turn_that_was_not_played_is_an_error() -> None:
    wanted = case("hi", "hi")
    assert score(trace(turn(1)), wanted, max_dispatches=3).status == "error"


def test_a_trace_without_turns_is_skipped() -> None:
    assert score(trace(), max_agents=1).status == "skipped"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "needs at least one limit: `max_dispatches`, `max_depth`"),
        ({"max_deep": 3}, "did you mean `max_depth`?"),
        ({"max_depth": -1}, ">= 0"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        DispatchLimits(**options)
    assert said in str(caught.value)


def test_a_case_may_allow_more() -> None:
    wanted = case(evaluators={"dispatch_limits": {"max_dispatches": 3}})
    specs = [{"type": "dispatch_limits", "config": {"max_dispatches": 2}}]
    actual = trace(turn(1, dispatches=3, kind="transfer"))
    assert baton.score(actual, evaluators=specs).status == "failed"
    assert baton.score(actual, [wanted], specs).status == "passed"


DISPATCHES: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.builds(
        dict,
        kind=st.sampled_from(["transfer", "delegate", "sequence", "return"]),
        depth=st.integers(0, 4),
        group=st.one_of(st.none(), st.integers(1, 2)),
    ),
    max_size=6,
)


@given(dispatches=DISPATCHES, agents=st.text("abc", max_size=6), limit=st.integers(0, 5))
def test_a_limit_is_kept_exactly_when_its_count_is_within_it(
    dispatches: list[dict[str, Any]], agents: str, limit: int
) -> None:
    actual = trace(turn(1, agents))
    actual.turns[0].dispatches = [
        Dispatch(id=f"d{i}", to_agent="b", **fields) for i, fields in enumerate(dispatches)
    ]
    issued = [d for d in dispatches if d["kind"] != "return"]
    together = [sum(d["group"] == group for d in issued) for group in (1, 2)]
    alone = any(d["group"] is None for d in issued)
    counts = {
        "max_dispatches": len(issued),
        "max_depth": max((d["depth"] for d in issued), default=0),
        "max_fan_out": max(*together, int(alone)),
        "max_visits": max((agents.count(name) for name in "abc"), default=0),
        "max_agents": len(set(agents)),
    }
    for option in LIMITS:
        options: dict[str, Any] = {option: limit}
        found = score(actual, **options)
        assert (found.status == "passed") == (counts[option] <= limit), option
        assert bool(found.evidence) == (found.status == "failed"), option


def test_the_context_of_an_agent_that_got_work_has_a_limit() -> None:
    usage = Usage(input_tokens=900, cache_read_tokens=300, requests=2)
    made = build.trace(
        build.run("lead", build.delegate("helper", "Go", result="Gone.")),
        build.run("helper", output="Gone.", usage=usage),
        "Go",
    )
    assert verdict("dispatch_limits", made, max_context_tokens=600).status == "passed"
    over = verdict("dispatch_limits", made, max_context_tokens=599)
    assert over.status == "failed"
    assert "600 tokens per request of `helper`" in over.reason
    made.turns[0].runs[1].usage = None
    assert verdict("dispatch_limits", made, max_context_tokens=599).status == "skipped"


def test_a_call_that_may_be_for_an_agent_may_be_one_dispatch_more() -> None:
    """Sessions of ADK without definitions: `price(request="a pen")` is a tool or an agent."""
    actual = trace(turn(1, "ab", dispatches=1, kind="transfer"))
    actual.turns[0].runs[1].steps.append(build.call("b", unknown=["dispatch"]))
    within: dict[str, Any] = {"max_dispatches": 2, "max_depth": 1, "max_fan_out": 2}
    assert score(actual, **within, max_visits=2, max_agents=2).status == "passed"
    for name, limit in within.items():
        found = score(actual, **{name: limit - 1})
        assert (found.status, "`b` may be an agent" in found.reason) == ("skipped", True)
    assert score(actual, max_visits=1).status == "skipped"
    assert score(actual, max_dispatches=0).status == "failed"
    actual.turns[0].runs[1].steps.append(build.call("c", unknown=["dispatch"]))
    assert score(actual, max_agents=2).status == "skipped"
