"""Finds which expected calls fit which actual calls, without trying every pair."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, chain
from operator import xor
from typing import Any, Literal, TypeVar

import msgspec

from baton.evaluators.matching.argument_values import folded, identity, number, words
from baton.evaluators.matching.assignment import Pair, all_in_order, assign, longest_common
from baton.evaluators.matching.call_rules import CallRules, Made, Reach, exact
from baton.model import ExpectedToolCall

Numbers = dict[str, Fraction]
Reaches = dict[str, Reach]


class Seekers(msgspec.Struct, frozen=True):
    """Expected calls that differ only in numbers that need to be near. ``members`` by position.

    ``sample`` is one of the calls without these numbers.
    """

    sample: ExpectedToolCall
    members: dict[int, Reaches]

    @property
    def keys(self) -> frozenset[str]:
        """The arguments that contain the numbers."""
        return frozenset(next(iter(self.members.values())))


def as_range(places: list[int]) -> Sequence[int]:
    """Return ascending numbers as a range if they have no gaps."""
    first = places[0] if places else 0
    whole = range(first, first + len(places))
    return whole if places == list(whole) else places


class Line:
    """Actual calls by position, sorted by the number that distinguishes most of them."""

    __slots__ = ("_main", "_ranks", "_steps", "places")

    def __init__(self, groups: Iterable[Mapping[int, Numbers]]) -> None:
        """Take the numbers of each position, all for the same arguments."""
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
        """Return the positions of the calls whose numbers are all in reach."""
        if self._main is None:
            return self.places
        spans = {key: self._span(key, reach) for key, reach in reaches.items()}
        first, end = spans.pop(self._main)
        ranks = self._ranks[self._main]
        start, stop = bisect_left(ranks, first), bisect_left(ranks, end)
        places = self.places[start:stop]
        if not spans:
            return places
        others = [(self._ranks[key], *span) for key, span in spans.items()]
        return [
            place
            for at, place in enumerate(places, start)
            if all(low <= ranks[at] < high for ranks, low, high in others)
        ]

    def _span(self, key: str, reach: Reach) -> tuple[int, int]:
        steps = self._steps[key]
        return bisect_left(steps, reach.least), bisect_right(steps, reach.most)


class Crew(msgspec.Struct, frozen=True):
    """Actual calls that differ only in numbers that need to be near. ``sample`` omits those."""

    sample: Made
    numbers: dict[int, Numbers]

    @property
    def keys(self) -> frozenset[str]:
        """The arguments that contain the numbers."""
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
    """Group actual calls of one tool. ``stated`` are the arguments in expected calls."""
    groups: dict[Hashable, Crew] = {}
    for right in rights:
        call, exacts = made[right], Numbers()
        group: Hashable = right
        if rules.has_near:
            numbers, rest = rules.parted(call.name, call.mapping)
            exacts = {key: exact(size) for key, (_, size) in numbers.items()}
            if numbers:
                # Leave out an argument that no expected call states, if it agrees with all of them.
                rest = {
                    key: value
                    for key, value in rest.items()
                    if key in stated or not rules.takes_unstated(call.name, key)
                }
                call = msgspec.structs.replace(call, arguments=rest)
                looked_at = rules.looked_at(call.name, rest, "actual")
                group = (call.agents, looked_at, frozenset(numbers))
        groups.setdefault(group, Crew(call, {})).numbers[right] = exacts
    return list(groups.values())


Token = tuple[Hashable, ...]
Path = tuple[str | int, ...]
Group = list[Token]

_AS_JSON = frozenset({"exact", "subset", "superset", "equal"})
INDEXED = _AS_JSON | {"tolerant", "similar", "regex"}
"""The comparison methods that have tokens."""

# Numbers are equal up to a millionth part. With buckets four times as wide, equal numbers are in
# the same bucket or in neighbouring ones.
_BUCKET = 4e-6
# How far a product of floats may be from the whole number of words that it means: 0.8 times 3 words
# over 1.2 are 2.0000000000000004, but a text of 2 words is similar enough.
_ROUNDING = 1e-6
_PATTERN_PART = r"(?s:\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[^}]*\}|\(\?:|\(\?|.)"


def held(way: str, argument: str, value: Any) -> Iterator[Token]:
    """Yield the tokens of an actual value."""
    for path, leaf in _leaves(value, (argument,)):
        if way in _AS_JSON or (way == "regex" and not isinstance(leaf, str)):
            yield (path, identity(leaf))
        elif way == "regex":
            yield from ((path, each) for each in _trigrams(leaf))
        else:
            yield from _meaning(path, leaf, spread=0)
            if way == "similar" and isinstance(leaf, str):
                leaf_words = words(leaf)
                yield from ((path, "word", len(leaf_words), *word) for word in leaf_words)


def needed(
    way: str, argument: str, value: Any, similarity: float, count: Callable[[Token], int]
) -> Iterator[Group]:
    """Yield groups of tokens of an expected value. ``count`` counts the calls that have a token."""
    for path, leaf in _leaves(value, (argument,)):
        if way in _AS_JSON or (way == "regex" and not isinstance(leaf, str)):
            yield [(path, identity(leaf))]
        elif way == "regex":
            for each in _trigrams(required_text(leaf)):
                yield [(path, each)]
        elif way == "similar" and isinstance(leaf, str):
            # With a least similarity of 0, texts that share no word are similar too.
            if similarity > _ROUNDING:
                rare = _rare_words(path, leaf, similarity, count)
                yield [*_meaning(path, leaf, spread=1), *rare]
        elif leaf is not None:
            yield list(_meaning(path, leaf, spread=1))


def required_text(pattern: str) -> str:
    """Return a long text that all matches of a pattern contain, or an empty one if unclear.

    Alternatives, flags and assertions make it unclear. Parts that can be repeated zero times are
    left out, including whole groups.
    """
    runs = [""]
    groups: list[int] = []
    closed: int | None = None
    for part in re.findall(_PATTERN_PART, pattern):
        if part in ("|", "(?"):
            return ""
        if part[0] in "*?{":
            runs[-1] = runs[-1][:-1]
            runs = [*(runs if closed is None else runs[:closed]), ""]
        elif part[0] == "(":
            groups.append(len(runs))
            runs.append("")
        elif part[0] in ")[.^$+" or (part[0] == "\\" and part[1].isalnum()):
            runs.append("")
        else:
            runs[-1] += part[-1]
        closed = groups.pop() if part == ")" and groups else None
    return max(runs, key=len)


def _rare_words(
    path: Path, text: str, least: float, count: Callable[[Token], int]
) -> Iterator[Token]:
    """Yield, for each word count, the rarest words, of which a similar text has at least one.

    Texts of m and n words whose Dice coefficient is at least s share s * (m + n) / 2 words
    (prefix filter of set-similarity joins: S. Chaudhuri et al., ICDE 2006).
    """
    own = words(text)
    for length in range(
        math.ceil(len(own) * least / (2 - least) - _ROUNDING),
        math.floor(len(own) * (2 - least) / least + _ROUNDING) + 1,
    ):
        shared = max(1, math.ceil(least * (len(own) + length) / 2 - _ROUNDING))
        sized: Group = [(path, "word", length, *word) for word in own]
        sized.sort(key=lambda token: (count(token), token))
        yield from sized[: len(own) - shared + 1]


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _leaves(each, (*path, place))
    else:
        yield path, value


def _meaning(path: Path, leaf: Any, spread: int) -> Iterator[Token]:
    """Yield the tokens of a tolerantly compared value: numbers by nearby orders of magnitude."""
    size = number(leaf)
    if size is not None:
        bucket = math.floor(math.log(abs(size)) / _BUCKET) if size else 0
        sign = (size > 0) - (size < 0)
        yield from ((path, "number", sign, bucket + step) for step in range(-spread, spread + 1))
    elif isinstance(leaf, str):
        yield (path, "text", folded(leaf))
    elif leaf is not None:
        yield (path, identity(leaf))


def _trigrams(text: str) -> Collection[str]:
    return dict.fromkeys(text[place : place + 3] for place in range(len(text) - 2))


Key = TypeVar("Key", bound=Hashable)

# Up to this many candidates are tried one by one and not narrowed down further.
# Looking up another group of tokens costs about as much as comparing a few calls.
_FEW = 4


class Kinds(msgspec.Struct, frozen=True):
    """Groups (kinds) of indistinguishable calls, by position, and which kinds fit which.

    If the kinds that fit a kind are adjacent, they are a range.
    """

    wanted: list[list[int]]
    made: list[list[int]]
    edges: list[Sequence[int]]


def fitting_kinds(
    wanted: Sequence[ExpectedToolCall], made: Sequence[Made], rules: CallRules
) -> Kinds:
    """Sort calls into kinds and find, for each expected kind, the actual kinds that fit."""
    expected = _places(
        (call.name, call.agent, rules.looked_at(call.name, call.arguments, "expected"))
        for call in wanted
    )
    agents = frozenset(call.agent for call in wanted if call.agent is not None)
    relevant = [msgspec.structs.replace(call, agents=call.agents & agents) for call in made]
    actual = _places(
        (call.name, call.agents, rules.looked_at(call.name, call.arguments, "actual"))
        for call in relevant
    )
    left, right = list(expected.values()), list(actual.values())
    samples = [wanted[places[0]] for places in left]
    in_line, by_tool = _lined_up(samples, [relevant[places[0]] for places in right], rules)
    fitting: list[list[Sequence[int]]] = [[] for _ in samples]
    for name, lefts in _places(call.name for call in samples).items():
        tools = [name] if rules.names == "exact" else list(by_tool)
        for tool in tools:
            if tool in by_tool and rules.name(name, tool):
                groups = seekers(samples, lefts, tool, rules)
                for position, fits in _fits_of_tool(groups, by_tool[tool], tool, rules):
                    fitting[position].append(fits)
    return Kinds(left, [right[place] for place in in_line], [_joined(pieces) for pieces in fitting])


def equal_pairs(
    wanted: Sequence[ExpectedToolCall], made: Sequence[Made], rules: CallRules
) -> list[Pair]:
    """Pair calls whose names and arguments are equal, if they fit.

    This may find fewer pairs than possible. It finds the most if it uses up one side.
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
    """Pair each expected call with at most one actual call, for the most pairs possible."""
    flow = assign(
        kinds.edges,
        [len(places) for places in kinds.made],
        supply=[len(places) for places in kinds.wanted],
    )
    free = [iter(places) for places in kinds.made]
    pairs: list[Pair] = []
    for places, shares in zip(kinds.wanted, flow, strict=True):
        partners = (next(free[right]) for right in sorted(shares) for _ in range(shares[right]))
        pairs += zip(places, partners, strict=False)
    return sorted(pairs)


