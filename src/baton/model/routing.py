"""Who handed work to whom: routes of single traces, and the routing matrix of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from .trace import Trace

OTHERS = "(other agents)"
_NAMES = 500

Routed = tuple[str | None, str | None]
"""The expected and the actual agent of a dispatch; ``None``: there was none."""


class RoutingCell(msgspec.Struct, frozen=True, kw_only=True):
    """How often work for ``expected`` went to ``actual``; ``None``: to nobody, or unexpected."""

    expected: str | None
    actual: str | None
    count: int


class RoutingCounts:
    """Counts pairs in memory that does not grow with them: names beyond 500 are one."""

    def __init__(self, names: int = _NAMES) -> None:
        self._counts: Counter[Routed] = Counter()
        self._names: set[str] = set()
        self._most = names

    def add(self, routed: Iterable[Routed], by: int = 1) -> None:
        """Count pairs once more; ``by`` of -1 takes them back."""
        for expected, actual in routed:
            self._counts[self._name(expected), self._name(actual)] += by

    def cells(self) -> list[RoutingCell]:
        """Return what was counted, by name, what was not expected last."""
        return [
            RoutingCell(expected=expected, actual=actual, count=count)
            for (expected, actual), count in sorted(self._counts.items(), key=_by_name)
            if count
        ]

    def _name(self, name: str | None) -> str | None:
        if name is None or name in self._names:
            return name
        if len(self._names) < self._most:
            self._names.add(name)
            return name
        return OTHERS


def _by_name(item: tuple[Routed, int]) -> tuple[tuple[bool, str], ...]:
    return tuple((name is None, name or "") for name in item[0])


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

    A side that ended there has ``None``. Ids differ from trace to trace and are not compared.
    """
    for place in range(max(len(before), len(after))):
        one = before[place] if place < len(before) else None
        other = after[place] if place < len(after) else None
        if one is None or other is None or _bare(one) != _bare(other):
            return one, other
    return None


def _bare(hop: Hop) -> tuple[int, str, str | None, str]:
    return hop.turn, hop.kind, hop.sender, hop.receiver
