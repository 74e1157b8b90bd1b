"""Which of many expected calls fit which of many actual ones, without trying every pair."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from baton.model import ExpectedToolCall

from . import tokens
from .compare import CallRules, Made
from .matching import best_matching
from .order import Pair

Key = TypeVar("Key", bound=Hashable)

# So few candidates are tried one by one rather than narrowed down further.
_FEW = 4


class Kinds(NamedTuple):
    """Calls that cannot be told apart, by their positions, and which kinds fit which."""

    wanted: list[list[int]]
    made: list[list[int]]
    edges: list[list[int]]


def fitting_kinds(
    wanted: Sequence[ExpectedToolCall], made: Sequence[Made], rules: CallRules
) -> Kinds:
    """Sort calls into kinds and find, for each expected kind, the actual ones that fit."""
    expected = _places(
        (call.name, call.agent, rules.looked_at(call.name, call.arguments, "expected"))
        for call in wanted
    )
    actual = _places(
        (call.name, call.agents, rules.looked_at(call.name, call.arguments, "actual"))
        for call in made
    )
    left, right = list(expected.values()), list(actual.values())
    one = [wanted[places[0]] for places in left]
    other = [made[places[0]] for places in right]
    return Kinds(left, right, _edges(one, other, rules))


def equal_pairs(
    wanted: Sequence[ExpectedToolCall], made: Sequence[Made], rules: CallRules
) -> list[Pair]:
    """Pair calls whose names and arguments are equal, where they fit.

    Not always as many as can be; but where one side is used up, they are.
    """
    actual = _places((call.name, rules.looked_at(call.name, call.arguments)) for call in made)
    free = {key: iter(places) for key, places in actual.items()}
    pairs: list[Pair] = []
    for one, call in enumerate(wanted):
        key = (call.name, rules.looked_at(call.name, call.arguments))
        other = next(free[key], None) if key in free else None
        if other is not None and rules.same(call, made[other]):
            pairs.append((one, other))
    return pairs


def best_pairs(kinds: Kinds) -> list[Pair]:
    """Pair each expected call with at most one actual call, as many as can be."""
    flow = best_matching(
        kinds.edges, [len(places) for places in kinds.wanted], [len(p) for p in kinds.made]
    )
    free = [iter(places) for places in kinds.made]
    pairs: list[Pair] = []
    for places, shares in zip(kinds.wanted, flow, strict=True):
        partners = (next(free[right]) for right in sorted(shares) for _ in range(shares[right]))
        pairs += zip(places, partners, strict=False)
    return sorted(pairs)


def fitting_bits(kinds: Kinds, actual: int) -> list[int]:
    """Return for each actual call a number whose bit ``i`` is set when it fits expected ``i``."""
    of_kind = [0] * len(kinds.made)
    for places, fits in zip(kinds.wanted, kinds.edges, strict=True):
        mask = sum(1 << place for place in places)
        for right in fits:
            of_kind[right] |= mask
    bits = [0] * actual
    for places, mask in zip(kinds.made, of_kind, strict=True):
        for place in places:
            bits[place] = mask
    return bits


def _places(keys: Iterable[Key]) -> dict[Key, list[int]]:
    """Return where each key stands."""
    places: dict[Key, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return places


def _edges(
    wanted: Sequence[ExpectedToolCall], made: Sequence[Made], rules: CallRules
) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in wanted]
    by_tool = _places(call.name for call in made)
    for name, lefts in _places(call.name for call in wanted).items():
        tools = [name] if rules.names == "exact" else list(by_tool)
        for tool in tools:
            if tool not in by_tool or not rules.name(name, tool):
                continue
            for left, right in _candidates(wanted, lefts, made, by_tool[tool], tool, rules):
                if rules.same_but_name(wanted[left], made[right]):
                    found[left].append(right)
    return [sorted(fits) for fits in found]


def _candidates(
    wanted: Sequence[ExpectedToolCall],
    lefts: Sequence[int],
    made: Sequence[Made],
    rights: Sequence[int],
    tool: str,
    rules: CallRules,
) -> Iterator[Pair]:
    """Yield the pairs that may fit. For ``superset`` the actual calls look for expected ones."""
    expected = {left: wanted[left].arguments for left in lefts}
    stated = {left: arguments for left, arguments in expected.items() if arguments is not None}
    actual = {right: made[right].mapping for right in rights}
    if rules.arguments == "superset":
        for right, near in _near(actual, stated, tool, rules):
            yield from ((left, right) for left in near)
    else:
        for left, near in _near(stated, actual, tool, rules):
            yield from ((left, right) for right in near)
    yield from ((left, right) for left in lefts if left not in stated for right in rights)


def _near(
    seekers: Mapping[int, Mapping[str, Any]],
    holders: Mapping[int, Mapping[str, Any]],
    tool: str,
    rules: CallRules,
) -> Iterator[tuple[int, list[int]]]:
    """Yield for each of the ``seekers`` those ``holders`` that hold what it needs."""
    ways = _ways(
        {key for group in (seekers, holders) for each in group.values() for key in each},
        tool,
        rules,
    )
    index: dict[tokens.Token, set[int]] = {}
    for place, arguments in holders.items():
        for key in arguments.keys() & ways.keys():
            for token in tokens.held(ways[key], key, arguments[key]):
                index.setdefault(token, set()).add(place)

    def count(token: tokens.Token) -> int:
        return len(index.get(token, ()))

    for place, arguments in seekers.items():
        groups = [
            group
            for key, value in arguments.items()
            if key in ways
            for group in tokens.needed(ways[key], key, value, rules.similarity, count)
        ]
        yield place, _holding_all(groups, index, holders)


def _holding_all(
    groups: list[tokens.Group],
    index: Mapping[tokens.Token, set[int]],
    everyone: Mapping[int, Any],
) -> list[int]:
    """Return who holds a token of every group, the smallest groups first."""
    if not groups:
        return list(everyone)
    sized = sorted((sum(len(index.get(t, ())) for t in group), n) for n, group in enumerate(groups))
    found: set[int] | None = None
    for _, number in sized:
        holding = [index[token] for token in groups[number] if token in index]
        union = holding[0] if len(holding) == 1 else set().union(*holding)
        found = union if found is None else found & union
        if len(found) <= _FEW:
            break
    return sorted(found or ())


def _ways(keys: set[str], tool: str, rules: CallRules) -> dict[str, tokens.Way]:
    """Return how each argument is compared, of those that an index helps with."""
    ways: dict[str, tokens.Way] = {}
    for key in keys:
        rule = rules.rule(tool, key)
        way = tokens.Way(rules.way(tool, key), rule.reach if rule else 0.0)
        if tokens.is_indexed(way):
            ways[key] = way
    return ways
