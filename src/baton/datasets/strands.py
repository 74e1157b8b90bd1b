"""Cases of Strands and of AWS's accelerator as ours."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from baton.formats.document import Document
from baton.formats.spelling import Stray
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

from .strays import refuse_misspelt


class Known:
    """The names that tell a trajectory of agents from one of tools."""

    def __init__(self, cards: Mapping[str, AgentCard] | None = None) -> None:
        self.agents: set[str] = set()
        self.tools: set[str] = set()
        self.undecided = 0
        for name, card in (cards or {}).items():
            self.agents |= {name, *card.aliases, *card.sub_agents}
            self.tools |= set(card.tools) if isinstance(card.tools, list) else set()

    def are_agents(self, names: Collection[str]) -> bool:
        """Tell whether all of these are agents, and none of them is a tool."""
        return bool(self.agents) and set(names) <= self.agents - self.tools

    def add_nodes(self, case: Any) -> None:
        """Take the nodes that the interactions of a case name, which are agents."""
        if not isinstance(case, dict):
            return
        found = case.get("expected_interactions", case.get("expectedInteractions"))
        for each in found if isinstance(found, list) else ():
            if isinstance(each, dict) and isinstance(name := each.get("node_name"), str):
                self.agents.add(name)


def strands_case(document: Document, strays: list[Stray], names: Known) -> Case:
    """Read one case; raises InputError with every fault it has."""
    wire = document.decode(StrandsCase, strays=strays)
    refuse_misspelt(document, strays)
    turn = ExpectedTurn(input=_content(wire.input), interactions=_visits(wire))
    fields = _object(wire.expected_output)
    if fields is not None:
        turn.structured = fields
    elif wire.expected_output not in (None, ""):
        turn.response = _content(wire.expected_output)
    if wire.expected_assertion:
        turn.rubrics = [CaseRubric(text=wire.expected_assertion, type="assertion")]
    if wire.expected_trajectory is not None:
        _add_trajectory(turn, document, wire.expected_trajectory, names)
    states = wire.expected_environment_state
    return Case(
        id=wire.name or _name_of(document),
        turns=[turn],
        state=_state(document, wire.state),
        final_state=None if states is None else {each.name: each.state for each in states},
        metadata=wire.metadata or {},
    )


def _visits(wire: StrandsCase) -> list[ExpectedVisit] | None:
    return [
        ExpectedVisit(agent=each.node_name, after=each.dependencies, says=_says(each))
        for each in wire.expected_interactions or ()
    ] or None


def _says(wire: ExpectedInteraction) -> list[str] | None:
    """Return the texts of messages, which the SDK writes as a list and the accelerator as one."""
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


def _add_trajectory(
    turn: ExpectedTurn, document: Document, steps: list[Any] | dict[str, Any], names: Known
) -> None:
    """State a trajectory as the agents that run, or as the tools that are called."""
    if isinstance(steps, dict):
        message = "a recorded session is no expectation; list the names of tools or nodes"
        raise InputError(document.problem_at(("expected_trajectory",), message))
    calls = []
    for place, step in enumerate(steps):
        name = step.get("name") if isinstance(step, dict) else step
        if not isinstance(name, str):
            message = "a step is the name of a tool or node, or an object with `name`"
            raise InputError(document.problem_at(("expected_trajectory", place), message))
        given = step.get("input") if isinstance(step, dict) else None
        calls.append(
            ExpectedToolCall(name=name, arguments=given if isinstance(given, dict) else None)
        )
    called = [call.name for call in calls]
    if turn.interactions or names.are_agents(called):
        turn.agents = called or None
    elif called:
        turn.tool_calls = calls
        names.undecided += not names.agents


def _state(document: Document, state: dict[str, Any] | str | None) -> dict[str, Any]:
    if not isinstance(state, str):
        return state or {}
    if not state.strip():
        return {}
    try:
        return msgspec.json.decode(state, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        message = 'has to be a JSON object as text, such as "{\\"key\\": 1}"'
        raise InputError(document.problem_at(("state",), message)) from None


def _object(output: Any) -> dict[str, Any] | None:
    """Return an expected output that is an object, also where it is written as JSON text."""
    if isinstance(output, str):
        try:
            return msgspec.json.decode(output, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return None
    return output if isinstance(output, dict) else None


def _content(value: Any) -> Content:
    """Take a text without its last line break, which printed answers of Strands end with."""
    if isinstance(value, str):
        return Content(text=value.removesuffix("\n"))
    return Content(data=value)


def _name_of(document: Document) -> str:
    """Name a case that has no name by what it says."""
    said = msgspec.json.encode(document.value(), order="deterministic")
    return f"case-{hashlib.sha256(said).hexdigest()[:8]}"
