"""What a swarm of Strands tells each agent: who worked before, and what was handed over.

Its agents get one text, written by a fixed form; agents and tools of it have no other trace in a
session.
"""

from __future__ import annotations

from typing import Any, NamedTuple

HAND_OFF = "handoff_to_agent"
_START, _MESSAGE, _TASK = "Context:\n", "Handoff Message: ", "User Request: "
_BEFORE = "\n\nPrevious agents who worked on this: "
_NEXT = (
    _BEFORE,
    "\n\nShared knowledge from previous agents:\n",
    "\n\nOther agents available for collaboration:\n",
    "\n\nYou have access to swarm coordination tools",
)


class Told(NamedTuple):
    """The text of a swarm, taken apart."""

    task: str
    message: str | None
    before: list[str]


def told_by_swarm(prompt: str | None) -> Told | None:
    """Take a prompt apart; ``None`` when it is no swarm's."""
    if prompt is None or not prompt.startswith(_START):
        return None
    rest, message = prompt.removeprefix(_START), None
    if rest.startswith(_MESSAGE):
        message, _, rest = rest.removeprefix(_MESSAGE).partition(f"\n\n{_TASK}")
    elif rest.startswith(_TASK):
        rest = rest.removeprefix(_TASK)
    else:
        return None
    ends = [at for mark in _NEXT if (at := rest.find(mark)) >= 0]
    if not ends:
        return None
    task, rest = rest[: min(ends)], rest[min(ends) :]
    before = rest.removeprefix(_BEFORE).partition("\n")[0] if rest.startswith(_BEFORE) else ""
    return Told(task, message, before.split(" → ") if before else [])


class Handed(NamedTuple):
    """What a call of the hand-off tool asked for."""

    to: str
    message: str | None
    context: dict[str, Any]


def handed(arguments: Any) -> Handed | None:
    """Read the arguments of a hand-off; ``None`` when they name no agent."""
    if not isinstance(arguments, dict) or not isinstance(arguments.get("agent_name"), str):
        return None
    message, context = arguments.get("message"), arguments.get("context")
    return Handed(
        arguments["agent_name"],
        message if isinstance(message, str) else None,
        context if isinstance(context, dict) else {},
    )
