"""Which of many expected calls fit which of many actual ones, without trying every pair."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from operator import xor
from typing import Any, NamedTuple, TypeVar

from baton.model import ExpectedToolCall

from . import tokens
from .compare import CallRules, Made
from .matching import best_matching
from .near import Crew, Line, Seekers, as_range, crews, seekers
from .order import Pair

Key = TypeVar("Key", bound=Hashable)

# So few candidates are tried one by one rather than narrowed down further.
_FEW = 4


class Kinds(NamedTuple):
    """Calls that cannot be told apart, by their positions, and which kinds fit which.

    Where the kinds that fit one are next to each other, they are a range.
    """

    wanted: list[list[int]]
    made: list[list[int]]
    edges: list[Sequence[int]]


def fitting_kinds(
    wanted: Sequence[ExpectedToolCall], made: Sequence[Made], rules: CallRules
) -> Kinds:
    """Sort calls into kinds and find, for each expected kind, the actual ones that fit."""
    expected = _places(
        (call.name, call.agent, rules.looked_at(call.name, call.arguments, "expected"))
        for call in wanted
    )
    asked = frozenset(call.agent for call in wanted if call.agent is not None)
    heard = [call._replace(agents=call.agents & asked) for call in made]
    actual = _places(
        (call.name, call.agents, rules.looked_at(call.name, call.arguments, "actual"))
        for call in heard
    )
    left, right = list(expected.values()), list(actual.values())
    one = [wanted[places[0]] for places in left]
    in_line, by_tool = _lined_up(one, [heard[places[0]] for places in right], rules)
    return Kinds(left, [right[place] for place in in_line], _edges(one, by_tool, rules))


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
    turned = [0] * (len(kinds.made) + 1)
    for places, fits in zip(kinds.wanted, kinds.edges, strict=True):
        mask = sum(1 << place for place in places)
        if isinstance(fits, range):
            turned[fits.start] ^= mask
            turned[fits.stop] ^= mask
        else:
            for right in fits:
                of_kind[right] |= mask
    of_kind = [one | other for one, other in zip(of_kind, accumulate(turned, xor), strict=False)]
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


def _lined_up(
    wanted: Sequence[ExpectedToolCall], made: Sequence[Made], rules: CallRules
) -> tuple[list[int], dict[str, list[Crew]]]:
    """Return an order in which calls that are near stand together, and the crews by tool."""
    stated = frozenset(key for call in wanted for key in call.arguments or ())
    in_line: list[int] = []
    by_tool: dict[str, list[Crew]] = {}
    for tool, rights in _places(call.name for call in made).items():
        for crew in crews(made, rights, stated, rules):
            places = Line([crew.numbers]).places
            numbers = {n: crew.numbers[p] for n, p in enumerate(places, len(in_line))}
            in_line += places
            by_tool.setdefault(tool, []).append(crew._replace(numbers=numbers))
    return in_line, by_tool


def _edges(
    wanted: Sequence[ExpectedToolCall], by_tool: Mapping[str, Sequence[Crew]], rules: CallRules
) -> list[Sequence[int]]:
    found: list[list[Sequence[int]]] = [[] for _ in wanted]
    for name, lefts in _places(call.name for call in wanted).items():
        tools = [name] if rules.names == "exact" else list(by_tool)
        for tool in tools:
            if tool in by_tool and rules.name(name, tool):
                groups = seekers(wanted, lefts, tool, rules)
                for left, fits in _fits_of_tool(groups, by_tool[tool], tool, rules):
                    found[left].append(fits)
    return [_joined(pieces) for pieces in found]


def _joined(pieces: Sequence[Sequence[int]]) -> Sequence[int]:
    if len(pieces) == 1 and isinstance(pieces[0], range):
        return pieces[0]
    return as_range(sorted(chain.from_iterable(pieces)))


def _fits_of_tool(
    groups: Sequence[Seekers], made: Sequence[Crew], tool: str, rules: CallRules
) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield for expected calls by position the actual ones that fit."""
    wanted, samples = [group.sample for group in groups], [crew.sample for crew in made]
    fitting: list[list[int]] = [[] for _ in groups]
    for one, other in _candidates(wanted, samples, tool, rules):
        alike = wanted[one].arguments is None or groups[one].keys == made[other].keys
        if alike and rules.same_but_name(wanted[one], samples[other]):
            fitting[one].append(other)
    lines: dict[tuple[int, ...], Line] = {}
    for group, fits in zip(groups, fitting, strict=True):
        if not group.keys:
            places = [place for other in fits for place in made[other].numbers]
            yield from ((left, places) for left in group.members)
        elif fits:
            key = tuple(sorted(fits))
            line = lines.get(key)
            if line is None:
                line = lines[key] = Line([made[other].numbers for other in key])
            yield from ((left, line.within(reaches)) for left, reaches in group.members.items())


def _candidates(
    wanted: Sequence[ExpectedToolCall], made: Sequence[Made], tool: str, rules: CallRules
) -> Iterator[Pair]:
    """Yield the pairs that may fit. For ``superset`` the actual calls look for expected ones."""
    expected = {left: call.arguments for left, call in enumerate(wanted)}
    stated = {left: arguments for left, arguments in expected.items() if arguments is not None}
    actual = {right: call.mapping for right, call in enumerate(made)}
    if rules.arguments == "superset":
        for right, near in _near(actual, stated, tool, rules):
            yield from ((left, right) for left in near)
    else:
        for left, near in _near(stated, actual, tool, rules):
            yield from ((left, right) for right in near)
    yield from ((left, right) for left in expected if left not in stated for right in actual)


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


def _ways(keys: set[str], tool: str, rules: CallRules) -> dict[str, str]:
    """Return how each argument is compared, of those that an index helps with."""
    ways = {key: rules.way(tool, key) for key in keys}
    return {key: way for key, way in ways.items() if way in tokens.INDEXED}
