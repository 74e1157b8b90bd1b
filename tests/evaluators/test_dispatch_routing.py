"""`dispatch_routing`: right and wrong targets, too few and too many, and what is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from baton.model import (
    AgentCard,
    Case,
    Content,
    Dispatch,
    ExpectedDispatch,
    HandedOff,
    Score,
    Trace,
    Turn,
)
from baton.testing import verdicts
from baton.testing.build import case, dispatch, run, trace, turn


def made(number: int, to: str, **fields: Any) -> Dispatch:
    """A delegate of `router` with a prompt and its own group."""
    plain: dict[str, Any] = {"from_run": "r0", "from_agent": "router", "runs": [f"r{number}"]}
    return dispatch(to, **{"id": f"d{number}", "prompt": f"Do it, {to}.", **plain, **fields})


def turn_of(*dispatches: Dispatch, **fields: Any) -> Turn:
    steps = [HandedOff(id=f"h{d.id}", dispatch=d.id) for d in dispatches]
    receivers = [run(d.to_agent, id=d.runs[0], started_by=[d.id]) for d in dispatches if d.runs]
    return turn(run("router", *steps, id="r0"), *receivers, *dispatches, id="t1", **fields)


def stating(*dispatches: str | ExpectedDispatch) -> Case:
    return case(dispatches=dispatches)


def scores(actual: Trace | Turn, case: Case | None, **options: Any) -> list[Score]:
    actual = trace(actual) if isinstance(actual, Turn) else actual
    return verdicts("dispatch_routing", actual, case, **options)


def faults(found: list[Score]) -> list[list[str]]:
    return [[f["kind"] for f in score.details.get("findings", [])] for score in found]


def told(found: list[Score]) -> list[tuple[str, list[str]]]:
    return [(score.status, score.subject) for score in found]


def test_each_expected_dispatch_that_was_made_passes_whatever_the_order() -> None:
    found = scores(turn_of(made(1, "a"), made(2, "b")), stating("b", "a"))
    assert told(found) == [("passed", ["d2"]), ("passed", ["d1"])]
    assert [score.value for score in found] == [1.0, 1.0]


def test_work_that_went_to_another_agent_is_a_wrong_target() -> None:
    (found,) = scores(turn_of(made(1, "refunds")), stating("billing"))
    assert (found.status, found.value, found.subject) == ("failed", 0.0, ["d1"])
    assert faults([found]) == [["wrong_target"]]
    assert found.reason == "turn 1: expected a dispatch to `billing`, but it went to `refunds`"
    assert found.evidence[0].ids == ["d1", "hd1"]
    assert found.details["fix"].startswith("`router` handed to `refunds`, not to `billing`: look")


def test_a_name_that_is_nearly_the_expected_one_may_be_misspelt() -> None:
    (found,) = scores(turn_of(made(1, "biling", status="refused")), stating("billing"))
    assert "misspelt" in found.details["fix"]


def test_a_dispatch_that_was_not_made_is_under_delegation_and_has_no_subject() -> None:
    found = scores(turn_of(made(1, "a")), stating("a", "b"))
    assert told(found) == [("passed", ["d1"]), ("failed", [])]
    assert faults(found) == [[], ["under_delegation"]]
    assert found[1].reason == "turn 1: no dispatch to `b`; those made went to `a`"


def test_a_dispatch_that_nobody_expected_is_over_delegation() -> None:
    found = scores(turn_of(made(1, "a"), made(2, "c")), stating("a"))
    assert told(found) == [("passed", ["d1"]), ("failed", ["d2"])]
    assert faults(found) == [[], ["over_delegation"]]
    assert found[1].reason == "turn 1: `router` handed to `c`, which is not expected"


def test_the_same_agent_once_too_often_is_over_delegation_unless_extras_are_allowed() -> None:
    turn = turn_of(made(1, "a"), made(2, "a"))
    assert faults(scores(turn, stating("a"))) == [[], ["over_delegation"]]
    assert told(scores(turn, stating("a"), allow_extra=True)) == [("passed", ["d1"])]


def test_where_no_hand_off_is_expected_none_may_be_made() -> None:
    assert told(scores(turn_of(), stating())) == [("passed", [])]
    assert faults(scores(turn_of(made(1, "a")), stating())) == [["over_delegation"]]
    (found,) = scores(turn_of(made(1, "a")), stating(), allow_extra=True)
    assert (found.status, found.reason) == (
        "passed", "turn 1: dispatches: none is expected, and 1 are allowed",
    )  # fmt: skip


def test_two_to_one_agent_are_distinguished_by_what_is_said_in_them() -> None:
    turn = turn_of(
        made(1, "a", prompt=Content(text="count the apples")),
        made(2, "a", prompt=Content(text="count the pears")),
    )
    wanted = [ExpectedDispatch(to="a", prompt_contains=[word]) for word in ("PEARS", "apples")]
    assert told(scores(turn, stating(*wanted))) == [("passed", ["d2"]), ("passed", ["d1"])]


def test_wrong_kind_and_lacking_words_lower_the_score_of_the_right_target() -> None:
    wanted = ExpectedDispatch(to="a", kind="transfer", prompt_contains=["do it", "by Friday"])
    (found,) = scores(turn_of(made(1, "a")), stating(wanted))
    assert faults([found]) == [["wrong_kind", "prompt_lacks"]]
    assert found.value == pytest.approx((1 + 0 + 0.5) / 3)
    assert found.reason == (
        "turn 1: handed to `a` as expected; by delegate, expected transfer; "
        "the prompt lacks 'by Friday'"
    )


def test_tools_have_to_be_those_that_the_dispatch_allows() -> None:
    wanted = ExpectedDispatch(to="a", tools=["read", "grep"])

    def fault(**fields: Any) -> list[list[str]]:
        return faults(scores(turn_of(made(1, "a", **fields)), stating(wanted)))

    given = {"tools_source": "definition"}
    assert fault(tools_allowed=["grep", "read"], **given) == [[]]
    assert fault(tools_allowed=["read"], **given) == [["wrong_tools"]]
    assert fault(tools_allowed=["read", "grep", "rm"], **given) == [["wrong_tools"]]
    assert fault(tools_allowed="all", **given) == [["wrong_tools"]]
    assert fault(tools_allowed=["read"], tools_source="offered") == [["wrong_tools"]]


@pytest.mark.parametrize(
    ("fields", "wanted", "supply"),
    [
        ({"prompt": None, "unknown": ["prompt"]}, {"prompt_contains": ["x"]}, "content of calls"),
        ({"unknown": ["tools_allowed"]}, {"tools": ["x"]}, "--agents"),
        ({"tools_allowed": ["x", "y"], "tools_source": "offered"}, {"tools": ["x"]}, "--agents"),
        ({"unknown": ["group"]}, {"parallel": True}, "start and end"),
    ],
)
def test_what_is_not_known_of_a_dispatch_is_skipped_with_what_would_supply_it(
    fields: dict[str, Any], wanted: dict[str, Any], supply: str
) -> None:
    found = scores(turn_of(made(1, "a", **fields)), stating(ExpectedDispatch(to="a", **wanted)))
    assert told(found) == [("passed", ["d1"]), ("skipped", ["d1"])]
    assert supply in found[1].reason


def test_parallel_is_proven_by_one_group_or_by_overlap_and_not_by_the_clock_alone() -> None:
    wanted = [ExpectedDispatch(to=name, parallel=True) for name in "ab"]
    together = turn_of(made(1, "a", group=1), made(2, "b", group=1))
    overlap = turn_of(made(1, "a", started=1.0, ended=3.0), made(2, "b", started=2.0, ended=4.0))
    apart = turn_of(made(1, "a", started=1.0, ended=2.0), made(2, "b", started=2.0, ended=4.0))
    assert faults(scores(together, stating(*wanted))) == [[], []]
    assert faults(scores(overlap, stating(*wanted))) == [[], []]
    assert faults(scores(apart, stating(*wanted))) == [["not_parallel"], ["not_parallel"]]
    alone = [ExpectedDispatch(to=name, parallel=False) for name in "ab"]
    assert faults(scores(together, stating(*alone))) == [["parallel"], ["parallel"]]
    assert faults(scores(apart, stating(*alone))) == [[], []]


@pytest.mark.parametrize(
    "harmless",
    [
        {"status": "refused"},
        {"kind": "sequence"},
        {"kind": "return"},
        {"to_kind": "human"},
        {"continues": "d1"},
        {"basis": "order"},
    ],
)
def test_what_sets_nobody_new_to_work_is_no_over_delegation(harmless: dict[str, Any]) -> None:
    turn = turn_of(made(1, "a"), made(2, "c", **harmless))
    assert told(scores(turn, stating("a"))) == [("passed", ["d1"])]


def test_control_that_goes_back_is_no_over_delegation_but_a_second_round_is() -> None:
    there = {"kind": "transfer"}
    back = {"kind": "transfer", "from_agent": "a", "from_run": "r1"}
    once = turn_of(made(1, "a", **there), made(2, "router", **back))
    assert told(scores(once, stating("a"))) == [("passed", ["d1"])]
    assert told(scores(once, stating("a", "router"))) == [("passed", ["d1"]), ("passed", ["d2"])]
    twice = turn_of(made(1, "a", **there), made(2, "router", **back), made(3, "a", **there))
    assert faults(scores(twice, stating("a"))) == [[], ["over_delegation"]]


def test_control_given_in_one_turn_may_go_back_in_the_next() -> None:
    first = turn_of(made(1, "a", kind="transfer"))
    second = turn_of(
        made(2, "router", kind="transfer", from_agent="a"), made(3, "b", kind="transfer")
    )
    case = stating("a")
    case.turns += stating("b").turns
    found = scores(trace(first, second), case)
    assert told(found) == [("passed", ["d1"]), ("passed", ["d3"])]


def test_a_dispatch_that_failed_and_was_made_again_is_one() -> None:
    turn = turn_of(made(1, "a", status="failed", error="timeout"), made(2, "a"))
    assert "failed" not in [score.status for score in scores(turn, stating("a"))]


def test_agents_go_by_aliases_nodes_and_the_names_of_the_config() -> None:
    turn = turn_of(made(1, "a"))
    turn.runs[1].node = "node_a"
    cards = {"a": AgentCard(aliases=["Agent A"])}
    known = trace(turn, agents=cards)
    for name in ("a", "node_a", "Agent A"):
        assert told(scores(known, stating(name))) == [("passed", ["d1"])]
    assert told(scores(turn, stating("billing"), agent_names={"a": "billing"})) == [
        ("passed", ["d1"])
    ]


def test_what_the_record_does_not_tell_is_never_under_delegation() -> None:
    unseen = turn_of(made(1, "a"), unknown=["dispatches"])
    nameless = turn_of(made(1, "main"))
    nameless.runs[1].unknown = ["agent"]
    cut = turn_of(made(1, "a"), status="incomplete")
    ordered = turn_of(made(1, "a"), made(2, "b", basis="order"))
    unstarted = turn_of(made(1, "a"))
    unstarted.runs.append(run("b", id="r9"))
    for one in (unseen, nameless, cut, ordered, unstarted):
        (*_, last) = scores(one, stating("b"), allow_extra=True)
        assert last.status == "skipped", last.reason
        assert "record" in last.reason
    assert told(scores(ordered, stating("a", "b"), order=True))[1] == ("passed", ["d2"])


def test_a_turn_that_broke_is_an_error_and_what_states_nothing_is_skipped() -> None:
    broke = turn_of(made(1, "a"), status="failed", error="no quota")
    (found,) = scores(broke, stating("a"))
    assert (found.status, found.reason) == ("error", "turn 1 failed: no quota")
    assert scores(turn_of(), None)[0].status == "skipped"
    assert scores(turn_of(), case())[0].status == "skipped"
