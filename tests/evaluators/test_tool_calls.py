"""`tool_calls`: modes, scope, what it says, and what it does when it cannot know."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from baton.evaluators import ToolCalls
from baton.model import (
    AgentCard,
    AgentRun,
    Case,
    InputError,
    Scenario,
    ToolCall,
    Trace,
)
from baton.testing import build, verdict
from baton.testing.build import dispatch, expect, run, turn

Spec = str | tuple[str, dict[str, Any]]


def call(id_: str, spec: Spec, **fields: Any) -> ToolCall:
    name, arguments = (spec, {}) if isinstance(spec, str) else spec
    return build.call(name, arguments, id=id_, **fields)


def called(*turns: list[Spec]) -> Trace:
    """A turn for each list, in which a helper makes the calls."""
    return build.trace(
        *(
            turn(run("helper", *(call(f"t{number}c{i}", spec) for i, spec in enumerate(specs, 1))))
            for number, specs in enumerate(turns, 1)
        )
    )


def wants(*turns: list[Spec] | None) -> Case:
    return build.case(*(expect(tool_calls=one) for one in turns))


score = partial(verdict, "tool_calls")


def a(number: int) -> Spec:
    return ("lookup_order", {"order_id": f"A-{number}"})


MODES = ("exact", "in_order", "any_order", "partial", "precision", "recall", "f1")


@pytest.mark.parametrize(
    ("wanted", "made", "values"),
    [
        ("", "a", (0, 1, 1, 1, 0, 1, 0)),
        ("a", "", (0, 0, 0, 0, 0, 0, 0)),
        ("", "", (1, 1, 1, 1, 1, 1, 1)),
        ("ab", "ab", (1, 1, 1, 1, 1, 1, 1)),
        ("ab", "ba", (0, 0, 1, 0.5, 1, 1, 1)),
        ("ab", "axb", (0, 1, 1, 1, 2 / 3, 1, 0.8)),
        ("aa", "a", (0, 0, 0, 0.5, 1, 0.5, 2 / 3)),
        ("a", "aa", (0, 1, 1, 1, 0.5, 1, 2 / 3)),
        ("abc", "cab", (0, 0, 1, 2 / 3, 1, 1, 1)),
    ],
)
def test_the_value_of_every_mode(wanted: str, made: str, values: tuple[float, ...]) -> None:
    for mode, value in zip(MODES, values, strict=True):
        found = score(called(list(made)), wants(list(wanted)), mode=mode)
        assert found.value == pytest.approx(value), mode


@pytest.mark.parametrize("mode", MODES)
def test_an_extra_call_scores_zero_in_every_mode_when_none_is_allowed(mode: str) -> None:
    extra = score(called(["a", "b"]), wants(["a"]), mode=mode, allow_extra=False)
    assert (extra.value, extra.status) == (0, "failed")
    assert "not expected `b`" in extra.reason
    assert score(called(["a"]), wants(["a"]), mode=mode, allow_extra=False).value == 1


def test_the_score_is_the_mean_over_the_turns_that_state_calls() -> None:
    found = score(called(["a"], ["x"], ["y"]), wants(["a"], None, ["b"]), threshold=0.5)
    assert (found.value, found.status) == (0.5, "passed")
    assert [row["turn"] for row in found.details["turns"]] == [1, 3]
    assert found.reason.startswith("turn 3:")


def test_an_expectation_of_no_calls_counts() -> None:
    assert score(called(["a"]), wants([]), mode="exact").status == "failed"


@pytest.mark.parametrize("mode", ["in_order", "any_order", "partial", "recall"])
def test_a_mode_that_allows_calls_where_none_are_expected_says_so(mode: str) -> None:
    found = score(called(["a"], ["b", "a"]), wants(["a"], []), mode=mode)
    hint = (
        f"turn 2 expects no calls, and `b` was called: `{mode}` allows that, `mode: exact` or "
        "`allow_extra: false` does not"
    )
    assert (found.status, found.details["fix"]) == ("passed", hint)
    assert found.reason == f"{mode}: all 2 turns match; {hint}"
    assert "allow_extra" not in score(called([], ["a"]), wants([], ["a"]), mode=mode).reason


@pytest.mark.parametrize(
    ("turns", "value"), [(("ab", "a"), 1.0), (("ab", "b"), 0.5), (("", "b"), 0.0)]
)
def test_single_tool_looks_at_every_turn_when_the_case_states_no_calls(
    turns: tuple[str, str], value: float
) -> None:
    actual = called(*([*names] for names in turns))
    options = {"mode": "single_tool", "tool": "a"}
    scenario = Case(id="x", turns=[], scenario=Scenario(start="hi", plan="ask"))
    for wanted in (wants(None, None), None, scenario):
        assert score(actual, wanted, **options).value == value


def test_single_tool_looks_only_at_turns_that_state_calls_when_some_do() -> None:
    found = score(called(["a"], []), wants(["whatever"], None), mode="single_tool", tool="a")
    assert found.value == 1


def test_single_tool_does_not_look_at_arguments() -> None:
    assert score(called([a(1)]), None, mode="single_tool", tool="lookup_order").value == 1


def test_the_first_argument_that_differs_is_named() -> None:
    found = score(called([a(2)]), wants([a(1)]))
    assert (
        found.reason
        == 'turn 1: called `lookup_order`; `lookup_order(order_id)`: expected "A-1", got "A-2"'
    )
    (row,) = found.details["turns"]
    assert row["differences"] == [
        {
            "expected": 0,
            "actual": 0,
            "arguments": {"order_id": {"expected": "A-1", "actual": "A-2"}},
        }
    ]
    assert [(one.ids, one.quote) for one in found.evidence] == [
        (["t1c1"], 'lookup_order(order_id="A-2")')
    ]


def test_an_argument_that_one_side_does_not_have_is_named() -> None:
    found = score(called([("f", {"x": 1})]), wants([("f", {"y": 2})]))
    assert found.reason == "turn 1: called `f`; `f(y)`: expected 2, got none (2 arguments differ)"


def test_of_several_calls_the_nearest_one_explains_what_is_missing() -> None:
    made: list[Spec] = [("f", {"x": 9, "y": 9}), ("f", {"x": 1, "y": 9})]
    found = score(called(made), wants([("f", {"x": 1, "y": 2})]))
    assert "`f(y)`: expected 2, got 9" in found.reason


def test_missing_and_extra_calls_and_a_wrong_order_are_distinguished() -> None:
    wanted = wants(["login", "search", "pay"])
    assert "missing `search`" in score(called(["login", "pay"]), wanted).reason
    assert "`login` was called out of order" in (
        score(called(["search", "pay", "login"]), wanted).reason
    )
    extra = score(called(["login", "search", "pay", "drop_db"]), wanted, mode="exact")
    assert (
        extra.reason == "turn 1: called `login`, `search`, `pay`, `drop_db`; not expected `drop_db`"
    )
    nothing = score(called([]), wanted)
    assert nothing.reason == "turn 1: nothing was called; expected `login`, `search`, `pay`"
    assert nothing.evidence[0].ids == ["r1"]


def test_a_missing_call_of_a_tool_that_was_called_is_another_one() -> None:
    reason = score(called(["look"]), wants(["look", "look"])).reason
    assert reason == "turn 1: called `look`; missing another `look`"
    wanted = wants(["look", "look"])
    assert wanted.turns[0].tool_calls
    wanted.turns[0].tool_calls[1].agent = "clerk"
    assert score(called(["look"]), wanted).reason.endswith("missing `look` by `clerk`")


def test_long_lists_are_cut_in_the_reason_and_whole_in_the_details() -> None:
    found = score(called(["x"]), wants([f"tool_{i}" for i in range(30)]))
    assert len(found.reason) < 200
    assert found.details["turns"][0]["missing"] == list(range(30))


def test_a_row_shows_both_sides_and_who_belongs_together() -> None:
    found = score(called([a(7), "pay"]), wants(["pay"]))
    (row,) = found.details["turns"]
    assert row["expected"] == [{"name": "pay"}]
    assert row["actual"][0] == {
        "id": "t1c1",
        "name": "lookup_order",
        "arguments": {"order_id": "A-7"},
        "agent": "helper",
    }
    assert (row["matched"], row["missing"], row["extra"]) == ([[0, 1]], [], [0])


def test_the_order_of_time_counts_and_not_that_of_runs() -> None:
    actual = called(["late"])
    actual.turns[0].runs[0].steps = [call("c1", "late", at=20.0)]
    actual.turns[0].runs.append(
        AgentRun(id="r2", agent="other", steps=[call("c2", "early", at=10.0)])
    )
    assert score(actual, wants(["early", "late"]), mode="exact").status == "passed"


def delegated() -> Trace:
    """A router that delegates to a clerk, which calls one tool; the router calls another."""
    actual = called(["note"])
    turn = actual.turns[0]
    turn.runs[0].steps.append(call("c9", ("clerk", {}), dispatch="d1"))
    turn.dispatches.append(dispatch("clerk", from_run="r1", runs=["r2"]))
    turn.runs.append(run("clerk", call("c3", "lookup"), id="r2", started_by=["d1"]))
    return actual


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        ({}, ["note", "clerk"]),
        ({"dispatch_calls": "exclude"}, ["note"]),
        ({"agents": "all"}, ["note", "clerk", "lookup"]),
        ({"agents": "clerk"}, ["lookup"]),
        ({"agents": "bookkeeper"}, ["lookup"]),
        ({"agents": "nobody"}, []),
    ],
)
def test_which_calls_are_examined(options: dict[str, str], calls: list[Spec]) -> None:
    actual = delegated()
    actual.agents = {"clerk": AgentCard(aliases=["the_clerk"])}
    names = {"the_clerk": "bookkeeper"}
    found = score(actual, wants(calls), mode="exact", agent_names=names, **options)
    assert found.status == "passed", found.reason


def test_excluded_hand_offs_are_not_expected_either() -> None:
    wanted = wants(["note", "clerk", ("transfer_to_agent", {"agent_name": "clerk"})])
    found = score(delegated(), wanted, mode="exact", dispatch_calls="exclude")
    assert found.status == "passed"


def test_an_expected_call_may_be_that_of_any_agent_and_a_delegates_is_never_too_many() -> None:
    assert score(delegated(), wants(["lookup"])).status == "passed"
    assert score(delegated(), wants(["note", "clerk", "lookup"]), mode="exact").status == "passed"
    assert score(delegated(), wants(["note", "clerk"]), allow_extra=False).status == "passed"
    assert score(delegated(), wants(["lookup"]), mode="single_tool", tool="lookup").value == 1
    wanted = wants(["lookup"])
    assert wanted.turns[0].tool_calls
    wanted.turns[0].tool_calls[0].agent = "clerk"
    assert score(delegated(), wanted).status == "passed"
    wanted.turns[0].tool_calls[0].agent = "router"
    assert score(delegated(), wanted).status == "failed"


def test_the_reason_names_the_calls_of_a_delegate_whose_tools_are_expected() -> None:
    found = score(delegated(), wants(["lookup", "price"]), mode="exact", dispatch_calls="exclude")
    assert found.status == "failed"
    assert "lookup" in found.reason.partition(";")[0]
    assert "missing `price`" in found.reason


def test_the_reason_names_calls_of_delegates_if_an_expected_tool_is_missing() -> None:
    found = score(delegated(), wants(["price"]))
    assert found.reason == (
        "turn 1: called `note`, `clerk`; `clerk` called `lookup`; missing `price`"
    )
    actual = delegated()
    actual.turns[0].runs[0].steps = actual.turns[0].runs[0].steps[-1:]
    found = score(actual, wants(["price"]), dispatch_calls="exclude")
    assert found.reason == "turn 1: `clerk` called `lookup`; expected `price`"


def test_a_delegate_whose_calls_are_not_recorded_may_have_made_one() -> None:
    actual = delegated()
    actual.turns[0].runs[1].unknown = ["steps.tool_call"]
    found = score(actual, wants(["search"]))
    assert (found.status, "did not record the steps of `clerk`" in found.reason) == (
        "skipped",
        True,
    )
    assert score(actual, wants(["note"])).status == "passed"
    actual.agents = {"clerk": AgentCard(tools=["lookup"])}
    assert score(actual, wants(["search"])).status == "failed"


def test_a_delegates_call_counts_although_the_call_that_handed_over_is_not_recorded() -> None:
    actual = delegated()
    actual.turns[0].runs[0].steps.pop()
    actual.turns[0].dispatches[0].unknown = ["call"]
    assert score(actual, wants(["lookup"])).status == "passed"
    found = score(actual, wants(["lookup", "clerk"]))
    assert found.status == "skipped"
    assert "the call that handed over to `clerk` is not recorded" in found.reason


def test_a_call_of_another_agent_than_the_one_that_is_examined_is_named() -> None:
    found = score(delegated(), wants(["note"]), agents="clerk")
    assert found.details["fix"] == (
        "`helper`, whose calls are not compared, called `note`: set `agents: all`"
    )
    assert "fix" not in score(delegated(), wants(["search"]), agents="clerk").details


def test_a_stated_agent_has_to_be_the_one_that_called() -> None:
    wanted = wants(["lookup"])
    assert wanted.turns[0].tool_calls
    wanted.turns[0].tool_calls[0].agent = "clerk"
    assert score(delegated(), wanted, agents="all").status == "passed"
    found = score(called(["lookup"]), wanted)
    assert found.reason == (
        "turn 1: called `lookup`; `lookup`: expected from `clerk`, called by `helper`"
    )
    assert found.details["turns"][0]["differences"][0]["agent"] == {
        "expected": "clerk",
        "actual": "helper",
    }


def test_failed_and_refused_calls_are_calls() -> None:
    actual = called([])
    steps = [call("c1", "a", status="failed"), call("c2", "b", status="refused")]
    actual.turns[0].runs[0].steps = [*steps]
    assert score(actual, wants(["a", "b"]), mode="exact").status == "passed"


@pytest.mark.parametrize("wanted", [None, wants(None), wants()])
def test_without_an_expectation_it_is_skipped(wanted: Case | None) -> None:
    found = score(called(["a"]), wanted)
    assert found.status == "skipped"
    assert "no expectation" in found.reason


def test_what_the_source_did_not_record_is_skipped_and_never_empty() -> None:
    for part, name in (("run", "steps"), ("turn", "runs")):
        actual = called([])
        turn = actual.turns[0]
        (turn if part == "turn" else turn.runs[0]).unknown.append(name)
        found = score(actual, wants([]), mode="exact")
        assert found.status == "skipped"
        assert "record" in found.reason


def test_unknown_arguments_matter_only_where_they_are_compared() -> None:
    actual = called(["a", "b"])
    step = actual.turns[0].runs[0].steps[0]
    assert isinstance(step, ToolCall)
    step.unknown.append("arguments")
    assert score(actual, wants([("a", {"x": 1})])).status == "skipped"
    assert score(actual, wants([("b", {})])).status == "passed"
    assert score(actual, wants(["a"])).status == "passed"
    assert score(actual, wants([("a", {"x": 1})]), arguments="ignore").status == "passed"


def test_an_unknown_agent_matters_only_where_it_is_compared() -> None:
    actual = called(["a"])
    actual.turns[0].runs[0].unknown.append("agent")
    wanted = wants(["a"])
    assert score(actual, wanted).status == "passed"
    assert score(actual, wanted, agents="helper").status == "skipped"
    assert wanted.turns[0].tool_calls
    wanted.turns[0].tool_calls[0].agent = "helper"
    assert score(actual, wanted).status == "skipped"


def test_turns_that_broke_or_were_not_played_are_errors() -> None:
    assert score(called(["a"]), wants(["a"], ["b"])).status == "error"
    actual = called(["a"])
    actual.turns[0].error, actual.turns[0].status = "quota", "failed"
    assert score(actual, wants(["a"])).status == "error"
    assert score(actual, None, mode="single_tool", tool="a").status == "error"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "single_tool"}, "needs `tool`"),
        ({"tool": "a"}, "`tool` is only for the mode single_tool"),
        ({"mode": "anyorder"}, "did you mean `any_order`"),
        ({"threshold": 1.5}, "<= 1"),
        ({"sequence_match_type": "exact"}, "unknown key"),
    ],
)
def test_a_wrong_option_is_refused_with_what_was_meant(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        ToolCalls(**options)
    assert said in str(caught.value)
