"""What eval sets of ADK and of judge-llm have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baton.formats.stated_agents import TRANSFER_TOOL
from baton.model import (
    Case,
    Content,
    ExpectedToolCall,
    ExpectedTurn,
    ExpectedVisit,
    Part,
)

from .target import Blobs, Head
from .values import placed, stated, text_of

BEGINNING = 0.0
"""A time of creation that is the same whenever a file is written."""


def user_content(content: Content, blobs: Blobs) -> dict[str, Any]:
    """Write a message of the user, with those attachments whose bytes or address are known."""
    text = text_of(content)
    files = [_attachment(part, blobs) for part in content.parts or ()]
    parts = [] if text is None else [{"text": text}]
    return {"parts": [*parts, *(each for each in files if each)], "role": "user"}


def answer(content: Content | None) -> dict[str, Any] | None:
    """Write a final response."""
    text = text_of(content)
    return None if text is None else {"parts": [{"text": text}], "role": "model"}


def _attachment(part: Part, blobs: Blobs) -> dict[str, Any] | None:
    if part.type == "file_data" and part.uri:
        return {"file_data": stated({"file_uri": part.uri, "mime_type": part.mime})}
    blob = blobs.get(part.sha256 or "")
    return {"inline_data": blob} if part.type == "inline_data" and blob else None


def plain_chain(turn: ExpectedTurn) -> list[str] | None:
    """Return the agents of a turn where they have one order and names."""
    names = [stage for stage in turn.agents or () if isinstance(stage, str) and stage]
    return names if names and len(names) == len(turn.agents or ()) else None


def spoken(turn: ExpectedTurn) -> list[ExpectedVisit]:
    """Return the visits that say something; those that do not cannot be written."""
    return [visit for visit in turn.interactions or () if any(visit.says or ())]


def by_agent(
    turn: ExpectedTurn, chain: Sequence[str] | None
) -> list[tuple[str, list[ExpectedVisit]]] | None:
    """Return the agents of a chain, each with the visits that say something after it.

    ``None`` where there is nothing to write: no chain, or one that transfers say already.
    """
    visits = spoken(turn)
    if chain is None or (not visits and transfers(turn.tool_calls or ()) == chain):
        return None
    places = placed(chain, [visit.agent for visit in visits]) or [[] for _ in chain]
    return [(agent, [visits[n] for n in found]) for agent, found in zip(chain, places, strict=True)]


def pair(agent: str, texts: Sequence[str] | None = ()) -> list[Any]:
    """Write ADK's ``[author, parts]``."""
    return [agent, [{"text": text} for text in texts or ()]]


def transfers(calls: Sequence[ExpectedToolCall]) -> list[str] | None:
    """Return the agents that calls of the transfer tool name; ``None`` when one names nobody."""
    targets = [_target(call) for call in calls if call.name == TRANSFER_TOOL]
    named = [target for target in targets if target]
    return named if len(named) == len(targets) else None


def nameable(calls: Sequence[ExpectedToolCall]) -> list[ExpectedToolCall]:
    """Leave out transfers that do not say to whom, which no reader takes."""
    return [call for call in calls if call.name != TRANSFER_TOOL or _target(call)]


def _target(call: ExpectedToolCall) -> str | None:
    name = (call.arguments or {}).get("agent_name")
    return name if isinstance(name, str) else None


def case_extras(case: Case) -> dict[str, Any]:
    """Write what both keep beside the conversation."""
    return stated({"evaluator_config": case.evaluators or None, "metadata": case.metadata or None})


def whole_set(head: Head, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Put cases into a set."""
    return {
        "eval_set_id": head.name,
        "name": head.name,
        **stated({"description": head.description}),
        "creation_timestamp": BEGINNING,
        "eval_cases": cases,
    }
