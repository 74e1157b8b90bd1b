"""The proven runs in ``records/`` hold what the record promises."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from baton.model import Dispatch, Said, Trace, integrity_problems
from baton.model.views import agent_chain, dispatch_view

RECORDS = Path(__file__).parent / "records"

CHAINS: dict[str, list[list[str]]] = {
    "adk_agent_tool_inside": [["support_router", "billing_agent", "policy_expert"]],
    "adk_agent_tool_opaque": [["support_router", "billing_agent", "policy_expert"]],
    "adk_approval_resumed": [["support_router", "billing_agent"]],
    "adk_sequential_parallel_loop": [
        ["planner", "researcher_a", "researcher_b", "writer", "critic", "writer", "critic"]
    ],
    "adk_transfer_two_turns": [
        ["support_router", "weather_agent"],
        ["weather_agent", "support_router", "billing_agent"],
    ],
    "claude_background_answer_later": [["main", "research-agent"], ["main"]],
    "claude_continued_agent": [["main", "research-agent", "research-agent"]],
    "claude_dead_child": [["main", "research-agent"]],
    "claude_nested_depth_3": [["main", "release-agent", "validator-agent", "research-agent"]],
    "claude_parallel_same_type": [["main", "research-agent", "research-agent", "validator-agent"]],
    "claude_refused_tool": [["main", "validator-agent"]],
    "claude_two_dispatches": [["main", "research-agent", "refactor-agent"]],
    "claude_unknown_type": [["main", "validator-agent"]],
    "content_off": [["router", "flight_search_agent", "booking_agent"]],
    "delegate_to_workflow": [["desk", "writer", "checker"]],
    "delegate_transfers_on": [["order_agent", "billing_agent", "refund_agent"]],
    "graph_diamond": [["planner", "market_analyst", "risk_analyst", "editor"]],
    "human_handoff": [["travel_agent", "flights_refunder"]],
    "langgraph_supervisor_return": [["supervisor", "research_expert", "supervisor"]],
    "program_two_agents": [["flight_finder", "seat_agent"]],
    "structured_output": [["invoice_agent", "sum_checker"]],
    "swarm_revisit_and_ghost": [["coder", "reviewer", "coder", "reviewer"]],
}

PARALLEL_ANSWER = (
    "Both files compile. Two problems: retry.py swallows OSError, and client.py never uses TIMEOUT."
)
RENAMED = (
    "Renamed retry() to with_retry() in src/retry.py; MAX_ATTEMPTS is still 3, "
    "as the research agent's constraint requires."
)
AFTER: dict[tuple[str, str], list[str]] = {
    ("claude_background_answer_later", "d1"): [
        "The research agent is back: retry() is defined in src/retry.py, line 3."
    ],
    ("claude_continued_agent", "d2"): [
        "retry() is defined in src/retry.py, line 3. No test covers it."
    ],
    ("claude_dead_child", "d1"): [
        "The research agent failed, so I looked myself: the client uses TIMEOUT = 5."
    ],
    ("claude_parallel_same_type", "d1"): [PARALLEL_ANSWER],
    ("claude_parallel_same_type", "d3"): [PARALLEL_ANSWER],
    ("claude_two_dispatches", "d2"): [RENAMED],
    ("delegate_transfers_on", "d1"): ["Order A-100 is cancelled; you get 42.50 dollars back."],
    ("human_handoff", "d2"): [],
    ("langgraph_supervisor_return", "d1"): [],
    ("swarm_revisit_and_ghost", "d1"): ["done"],
    ("swarm_revisit_and_ghost", "d2"): ["There is no tester here.", "done"],
}


def load(name: str) -> Trace:
    """Decode a record as strictly as Baton does."""
    return msgspec.json.decode((RECORDS / f"{name}.json").read_bytes(), type=Trace)


def test_every_record_is_in_the_table_and_the_other_way_round() -> None:
    assert sorted(CHAINS) == sorted(path.stem for path in RECORDS.glob("*.json"))


@pytest.mark.parametrize("name", CHAINS)
def test_a_record_is_consistent(name: str) -> None:
    assert integrity_problems(load(name)) == []


@pytest.mark.parametrize("name", CHAINS)
def test_a_record_round_trips_byte_for_byte(name: str) -> None:
    once = msgspec.json.encode(load(name))
    assert msgspec.json.encode(msgspec.json.decode(once, type=Trace)) == once


@pytest.mark.parametrize("name", CHAINS)
def test_a_record_is_stored_as_baton_writes_it(name: str) -> None:
    """No stray order, no default written out: formatting apart, the file is the encoding."""
    written = msgspec.json.format(msgspec.json.encode(load(name)), indent=2)
    assert written + b"\n" == (RECORDS / f"{name}.json").read_bytes()


@pytest.mark.parametrize(("name", "chains"), CHAINS.items())
def test_a_record_has_its_agent_chains(name: str, chains: list[list[str]]) -> None:
    trace = load(name)
    assert [agent_chain(trace, turn) for turn in trace.turns] == chains


@pytest.mark.parametrize(("name", "dispatch"), AFTER)
def test_what_the_sender_said_after_the_answer(name: str, dispatch: str) -> None:
    trace = load(name)
    view = dispatch_view(trace, find(trace, dispatch))
    said = [step.content.plain() for step in view.after if isinstance(step, Said)]
    assert said == AFTER[name, dispatch]


def find(trace: Trace, id_: str) -> Dispatch:
    """Return the dispatch with this id."""
    return next(d for turn in trace.turns for d in turn.dispatches if d.id == id_)
