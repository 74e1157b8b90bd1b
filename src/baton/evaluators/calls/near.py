"""Numbers that only have to be near: all actual calls in reach of an expected one, at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from baton.model import ExpectedToolCall

from .compare import CallRules, Made
from .rules import Reach, exact

Numbers = dict[str, Fraction]
Reaches = dict[str, Reach]


class Seekers(NamedTuple):
    """Expected calls that differ in near numbers only; ``members`` by their positions.

    ``sample`` is one of them without these numbers.
    """

    sample: ExpectedToolCall
    members: dict[int, Reaches]

    @property
    def keys(self) -> frozenset[str]:
        """The arguments that hold the numbers."""
        return frozenset(next(iter(self.members.values())))


def as_range(places: list[int]) -> Sequence[int]:
    """Return numbers that stand in order as a range where none is left out."""
    first = places[0] if places else 0
    whole = range(first, first + len(places))
    return whole if places == list(whole) else places


class Line:
    """Actual calls by position, in the order of the number that tells most of them apart."""

    __slots__ = ("_main", "_ranks", "_steps", "places")

    def __init__(self, groups: Iterable[Mapping[int, Numbers]]) -> None:
        """Take the numbers of each position, of the same arguments all."""
        numbers = {place: each for group in groups for place, each in group.items()}
        keys = next(iter(numbers.values())).keys()
        self._steps = {key: sorted({each[key] for each in numbers.values()}) for key in keys}
        main = max(keys, key=lambda key: len(self._steps[key]), default=None)
        self._main = main
        in_order = list(numbers)
        if main is not None:
            in_order.sort(key=lambda place: numbers[place][main])
        self.places = as_range(in_order)
        self._ranks = {
            key: [bisect_left(steps, numbers[place][key]) for place in self.places]
            for key, steps in self._steps.items()
        }

    def within(self, reaches: Reaches) -> Sequence[int]:
        """Return the positions of those of which every number is in reach."""
        if self._main is None:
            return self.places
        spans = {key: self._span(key, reach) for key, reach in reaches.items()}
        first, end = spans.pop(self._main)
        ranks = self._ranks[self._main]
        start, stop = bisect_left(ranks, first), bisect_left(ranks, end)
        found = self.places[start:stop]
        if not spans:
            return found
        others = [(self._ranks[key], *span) for key, span in spans.items()]
        return [
            place
            for at, place in enumerate(found, start)
            if all(low <= ranks[at] < high for ranks, low, high in others)
        ]

    def _span(self, key: str, reach: Reach) -> tuple[int, int]:
        steps = self._steps[key]
        return bisect_left(steps, reach.least), bisect_right(steps, reach.most)


class Crew(NamedTuple):
    """Actual calls that differ in near numbers only; ``sample`` is one without them."""

    sample: Made
    numbers: dict[int, Numbers]

    @property
    def keys(self) -> frozenset[str]:
        """The arguments that hold the numbers."""
        return frozenset(next(iter(self.numbers.values())))


def seekers(
    wanted: Sequence[ExpectedToolCall], lefts: Iterable[int], tool: str, rules: CallRules
) -> list[Seekers]:
    """Group expected calls that look for a tool."""
    groups: dict[Hashable, Seekers] = {}
    for left in lefts:
        call, reaches = wanted[left], Reaches()
        group: Hashable = left
        if rules.has_near and call.arguments is not None:
            numbers, rest = rules.parted(tool, call.arguments)
            reaches = {key: rule.reach(size) for key, (rule, size) in numbers.items()}
            if numbers:
                call = ExpectedToolCall(name=call.name, agent=call.agent, arguments=rest)
                looked_at = rules.looked_at(call.name, rest, "expected")
                group = (call.agent, looked_at, frozenset(numbers))
        groups.setdefault(group, Seekers(call, {})).members[left] = reaches
    return list(groups.values())


def crews(
    made: Sequence[Made], rights: Iterable[int], stated: frozenset[str], rules: CallRules
) -> list[Crew]:
    """Group actual calls of one tool; ``stated`` are the arguments that expected calls have."""
    groups: dict[Hashable, Crew] = {}
    for right in rights:
        call, exacts = made[right], Numbers()
        group: Hashable = right
        if rules.has_near:
            numbers, rest = rules.parted(call.name, call.mapping)
            exacts = {key: exact(size) for key, (_, size) in numbers.items()}
            if numbers:
                rest = _counting(rest, call.name, stated, rules)
                call = call._replace(arguments=rest)
                looked_at = rules.looked_at(call.name, rest, "actual")
                group = (call.agents, looked_at, frozenset(numbers))
        groups.setdefault(group, Crew(call, {})).numbers[right] = exacts
    return list(groups.values())


def _counting(
    rest: Mapping[str, Any], tool: str, stated: frozenset[str], rules: CallRules
) -> dict[str, Any]:
    """Leave out what agrees with every expected call, as none of them has it."""
    return {
        key: value
        for key, value in rest.items()
        if key in stated or not rules.takes_unstated(tool, key)
    }
