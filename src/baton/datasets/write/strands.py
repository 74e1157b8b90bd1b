"""Cases as an experiment of Strands' evaluation SDK.

The accelerator of AWS takes the same cases as a bare list; ``state`` is its own.
"""

from __future__ import annotations

from typing import Any

import msgspec

from baton.model import Case, Content, ExpectedToolCall, ExpectedTurn, ExpectedVisit

from .common import Blobs, Head, Writer, stated


def _case(case: Case, _: Blobs) -> dict[str, Any] | None:
    """Write the first message of a case, and what should come of it."""
    if case.scenario is not None or not case.turns:
        return None
    turn, ends = case.turns[0], len(case.turns) == 1
    visits = _visits(turn)
    state = msgspec.json.encode(case.state).decode() if case.state else None
    return {
        "name": case.id,
        "input": _input(turn.input),
        **stated(
            {
                "expected_output": _output(turn),
                "expected_assertion": turn.rubrics[0].text if turn.rubrics else None,
                "expected_trajectory": _chain(turn) if visits else _calls(turn.tool_calls or ()),
                "expected_interactions": [_visit(each) for each in visits] or None,
                "expected_environment_state": _states(case.final_state) if ends else None,
                "state": state,
                "metadata": case.metadata or None,
            }
        ),
    }


def _input(content: Content) -> Any:
    return content.data if content.text is None and content.data is not None else content.plain()


def _output(turn: ExpectedTurn) -> Any:
    """State the fields of an answer, or else its text."""
    if turn.structured is not None or turn.response is None:
        return turn.structured
    if turn.response.text is None and isinstance(turn.response.data, dict):
        return None  # would be read as fields that the case does not state
    return _input(turn.response)


def _visits(turn: ExpectedTurn) -> list[ExpectedVisit]:
    """Return the visits to state; without any, a trajectory would be taken for tools."""
    return turn.interactions or [ExpectedVisit(agent=agent) for agent in _chain(turn) or ()]


def _visit(visit: ExpectedVisit) -> dict[str, Any]:
    return stated(
        {"node_name": visit.agent, "dependencies": visit.after, "messages": visit.says or None}
    )


def _chain(turn: ExpectedTurn) -> list[str] | None:
    names = [stage for stage in turn.agents or () if isinstance(stage, str)]
    return names if names and len(names) == len(turn.agents or ()) else None


def _calls(calls: list[ExpectedToolCall] | tuple[()]) -> list[Any] | None:
    return [
        call.name if call.arguments is None else {"name": call.name, "input": call.arguments}
        for call in calls
    ] or None


def _states(state: dict[str, Any] | None) -> list[dict[str, Any]] | None:
    if state is None:
        return None
    return [{"name": name, "state": value} for name, value in state.items()]


def _file(_: Head, cases: list[dict[str, Any]]) -> dict[str, Any]:
    return {"cases": cases, "evaluators": []}


_TEXT = "a message is one text, or else data; attachments are left out"
_BREAK = "a text loses the line break at its end"
STRANDS = Writer(
    case=_case,
    file=_file,
    reasons={
        "id": "a case has a name",
        "scenario": "a simulated user has no place here: the case is left out",
        "turns": "a case is one message of the user: later turns are left out",
        "turns.input": _TEXT,
        "+turns.input": _TEXT,
        "turns.input.text": _BREAK,
        "turns.new_session": "a case is played in one session",
        "turns.restart": "nothing is restarted during a case",
        "turns.response": (
            "one answer is stated: fields before a text, a text that is a JSON object as fields, "
            "and no attachments"
        ),
        "turns.response.text": _BREAK,
        "+turns.structured": "a text that is a JSON object states fields",
        "turns.response_contains": "only a whole answer can be stated",
        "turns.response_not_contains": "only a whole answer can be stated",
        "turns.agents": "a trajectory names agents in one order",
        "+turns.agents": "a trajectory of names that are all nodes of the file names agents",
        "turns.dispatches": "hand-offs are not stated",
        "turns.tool_calls": (
            "a trajectory names agents or tools, not both, and never that there are none"
        ),
        "turns.interactions": "there is one visit at least, and none says nothing",
        "+turns.interactions": (
            "the agents stand as visits, too: without any, a trajectory is taken for tools"
        ),
        "turns.rubrics": "one rubric is stated, as the assertion",
        "+turns.rubrics": "a rubric is an assertion",
        "rubrics": "rubrics of a whole conversation are not stated",
        "session": "the session is not stated",
        "final_state": "the state after a single turn is stated, not that after several",
        "evaluators": "a case has no options for evaluators",
        "labels": "a case has no labels",
        "tags": "a case has no tags",
    },
    notes={
        ".yaml": "the SDK itself reads JSON only",
        ".yml": "the SDK itself reads JSON only",
    },
)
