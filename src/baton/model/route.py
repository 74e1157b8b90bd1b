"""Who handed work to whom, in short: for the index, where evaluations are compared by it."""

from __future__ import annotations

import msgspec

from .trace import Trace


class Hop(msgspec.Struct, frozen=True, array_like=True):
    """A dispatch in short; ``turn`` counts from 1, ``sender`` is ``None`` for program and user."""

    turn: int
    kind: str
    sender: str | None
    receiver: str
    id: str

    def __str__(self) -> str:
        return f"{self.kind} {self.sender or 'the program'} → {self.receiver}"


class AgentValue(msgspec.Struct, frozen=True, array_like=True):
    """The sum of the values of one evaluator that are about one agent, and how many these are."""

    evaluator: str
    agent: str
    total: float
    scored: int


def route_of(trace: Trace) -> list[Hop]:
    """Return the dispatches of a trace in the order they were made, returns left out."""
    return [
        Hop(number, each.kind, each.from_agent, each.to_agent, each.id)
        for number, turn in enumerate(trace.turns, 1)
        for each in turn.dispatches
        if each.kind != "return"
    ]


def first_difference(before: list[Hop], after: list[Hop]) -> tuple[Hop | None, Hop | None] | None:
    """Return the first place where two routes part; ``None``: they do not.

    A side that ended there has ``None``. Ids are the traces' own and tell nothing.
    """
    for place in range(max(len(before), len(after))):
        one = before[place] if place < len(before) else None
        other = after[place] if place < len(after) else None
        if one is None or other is None or _bare(one) != _bare(other):
            return one, other
    return None


def _bare(hop: Hop) -> tuple[int, str, str | None, str]:
    return hop.turn, hop.kind, hop.sender, hop.receiver
