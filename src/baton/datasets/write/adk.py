"""Cases as an eval set of ADK."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from baton.model import Case, CaseRubric, ExpectedToolCall, ExpectedTurn

from .eval_set import (
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
from .values import placed, stated

APP, USER = "app", "user"
"""Names where a session has none: ADK runs no session without."""


def _case(case: Case, blobs: Blobs) -> dict[str, Any]:
    scenario = case.scenario
    plan = scenario and {
        "starting_prompt": scenario.start,
        "conversation_plan": scenario.plan,
    }
    turns = [_turn(turn, number, blobs) for number, turn in enumerate(case.turns, 1)]
    return {
        "eval_id": case.id,
        **({"conversation_scenario": plan} if plan else {"conversation": turns}),
        **stated(
            {
                "session_input": _session(case),
                "rubrics": _rubrics(case.rubrics) or None,
                "final_session_state": case.final_state or None,
            }
        ),
        **case_extras(case),
    }


def _session(case: Case) -> dict[str, Any] | None:
    session = case.session
    if not (session.app or session.user or session.id or case.state):
        return None
    return {
        "app_name": session.app or APP,
        "user_id": session.user or USER,
        **stated({"session_id": session.id}),
        "state": case.state,
    }


def _turn(turn: ExpectedTurn, number: int, blobs: Blobs) -> dict[str, Any]:
    return {
        "invocation_id": f"turn-{number}",
        "user_content": user_content(turn.input, blobs),
        **stated(
            {
                "final_response": answer(turn.response),
                "intermediate_data": _events(turn) or _data(turn) or None,
                "rubrics": None if turn.rubrics is None else _rubrics(turn.rubrics),
            }
        ),
    }


def _events(turn: ExpectedTurn) -> dict[str, Any] | None:
    """Write calls with who made them, which only events tell; they hold no visits."""
    chain, calls = _chain(turn), turn.tool_calls
    if chain is None or not calls or turn.interactions or "user" in {c.agent for c in calls}:
        return None
    owners = [call.agent for call in calls if call.agent]
    places = placed(chain, owners) if len(owners) == len(calls) else None
    if places is None:
        return None
    return {
        "invocation_events": [
            {
                "author": agent,
                "content": {
                    "parts": [{"function_call": _call(calls[n])} for n in found],
                    "role": "model",
                },
            }
            for agent, found in zip(chain, places, strict=True)
        ]
    }


def _data(turn: ExpectedTurn) -> dict[str, Any]:
    calls = turn.tool_calls
    responses = _responses(turn)
    if calls is not None and not responses:
        calls = nameable(calls)
    return stated(
        {
            "tool_uses": None if calls is None else [_call(call) for call in calls],
            "intermediate_responses": responses,
        }
    )


def _responses(turn: ExpectedTurn) -> list[Any] | None:
    """State agents as authors, with what they say where the visits follow the chain."""
    found = by_agent(turn, _chain(turn))
    if found is None:
        return None
    pairs: list[Any] = []
    for agent, visits in found:
        if all(visit.agent == "user" for visit in visits):
            pairs.append(pair(agent))
        pairs += [pair(visit.agent, visit.says) for visit in visits]
    return pairs


def _chain(turn: ExpectedTurn) -> list[str] | None:
    """Return the agents where authors can state them."""
    chain = plain_chain(turn)
    if chain is None or "user" in chain or any(a == b for a, b in pairwise(chain)):
        return None
    return chain


def _call(call: ExpectedToolCall) -> dict[str, Any]:
    return stated({"name": call.name, "args": call.arguments})


def _rubrics(rubrics: Sequence[CaseRubric]) -> list[dict[str, Any]]:
    return [
        {
            "rubric_id": f"rubric-{number}" if rubric.id is None else rubric.id,
            "rubric_content": {"text_property": rubric.text},
            **stated({"type": rubric.type}),
        }
        for number, rubric in enumerate(rubrics, 1)
    ]


_NO_BYTES = "a message is text and files: bytes that are not kept, and data, cannot be written"
ADK = Writer(
    case=_case,
    file=whole_set,
    reasons={
        "turns": "a conversation has either turns or a plan for a simulated user",
        "turns.input": _NO_BYTES,
        "+turns.input": _NO_BYTES,
        "turns.new_session": "a case is played in one session",
        "turns.restart": "nothing is restarted during a case",
        "turns.response": "an answer is text: data is written as JSON, attachments are left out",
        "+turns.response": "an answer is text: data is written as JSON",
        "turns.response_contains": "only a whole answer can be stated",
        "turns.response_not_contains": "only a whole answer can be stated",
        "turns.structured": "an answer is text, and has no fields",
        "turns.agents": "agents are stated by who speaks: in one order, and twice in a row is once",
        "+turns.agents": "calls of `transfer_to_agent` state the agents as well",
        "turns.dispatches": "hand-offs are not stated, apart from calls of `transfer_to_agent`",
        "turns.tool_calls": "a call of `transfer_to_agent` needs the agent's name",
        "turns.tool_calls.agent": (
            "who calls is stated by events only: for all calls of a turn, in the order of its "
            "agents, and without visits"
        ),
        "turns.interactions": "what agents say is stated along the chain of agents, and in words",
        "+turns.rubrics.id": "a rubric needs an id",
        "+rubrics.id": "a rubric needs an id",
        "session": "a session without a name has none",
        "+session": "a session needs an app and a user",
        "final_state": "an empty state at the end states nothing",
        "labels": "a case has no labels",
        "tags": "a case has no tags",
    },
    notes={".yaml": "ADK itself reads JSON only", ".yml": "ADK itself reads JSON only"},
)
