"""The routing matrix: how often work that was meant for one agent went to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

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
