"""Cases as Baton's own files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins

from baton.model import AnyOrder, Case, CaseRubric, ExpectedDispatch, ExpectedToolCall, ExpectedTurn

from .common import Blobs, Head, Writer, stated, text_of


def _case(case: Case, _: Blobs) -> dict[str, Any] | None:
    """Write a case in as few words as it needs; one turn alone stands in the case itself."""
    if case.scenario is not None or not case.turns:
        return None
    turns = [_turn(turn) for turn in case.turns]
    first = case.turns[0]
    alone = len(turns) == 1 and not (case.rubrics or first.new_session or first.restart)
    return {
        "id": case.id,
        **(turns[0] if alone else {"turns": turns}),
        **stated(
            {
                "rubrics": None if alone else [_rubric(each) for each in case.rubrics] or None,
                "session": to_builtins(case.session) or None,
                "state": case.state or None,
                "final_state": case.final_state,
                "evaluators": case.evaluators or None,
                "labels": case.labels or None,
                "tags": case.tags or None,
                "metadata": case.metadata or None,
            }
        ),
    }


def _turn(turn: ExpectedTurn) -> dict[str, Any]:
    dispatches, calls = turn.dispatches, turn.tool_calls
    return {
        "input": turn.input.plain(),
        **stated(
            {
                "new_session": turn.new_session or None,
                "restart": turn.restart or None,
                "response": text_of(turn.response),
                "response_contains": turn.response_contains,
                "response_not_contains": turn.response_not_contains,
                "structured": turn.structured,
                "agents": _chain(turn.agents or ()) or None,
                "dispatches": None if dispatches is None else [_dispatch(d) for d in dispatches],
                "tools": None if calls is None else [_tool(call) for call in calls],
                "interactions": None if (v := turn.interactions) is None else to_builtins(v),
                "rubrics": None if (r := turn.rubrics) is None else [_rubric(each) for each in r],
            }
        ),
    }


def _chain(agents: Sequence[str | AnyOrder]) -> list[str | dict[str, Any]]:
    """Write a chain; one agent in any order is that agent, and none is nobody."""
    chain: list[str | dict[str, Any]] = []
    for stage in agents:
        if isinstance(stage, str):
            chain.append(stage)
        elif len(stage.any_order) > 1:
            chain.append({"any_order": stage.any_order})
        else:
            chain += stage.any_order
    return chain


def _dispatch(dispatch: ExpectedDispatch) -> str | dict[str, Any]:
    fields: dict[str, Any] = to_builtins(dispatch)
    return dispatch.to if fields.keys() == {"to"} else fields


def _tool(call: ExpectedToolCall) -> str | dict[str, Any]:
    fields: dict[str, Any] = to_builtins(call)
    return call.name if fields.keys() == {"name"} else fields


def _rubric(rubric: CaseRubric) -> str | dict[str, Any]:
    fields: dict[str, Any] = to_builtins(rubric)
    return rubric.text if fields.keys() == {"text"} else fields


def _file(head: Head, cases: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": head.name, **stated({"description": head.description}), "cases": cases}


_TEXT_ONLY = "a message is text here: data is written as JSON, attachments are left out"
OWN = Writer(
    case=_case,
    file=_file,
    reasons={
        "scenario": "a simulated user has no place here: the case is left out",
        "turns.input": _TEXT_ONLY,
        "+turns.input": _TEXT_ONLY,
        "turns.response": _TEXT_ONLY,
        "+turns.response": _TEXT_ONLY,
        "turns.agents": "a chain names one agent at least, and two where the order is open",
    },
    notes={},
)
