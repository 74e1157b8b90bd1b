"""`dispatch_target_known`: targets that are unknown, misspelt or refused, and what proves it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from baton.findings.dispatch_target_known import listed_names, unknown_name
from baton.model import (
    AgentCard,
    HandedOff,
    Trace,
)
from baton.testing import build, verdict
from baton.testing.build import call, dispatch, run, turn


def refused(
    to: str,
    *,
    tool: str = "Agent",
    offered: list[str] | None = None,
    agents: dict[str, AgentCard] | None = None,
    called: dict[str, Any] | None = None,
    **fields: Any,
) -> Trace:
    """A router whose dispatch to ``to`` started nothing."""
    router = run(
        "router",
        call(tool, dispatch="d1", **(called or {})),
        HandedOff(id="h1", dispatch="d1"),
        tools_offered=offered,
        unknown=[] if offered else ["tools_offered"],
    )
    ids: dict[str, Any] = {"from_run": "r1", "from_agent": "router", "call": "c1"}
    made = dispatch(to, **{"status": "refused", **ids, **fields})
    return build.trace(turn(router, made), agents=agents or {})


score = partial(verdict, "dispatch_target_known")


DEFINED = {
    "researcher": AgentCard(description="Looks things up"),
    "writer": AgentCard(description="Writes", aliases=["author"]),
}


def test_a_target_that_the_system_does_not_find_is_unknown() -> None:
    found = score(refused("shipping", error="Agent 'shipping' not found in swarm"))
    assert (found.status, found.value) == ("failed", 0.0)
    assert found.reason == "there is no agent `shipping`"
    assert found.subject == ["d1"]
    assert found.evidence[0].ids == ["d1", "c1"]
    assert found.evidence[0].quote == "Agent 'shipping' not found in swarm"


def test_a_misspelt_target_is_reported_with_the_name_that_was_meant() -> None:
    error = "Agent type 'reasearch-agent' not found. Available agents: writer, research-agent"
    found = score(refused("reasearch-agent", error=error))
    assert found.reason == "there is no agent `reasearch-agent`; the nearest is `research-agent`"
    assert found.details["findings"][0]["kind"] == "misspelt_target"
    assert found.details["findings"][0]["agents"] == ["writer", "research-agent"]


def test_a_hand_over_tool_that_was_never_offered_leads_nowhere() -> None:
    actual = refused(
        "shipping", tool="transfer_to_shipping", offered=["transfer_to_billing"],
        kind="transfer", status="unanswered",
    )  # fmt: skip
    assert score(actual).reason == "there is no agent `shipping`; known: `billing`"


def test_a_hand_over_tool_that_was_offered_proves_its_target() -> None:
    tools = ["transfer_to_billing", "transfer_to_shipping"]
    actual = refused("shipping", tool="transfer_to_shipping", offered=tools, kind="transfer")
    assert score(actual).status == "passed"


def test_definitions_tell_which_agents_there_are() -> None:
    assert score(refused("ghost", agents=DEFINED)).status == "failed"
    assert score(refused("author", agents=DEFINED)).status == "passed"
    assert score(refused("Writer", agents=DEFINED, status="failed")).status == "passed"


def test_definitions_may_be_incomplete_where_nobody_turned_the_hand_off_down() -> None:
    assert score(refused("ghost", agents=DEFINED, status="unanswered")).status == "skipped"
    assert score(refused("resercher", agents=DEFINED, status="unanswered")).status == "failed"


def test_without_definitions_nothing_tells() -> None:
    found = score(refused("ghost", status="unanswered"))
    assert found.status == "skipped"
    assert "`agents:`" in found.reason


def test_an_agent_that_got_to_work_is_known_whatever_the_definitions_say() -> None:
    actual = refused("ghost", agents=DEFINED, status="completed")
    assert score(actual).status == "passed"


def test_a_hand_off_that_a_policy_refused_is_reported_as_such() -> None:
    actual = refused(
        "writer", agents=DEFINED, error="denied by a rule",
        called={"status": "refused", "refused_by": "policy"},
    )  # fmt: skip
    found = score(actual)
    assert found.reason == "a policy refused the dispatch to `writer`: denied by a rule"


def test_a_missing_tool_is_not_a_missing_agent() -> None:
    actual = refused("writer", agents=DEFINED, error="No such tool available: Agent")
    assert score(actual).status == "passed"


def test_agents_go_by_the_names_a_config_gives_them() -> None:
    found = score(
        refused("wrtr", agents={"w": AgentCard(description="Writes")}, error=None),
        agent_names={"w": "wrtr2"},
    )
    assert found.details["findings"][0]["nearest"] == "wrtr2"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Agent type 'compile-agent' not found. Available agents: a, b", "compile-agent"),
        ("ValueError: Transfer target agent 'garage' not found.", "garage"),
        ("ValueError: Agent garage not found in the agent tree.", "garage"),
        ("Error: transfer_to_king is not a valid tool, try one of [transfer_to_queen].", "king"),
        ("Error: tool 'transfer_to_king' not found in any workbench", "king"),
        ("Unknown tool name: 'transfer_to_king'. Available tools: 'a'", "king"),
        ("The file agent.py was not found", None),
        ("I could not find the agent you need in time", None),
    ],
)
def test_texts_of_real_systems_name_what_they_do_not_know(text: str, name: str | None) -> None:
    assert unknown_name(text) == name


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("it must be one of the following options:\n- book keeper\n- clerk", ["book keeper", "clerk"]),
        ("x is not a valid tool, try one of [transfer_to_a, transfer_to_b].", ["a", "b"]),
        ("Unknown tool name: 'x'. Available tools: 'ask', 'find'", ["ask", "find"]),
        ("not found", []),
    ],
)  # fmt: skip
def test_texts_of_real_systems_list_what_they_know(text: str, names: list[str]) -> None:
    assert listed_names(text) == names


def test_the_definition_of_the_tool_lists_the_agents_that_there_are() -> None:
    made = refused("shipping", tool="transfer_to_agent", status="unanswered")
    made.attributes["targets"] = {"router": {"transfer_to_agent": ["billing", "ship_desk"]}}
    found = score(made)
    assert found.status == "failed"
    assert found.reason.startswith("there is no agent `shipping`")
    made.attributes["targets"] = {"router": {"transfer_to_agent": ["billing", "shipping"]}}
    assert score(made).status == "passed"


def test_definitions_that_were_given_prove_it_also_where_all_of_their_agents_ran() -> None:
    made = refused("shipping", agents={"router": AgentCard(description="Routes")})
    assert score(made).status == "skipped"
    made.attributes["defined_agents"] = ["router"]
    found = score(made)
    assert found.status == "failed"
    assert found.reason == "there is no agent `shipping`"


def test_nobody_who_gave_definitions_is_asked_for_them() -> None:
    made = refused("shipping", status="unanswered", agents={"router": AgentCard(description="R")})
    made.attributes["defined_agents"] = ["router"]
    found = score(made)
    assert found.status == "skipped"
    assert "complete the definitions" in found.reason


def test_a_tool_that_is_missing_is_no_missing_agent_where_that_one_ran() -> None:
    error = "Unknown tool: transfer_to_shipping"
    made = refused("shipping", tool="transfer_to_shipping", error=error)
    assert score(made).status == "failed"
    made.turns[0].runs.append(run("shipping", id="r9"))
    found = score(made)
    assert found.status == "passed"
    assert "no tool `transfer_to_shipping`" in found.reason


def test_a_tool_that_was_not_offered_proves_nothing_where_spans_are_missing() -> None:
    made = refused(
        "shipping", tool="transfer_to_shipping", offered=["transfer_to_billing"],
        kind="transfer", status="unanswered",
    )  # fmt: skip
    made.turns[0].runs.append(run("shipping", id="r9"))
    assert score(made).status == "failed"
    made.turns[0].status = "incomplete"
    assert score(made).status in ("skipped", "error")
