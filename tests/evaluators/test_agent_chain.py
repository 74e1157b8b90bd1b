"""`agent_chain`: modes, options, and what it does when it cannot know."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from baton.evaluators import AgentChain
from baton.model import (
    AgentCard,
    Case,
    InputError,
    Trace,
)
from baton.testing import build, verdict
from baton.testing.build import expect, run, turn


def chained(*chains: list[str], **fields: Any) -> Trace:
    """A turn for each chain, with a run for each agent in it."""
    return build.trace(*(turn(*map(run, chain)) for chain in chains), **fields)


def wants(*chains: list[str] | None) -> Case:
    return build.case(*(expect(agents=chain) for chain in chains))


score = partial(verdict, "agent_chain")


ROUTER = ["router", "search_agent", "response_agent"]
PAIR = ["search_agent", "response_agent"]


@pytest.mark.parametrize(
    ("mode", "expected", "actual", "value", "status"),
    [
        ("exact", ROUTER, ROUTER, 1.0, "passed"),
        ("exact", ROUTER, ["router", "response_agent", "search_agent"], 0.0, "failed"),
        ("exact", ROUTER, ["router", "search_agent"], 0.0, "failed"),
        ("subset", PAIR, ["router", "search_agent", "helper", "response_agent"], 1.0, "passed"),
        ("subset", PAIR, ["response_agent", "search_agent"], 0.5, "failed"),
        ("contains", PAIR, ["response_agent", "router", "search_agent"], 1.0, "passed"),
        ("contains", PAIR, ["router", "helper"], 0.0, "failed"),
        ("flexible", PAIR, ["search_agent", "helper"], 0.5, "failed"),
        ("flexible", PAIR, ["completely_different"], 0.0, "failed"),
    ],
)
def test_the_examples_of_every_mode(
    mode: str, expected: list[str], actual: list[str], value: float, status: str
) -> None:
    found = score(chained(actual), wants(expected), sequence_match_type=mode)
    assert (found.value, found.status) == (value, status)


def test_half_of_the_agents_pass_when_half_is_enough() -> None:
    options = {"sequence_match_type": "flexible", "min_match_ratio": 0.5}
    assert score(chained(["search_agent", "helper"]), wants(PAIR), **options).status == "passed"


def test_subset_takes_the_longest_common_subsequence_and_not_the_first_fit() -> None:
    found = score(chained(["c", "a", "b"]), wants(["a", "b", "c"]), sequence_match_type="subset")
    assert found.value == pytest.approx(2 / 3)


def test_repeats_count_in_order_modes_and_not_in_sets() -> None:
    values = {
        mode: score(chained(["a", "b"]), wants(["a", "b", "a"]), sequence_match_type=mode).value
        for mode in ("exact", "subset", "contains")
    }
    assert values == {"exact": 0, "subset": pytest.approx(2 / 3), "contains": 1}


@pytest.mark.parametrize("mode", ["exact", "subset", "contains", "flexible"])
def test_a_refused_extra_agent_scores_zero_in_every_mode(mode: str) -> None:
    found = score(
        chained(["a", "b", "c"]),
        wants(["a", "b"]),
        sequence_match_type=mode,
        allow_extra_agents=False,
    )
    assert (found.value, found.status) == (0.0, "failed")


def test_the_score_is_the_mean_over_the_turns_that_state_agents() -> None:
    found = score(chained(["a"], ["x"], ["b"]), wants(["a"], None, ["b", "c"]))
    assert found.value == pytest.approx(0.75)
    assert found.status == "failed"
    assert found.details["failed_turns"] == [2]


def test_four_of_five_agents_reach_the_default_ratio_and_the_missing_one_stays_visible() -> None:
    found = score(chained(list("abcd")), wants(list("abcde")))
    assert found.status == "passed"
    assert found.details["all_expected_present"] is False
    assert found.details["agents_missing"] == ["e"]


def test_a_mean_that_misses_the_ratio_by_rounding_alone_passes() -> None:
    found = score(chained(["a"], ["a"], ["x"]), wants(["a"], ["a"], ["a"]), min_match_ratio=2 / 3)
    assert found.status == "passed"


def test_the_agents_of_a_sample_result() -> None:
    expected = ["search_agent", "booking_agent"]
    actual = ["router", "search_agent", "booking_agent"]
    found = score(chained(actual), wants(expected))
    assert found.details == {
        "sequence_match_type": "contains",
        "allow_extra_agents": True,
        "min_match_ratio": 0.8,
        "average_score": 1.0,
        "all_expected_present": True,
        "all_expected_agents": expected,
        "all_actual_agents": actual,
        "agents_missing": [],
        "agents_extra": ["router"],
        "failed_turns": [],
        "invocation_results": [
            {
                "invocation": 0,
                "expected_agents": expected,
                "actual_agents": actual,
                "score": 1.0,
                "match_details": {
                    "all_expected_present": True,
                    "missing_agents": [],
                    "extra_agents": ["router"],
                },
            }
        ],
    }


def test_a_planned_turn_that_was_not_played_is_an_error() -> None:
    found = score(chained(["a"]), wants(["a"], ["b"]))
    assert (found.status, found.value) == ("error", None)
    assert found.reason == "1 of 2 planned turns were played"


@pytest.mark.parametrize("expected", [None, wants(None, None), wants()])
def test_without_an_expectation_it_is_skipped(expected: Case | None) -> None:
    found = score(chained(["a"], ["b"]), expected)
    assert found.status == "skipped"
    assert "no expectation" in found.reason


def test_a_trace_that_names_no_agent_is_skipped() -> None:
    actual = chained(["main"])
    actual.turns[0].runs[0].unknown = ["agent"]
    found = score(actual, wants(["router"]))
    assert found.status == "skipped"
    assert "names no agent" in found.reason


def test_an_unnamed_opener_is_left_out_of_the_chain() -> None:
    actual = chained(["main", "search_agent"])
    actual.turns[0].runs[0].unknown = ["agent"]
    assert score(actual, wants(["search_agent"]), sequence_match_type="exact").status == "passed"


@pytest.mark.parametrize("ran", [[], ["router"]])
def test_agents_missing_from_a_turn_that_broke_are_an_error_and_no_zero(ran: list[str]) -> None:
    actual = chained(ran)
    actual.turns[0].status, actual.turns[0].error = "failed", "quota"
    found = score(actual, wants(["router", "billing"]))
    assert (found.status, found.value) == ("error", None)
    assert "; the turn failed: quota" in found.reason
    assert found.details["invocation_results"][0]["actual_agents"] == ran


def test_agents_that_ran_before_a_turn_broke_did_run() -> None:
    actual = chained(["router", "billing"])
    actual.turns[0].status, actual.turns[0].error = "failed", "quota"
    assert score(actual, wants(["router", "billing"])).status == "passed"


@pytest.mark.parametrize(
    "options",
    [{"sequence_match_type": "exact"}, {"allow_extra_agents": False}],
)
def test_a_left_out_router_is_what_would_mend_it(options: dict[str, Any]) -> None:
    found = score(chained(["router", "billing"]), wants(["billing"]), **options)
    assert found.status == "failed"
    assert found.details["fix"].startswith("`router` opened the turn")


OPTION = re.compile(r"`(sequence_match_type|allow_extra_agents): (\w+)`")
CHAINS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4)


@given(CHAINS, CHAINS, st.booleans(), st.sampled_from(["exact", "subset", "contains"]))
@example(["b"], ["a", "b"], False, "exact")
@example(["a", "b"], ["a", "c", "b"], False, "exact")
@example(["a", "b"], ["b", "a"], True, "exact")
def test_who_follows_the_advice_passes(
    expected: list[str], actual: list[str], extra: bool, mode: str
) -> None:
    options: dict[str, Any] = {"sequence_match_type": mode, "allow_extra_agents": extra}
    options["min_match_ratio"] = 1.0
    fix = score(chained(actual), wants(expected), **options).details.get("fix", "")
    looser = {
        name: value == "true" if name == "allow_extra_agents" else value
        for name, value in OPTION.findall(fix)
    }
    if looser:
        assert score(chained(actual), wants(expected), **options | looser).status == "passed", fix
    if "put it first" in fix:
        assert score(chained(actual), wants([actual[0], *expected]), **options).status == "passed"


def test_a_chain_that_is_strict_in_two_ways_has_to_be_loosened_in_both() -> None:
    strict: dict[str, Any] = {"sequence_match_type": "exact", "allow_extra_agents": False}
    found = score(chained(["router", "billing"]), wants(["billing"]), **strict)
    assert found.details["fix"] == (
        "`router` opened the turn, and it counts: put it first in the expected agents, or set "
        "`allow_extra_agents: true` and `sequence_match_type: subset`"
    )


def test_a_name_in_another_case_is_asked_about() -> None:
    found = score(chained(["Billing_Agent"]), wants(["billing_agent"]))
    assert "misspelt" in found.details["fix"]


def test_node_names_aliases_and_renames_count_as_the_name() -> None:
    actual = chained(["main", "a1b2", "writer"])
    actual.turns[0].runs[1].node = "researcher"
    actual.agents = {"writer": AgentCard(aliases=["author"])}
    wanted = wants(["supervisor", "researcher", "author"])
    found = score(actual, wanted, sequence_match_type="exact", agent_names={"main": "supervisor"})
    assert found.status == "passed"


def test_evidence_names_the_runs_of_the_wrong_turn() -> None:
    found = score(chained(["a"], ["x", "y"]), wants(["a"], ["b"]))
    assert [evidence.ids for evidence in found.evidence] == [["t2.r1", "r2"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sequence_match_type": "exakt"}, "did you mean `exact`?"),
        ({"sequence_match_typ": "exact"}, "did you mean `sequence_match_type`?"),
        ({"min_match_ratio": "0.8"}, "expected a number"),
        ({"min_match_ratio": 1.5}, "<= 1"),
        ({"allow_extra_agents": 1}, "expected true or false"),
    ],
)
def test_a_wrong_option_is_refused_with_what_was_meant(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        AgentChain(**options)
    assert said in str(caught.value)
