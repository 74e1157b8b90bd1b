"""The agent chain of a turn, and the names of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baton.model import AgentCard, Trace, Turn
from baton.model.views import agent_chain, run_names

Record = Callable[[str], Trace]
Find = Callable[[Trace, str], Any]


def test_a_chain_names_the_agent_of_each_run_in_start_order(record: Record) -> None:
    trace = record("claude_two_dispatches")
    assert agent_chain(trace, trace.turns[0]) == ["main", "research-agent", "refactor-agent"]


def test_a_repeated_visit_is_in_the_chain_again(record: Record) -> None:
    trace = record("swarm_revisit_and_ghost")
    assert agent_chain(trace, trace.turns[0]) == ["coder", "reviewer", "coder", "reviewer"]


def test_a_turn_without_runs_has_an_empty_chain(record: Record) -> None:
    assert agent_chain(record("graph_diamond"), Turn(id="turn-9")) == []


def test_a_chain_leaves_out_a_run_whose_agent_was_not_recorded(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "run-1").unknown.append("agent")
    assert agent_chain(trace, trace.turns[0]) == ["research-agent", "refactor-agent"]


def test_a_chain_puts_agents_through_renames(record: Record) -> None:
    trace = record("graph_diamond")
    assert agent_chain(trace, trace.turns[0], renames={"editor": "author"}) == [
        "planner",
        "market_analyst",
        "risk_analyst",
        "author",
    ]


def test_a_chain_uses_a_node_name_that_is_wanted(record: Record) -> None:
    trace = record("graph_diamond")
    assert agent_chain(trace, trace.turns[0], wanted=["market", "report"]) == [
        "planner",
        "market",
        "risk_analyst",
        "report",
    ]


def test_a_chain_prefers_the_name_of_the_agent_when_that_is_wanted_too(record: Record) -> None:
    trace = record("graph_diamond")
    assert agent_chain(trace, trace.turns[0], wanted=["plan", "planner"])[0] == "planner"


def test_a_chain_uses_an_alias_that_is_wanted(record: Record) -> None:
    trace = record("graph_diamond")
    trace.agents["editor"] = AgentCard(aliases=["chief editor"])
    assert agent_chain(trace, trace.turns[0], wanted=["chief editor"])[-1] == "chief editor"


def test_a_chain_finds_what_is_wanted_behind_a_rename(record: Record) -> None:
    trace = record("graph_diamond")
    chain = agent_chain(
        trace, trace.turns[0], renames={"report": "the report"}, wanted=["the report"]
    )
    assert chain[-1] == "the report"


def test_the_names_of_a_run_are_its_agent_node_and_aliases_each_once(
    record: Record, find: Find
) -> None:
    trace = record("graph_diamond")
    trace.agents["editor"] = AgentCard(aliases=["chief editor", "report"])
    assert run_names(trace, find(trace, "run-4")) == ["editor", "report", "chief editor"]


# turn_tree
