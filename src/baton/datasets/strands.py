"""Cases of the Strands evaluation SDK: to cases, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from baton.datasets.stand_in_files import chaos
from baton.datasets.writers import Blobs, Writer, stated
from baton.formats.document import Document, refuse_misspelt
from baton.formats.key_case import ExtraKey
from baton.formats.strands import ExpectedInteraction, StrandsCase
from baton.model import (
    AgentCard,
    Case,
    CaseRubric,
    Content,
    ExpectedToolCall,
    ExpectedTurn,
    ExpectedVisit,
    InputError,
)


class Known:
    """The names that distinguish a trajectory of agents from one of tools."""

    def __init__(self, cards: Mapping[str, AgentCard] | None = None) -> None:
        self.agents: set[str] = set()
        self.tools: set[str] = set()
        self.undecided = 0
        for name, card in (cards or {}).items():
            self.agents |= {name, *card.aliases, *card.sub_agents}
            self.tools |= set(card.tools) if isinstance(card.tools, list) else set()

    def are_agents(self, names: Collection[str]) -> bool:
        """Tell whether all of these are agents, and none is a tool."""
        return bool(self.agents) and set(names) <= self.agents - self.tools

    def add_nodes(self, case: Any) -> None:
        """Add the nodes named by the interactions of a case, which are agents."""
        if not isinstance(case, dict):
            return
        interactions = case.get("expected_interactions", case.get("expectedInteractions"))
        for each in interactions if isinstance(interactions, list) else ():
            if isinstance(each, dict) and isinstance(name := each.get("node_name"), str):
                self.agents.add(name)


def strands_case(document: Document, extra_keys: list[ExtraKey], names: Known) -> Case:
    """Read one case; raises InputError with every fault it has."""
    wire = document.decode(StrandsCase, extra_keys=extra_keys)
    refuse_misspelt(document, extra_keys)
    turn = ExpectedTurn(
        input=_content(wire.input),
        interactions=[
            ExpectedVisit(agent=each.node_name, after=each.dependencies, says=_message_texts(each))
            for each in wire.expected_interactions or ()
        ]
        or None,
    )
    fields = wire.expected_output if isinstance(wire.expected_output, dict) else None
    if isinstance(wire.expected_output, str):  # it may be an object in JSON text
        try:
            fields = msgspec.json.decode(wire.expected_output, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            fields = None
    if fields is not None:
        turn.structured = fields
    elif wire.expected_output not in (None, ""):
        turn.response = _content(wire.expected_output)
    if wire.expected_assertion:
        turn.rubrics = [CaseRubric(text=wire.expected_assertion, type="assertion")]
    if wire.expected_trajectory is not None:
        # A trajectory names the agents that run, or the tools that are called.
        if isinstance(wire.expected_trajectory, dict):
            message = "a recorded session is not an expectation; list the names of tools or nodes"
            raise InputError(document.problem_at(("expected_trajectory",), message))
        calls = []
        for place, step in enumerate(wire.expected_trajectory):
            name = step.get("name") if isinstance(step, dict) else step
            if not isinstance(name, str):
                message = "a step is the name of a tool or node, or an object with `name`"
                raise InputError(document.problem_at(("expected_trajectory", place), message))
            value = step.get("input") if isinstance(step, dict) else None
            calls.append(
                ExpectedToolCall(name=name, arguments=value if isinstance(value, dict) else None)
            )
        called = [call.name for call in calls]
        if turn.interactions or names.are_agents(called):
            turn.agents = called or None
        elif called:
            turn.tool_calls = calls
            names.undecided += not names.agents
    states = wire.expected_environment_state
    if not isinstance(wire.state, str):
        state = wire.state or {}
    elif not wire.state.strip():
        state = {}
    else:
        try:
            state = msgspec.json.decode(wire.state, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            message = 'has to be a JSON object as text, such as "{\\"key\\": 1}"'
            raise InputError(document.problem_at(("state",), message)) from None
    name = wire.name
    if not name:  # its text is its name
        encoded = msgspec.json.encode(document.value(), order="deterministic")
        name = f"case-{hashlib.sha256(encoded).hexdigest()[:8]}"
    return Case(
        id=name,
        turns=[turn],
        state=state,
        final_state=None if states is None else {each.name: each.state for each in states},
        metadata=wire.metadata or {},
        stand_ins=chaos(wire.effects) if wire.effects and wire.effects.tool_effects else None,
    )


def _message_texts(wire: ExpectedInteraction) -> list[str] | None:
    """Return the texts of messages: the SDK writes a list, the accelerator a single text."""
    messages = [wire.messages] if isinstance(wire.messages, str) else wire.messages or []
    texts = [text for message in messages for text in _texts(message)]
    return [text for text in texts if text.strip()] or None


def _texts(message: Any) -> list[str]:
    if isinstance(message, str):
        return [message]
    if isinstance(message, list):
        return [text for item in message for text in _texts(item)]
    if isinstance(message, dict):
        return _texts(message.get("text", message.get("content")))
    return []


def _content(value: Any) -> Content:
    """Remove the last line break of a text: printed answers of Strands end with one."""
    if isinstance(value, str):
        return Content(text=value.removesuffix("\n"))
    return Content(data=value)


def _case_data(case: Case, _: Blobs) -> dict[str, Any] | None:
    """Write the first message of a case, and the expected result."""
    if case.scenario is not None or not case.turns:
        return None
    turn, ends = case.turns[0], len(case.turns) == 1
    # Without any visits, a trajectory would be taken for tools.
    visits = turn.interactions or [ExpectedVisit(agent=agent) for agent in _chain(turn) or ()]
    state = msgspec.json.encode(case.state).decode() if case.state else None
    final = None
    if ends and case.final_state is not None:
        final = [{"name": name, "state": value} for name, value in case.final_state.items()]
    if turn.structured is not None or turn.response is None:
        output = turn.structured
    elif turn.response.text is None and isinstance(turn.response.data, dict):
        output = None  # would be read as fields that the case does not state
    else:
        output = turn.response.value()
    return {
        "name": case.id,
        "input": turn.input.value(),
        **stated(
            {
                "expected_output": output,
                "expected_assertion": turn.rubrics[0].text if turn.rubrics else None,
                "expected_trajectory": _chain(turn)
                if visits
                else (
                    [
                        call.name
                        if call.arguments is None
                        else {"name": call.name, "input": call.arguments}
                        for call in (turn.tool_calls or ())
                    ]
                    or None
                ),
                "expected_interactions": [
                    stated(
                        {
                            "node_name": each.agent,
                            "dependencies": each.after,
                            "messages": each.says or None,
                        }
                    )
                    for each in visits
                ]
                or None,
                "expected_environment_state": final,
                "state": state,
                "metadata": case.metadata or None,
            }
        ),
    }


def _chain(turn: ExpectedTurn) -> list[str] | None:
    names = [stage for stage in turn.agents or () if isinstance(stage, str)]
    return names if names and len(names) == len(turn.agents or ()) else None


_TEXT = "a message is one text, or else data; attachments are left out"
_BREAK = "a text loses the line break at its end"
STRANDS = Writer(
    case=_case_data,
    file=lambda _, cases: {"cases": cases, "evaluators": []},
    reasons={
        "id": "a case has a name",
        "scenario": "a simulated user is not part of this format: the case is left out",
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
        "turns.dispatches": "dispatches are not stated",
        "turns.tool_calls": (
            "a trajectory names agents or tools, not both, and cannot state that there are none"
        ),
        "turns.interactions": "an empty list of visits cannot be written",
        "+turns.interactions": "agents are also written as visits",
        "turns.rubrics": "one rubric is stated, as the assertion",
        "+turns.rubrics": "a rubric is an assertion",
        "rubrics": "rubrics of a whole conversation are not stated",
        "session": "the session is not stated",
        "final_state": "only the state after a single turn is stated, not after several",
        "evaluators": "a case has no options for evaluators",
        "labels": "a case has no labels",
        "stand_ins": "stand-ins are not written; effects of chaos are read",
        "tags": "a case has no tags",
    },
    notes={
        ".yaml": "the SDK itself reads only JSON",
        ".yml": "the SDK itself reads only JSON",
    },
)
