"""Cases as an eval set of judge-llm."""

from __future__ import annotations

from typing import Any

from baton.model import Case, ExpectedTurn

from .eval_set import (
    BEGINNING,
    answer,
    by_agent,
    case_extras,
    nameable,
    pair,
    plain_chain,
    user_content,
    whole_set,
)
from .target import Blobs, Writer
from .values import stated


def _case(case: Case, blobs: Blobs) -> dict[str, Any] | None:
    if case.scenario is not None:
        return None
    session = case.session
    return {
        "eval_id": case.id,
        "creation_timestamp": BEGINNING,
        "session_input": {
            "app_name": session.app or "",
            "user_id": session.user or "",
            **stated({"session_id": session.id}),
            "state": case.state,
        },
        "conversation": [_turn(turn, n, blobs) for n, turn in enumerate(case.turns, 1)],
        **case_extras(case),
    }


def _turn(turn: ExpectedTurn, number: int, blobs: Blobs) -> dict[str, Any]:
    return {
        "invocation_id": f"turn-{number}",
        "creation_timestamp": BEGINNING,
        "user_content": user_content(turn.input, blobs),
        "final_response": answer(turn.response) or {"parts": [], "role": "model"},
        **stated({"intermediate_data": _data(turn) or None}),
    }


def _data(turn: ExpectedTurn) -> dict[str, Any]:
    """Write calls, each with the id and the arguments that judge-llm cannot do without."""
    calls = turn.tool_calls
    responses = _responses(turn)
    if calls is not None and not responses:
        calls = nameable(calls)
    uses = [
        {"id": f"call-{n}", "name": call.name, "args": call.arguments or {}}
        for n, call in enumerate(calls or (), 1)
    ]
    return stated(
        {
            "tool_uses": None if calls is None else uses,
            "intermediate_responses": responses,
        }
    )


def _responses(turn: ExpectedTurn) -> list[Any] | None:
    """State agents by name; what they say follows as ADK writes it, which judge-llm passes over."""
    found = by_agent(turn, plain_chain(turn))
    if found is None:
        return None
    records: list[Any] = []
    for agent, visits in found:
        records.append({"agent_name": agent})
        records += [pair(visit.agent, visit.says) for visit in visits]
    return records


_NO_BYTES = "a message is text and files: bytes that are not kept, and data, cannot be written"
JUDGE_LLM = Writer(
    case=_case,
    file=whole_set,
    reasons={
        "scenario": "a simulated user has no place here: the case is left out",
        "turns.input": _NO_BYTES,
        "+turns.input": _NO_BYTES,
        "turns.new_session": "a case is played in one session",
        "turns.restart": "nothing is restarted during a case",
        "turns.response": "an answer is text: data is written as JSON, attachments are left out",
        "+turns.response": "an answer is text: data is written as JSON",
        "turns.response_contains": "only a whole answer can be stated",
        "turns.response_not_contains": "only a whole answer can be stated",
        "turns.structured": "an answer is text, and has no fields",
        "turns.agents": "agents are stated by name, in one order",
        "+turns.agents": "calls of `transfer_to_agent` state the agents as well",
        "turns.dispatches": "hand-offs are not stated, apart from calls of `transfer_to_agent`",
        "turns.tool_calls": "a call of `transfer_to_agent` needs the agent's name",
        "turns.tool_calls.agent": "who makes a call is not stated",
        "+turns.tool_calls.arguments": "a call needs arguments: `{}`, which it takes for any",
        "turns.interactions": "what agents say is stated along the chain of agents, and in words",
        "turns.rubrics": "rubrics are not known",
        "rubrics": "rubrics are not known",
        "session": "a session without a name has none",
        "final_state": "the state at the end is not stated",
        "labels": "a case has no labels",
        "tags": "a case has no tags",
    },
    notes={},
)