def fitting_bits(kinds: Kinds, actual: int) -> list[int]:
    """Return, for each actual call, a number whose bit ``i`` is set if it fits expected ``i``."""
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
    """Return the positions of each key."""
    places: dict[Key, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return places


def _lined_up(
    wanted: Sequence[ExpectedToolCall], made: Sequence[Made], rules: CallRules
) -> tuple[list[int], dict[str, list[Crew]]]:
    """Return an order that puts calls with near numbers together, and the crews by tool."""
    stated = frozenset(key for call in wanted for key in call.arguments or ())
    in_line: list[int] = []
    by_tool: dict[str, list[Crew]] = {}
    for tool, rights in _places(call.name for call in made).items():
        for crew in crews(made, rights, stated, rules):
            places = Line([crew.numbers]).places
            numbers = {n: crew.numbers[p] for n, p in enumerate(places, len(in_line))}
            in_line += places
            by_tool.setdefault(tool, []).append(msgspec.structs.replace(crew, numbers=numbers))
    return in_line, by_tool


def _joined(pieces: Sequence[Sequence[int]]) -> Sequence[int]:
    if len(pieces) == 1 and isinstance(pieces[0], range):
        return pieces[0]
    return as_range(sorted(chain.from_iterable(pieces)))


def _fits_of_tool(
    groups: Sequence[Seekers], made: Sequence[Crew], tool: str, rules: CallRules
) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield, for expected calls by position, the actual calls that fit."""
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
    """Yield the pairs that may fit. For ``superset``, the actual calls seek expected ones."""
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
    """Yield, for each of the ``seekers``, the ``holders`` that have the tokens it needs."""
    ways = _ways(
        {key for group in (seekers, holders) for each in group.values() for key in each},
        tool,
        rules,
    )
    index: dict[Token, set[int]] = {}
    for place, arguments in holders.items():
        for key in arguments.keys() & ways.keys():
            for token in held(ways[key], key, arguments[key]):
                index.setdefault(token, set()).add(place)

    def count(token: Token) -> int:
        return len(index.get(token, ()))

    for place, arguments in seekers.items():
        groups = [
            group
            for key, value in arguments.items()
            if key in ways
            for group in needed(ways[key], key, value, rules.similarity, count)
        ]
        yield place, _holding_all(groups, index, holders)


def _holding_all(
    groups: list[Group],
    index: Mapping[Token, set[int]],
    everyone: Mapping[int, Any],
) -> list[int]:
    """Return the holders that have a token of every group. Starts with the smallest groups."""
    if not groups:
        return list(everyone)
    sized = sorted((sum(len(index.get(t, ())) for t in group), n) for n, group in enumerate(groups))
    common: set[int] | None = None
    for _, place in sized:
        holding = [index[token] for token in groups[place] if token in index]
        union = holding[0] if len(holding) == 1 else set().union(*holding)
        common = union if common is None else common & union
        if len(common) <= _FEW:
            break
    return sorted(common or ())


def _ways(keys: set[str], tool: str, rules: CallRules) -> dict[str, str]:
    """Return the comparison method of each argument that can be indexed."""
    ways = {key: rules.way(tool, key) for key in keys}
    return {key: way for key, way in ways.items() if way in INDEXED}


Mode = Literal[
    "exact", "in_order", "any_order", "partial", "precision", "recall", "f1", "single_tool"
]
ORDERED = frozenset({"exact", "in_order", "partial"})
_FEW_PAIRS = 256
"""Up to this many pairs, every pair is compared: sorting 16 by 16 calls into kinds is slower."""


def pair_calls(
    wanted: Sequence[ExpectedToolCall], made: Sequence[Made], mode: Mode, rules: CallRules
) -> list[Pair]:
    """Pair expected with actual calls: as many as possible, in order if the mode requires it."""
    # A good agent usually makes the expected calls in the expected order.
    if len(wanted) == len(made) and all(map(rules.same, wanted, made)):
        return [(place, place) for place in range(len(made))]  # the usual case

    if mode in ORDERED:
        matched = all_in_order(
            len(wanted), len(made), lambda one, other: rules.same(wanted[one], made[other])
        )
        if matched is not None:
            return matched
        if len(wanted) * len(made) <= _FEW_PAIRS:
            bits = [1 << place for place in range(len(wanted))]
            fitting = [
                sum(bit for bit, call in zip(bits, wanted, strict=True) if rules.same(call, each))
                for each in made
            ]
            return longest_common(len(wanted), fitting)
    else:
        pairs = equal_pairs(wanted, made, rules)
        if len(pairs) == min(len(wanted), len(made)):
            return pairs
    kinds = fitting_kinds(wanted, made, rules)
    if mode in ORDERED:
        return longest_common(len(wanted), fitting_bits(kinds, len(made)))
    return best_pairs(kinds)


def turn_score(mode: Mode, paired: int, wanted: int, made: int) -> float:
    """Score a turn, 0 to 1, from how many calls were paired, expected and made.

    ``exact``: 1 if all were paired and there were no others. ``in_order``, ``any_order`` and
    ``single_tool``: 1 if all expected calls were paired. ``partial`` and ``recall``: paired /
    expected. ``precision``: paired / made. ``f1``: 2 * paired / (expected + made), which is the
    harmonic mean of recall and precision. If the divisor is 0, the score is 1 if nothing was
    missed.
    """
    if mode == "exact":
        return float(paired == wanted == made)
    if mode in ("partial", "recall"):
        return paired / wanted if wanted else 1.0
    if mode == "precision":
        return paired / made if made else float(wanted == 0)
    if mode == "f1":
        return 2 * paired / (wanted + made) if wanted + made else 1.0
    return float(paired == wanted)
