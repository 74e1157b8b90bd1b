"""Spans by time, so that those at work together are found without looking at all."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from math import frexp, inf
from sys import float_info
from typing import Protocol

from .node import Node

_MAX = float_info.max_exp
_Entry = tuple[float, int, Node]


class Timed(Protocol):
    """What has a start and an end, in seconds since the epoch."""

    @property
    def started(self) -> float:
        """When it began."""

    @property
    def ended(self) -> float:
        """When it ended; infinite when it has not."""


class Overlaps:
    """Holds nodes by how long they took, to a power of two, and then by their start."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self._lengths: dict[float, list[_Entry]] = {}
        self._count = 0
        for node in nodes:
            self.add(node)

    def add(self, node: Node) -> None:
        """Add a node."""
        length = max(node.ended - node.started, 0.0)
        exponent = frexp(length)[1]
        most = 2.0**exponent if length < inf and exponent < _MAX else inf
        insort(self._lengths.setdefault(most, []), (node.started, self._count, node))
        self._count += 1

    def around(self, node: Timed) -> Iterator[Node]:
        """Yield the nodes that have a moment in common with this one, in the order of adding."""
        found: list[tuple[int, Node]] = []
        for most, entries in self._lengths.items():
            first = bisect_left(entries, (node.started - most,))
            last = bisect_right(entries, (node.ended, inf))
            found += [
                (number, other)
                for _, number, other in entries[first:last]
                if other.ended >= node.started
            ]
        found.sort(key=lambda item: item[0])
        for _, other in found:
            yield other
