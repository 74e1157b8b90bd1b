"""Splits cases into train, select and held out, so that a gain on the held-out part is real.

Cases with the same content form a group that is never in two parts: cases of one conversation,
cases that a user grouped, and texts that are nearly the same. Each part gets its share of every
sub-agent. The draw depends only on the seed and the cases.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from baton.evaluators.matching.rouge import words
from baton.model import Case, Content, InputError, StandIns, counted

from .result import Split

SHARES = (0.3, 0.3, 0.4)
"""The shares of the cases for train, select and held out. The last is the largest: a test needs
more cases than a choice, and it is played for only one candidate."""
LEAST_GROUPS = 6
"""The minimum number of groups. With fewer than two per part, nothing can be proven: one case can
always be luck."""
FEW_HELD_OUT = 8
"""With fewer held-out groups, only a gain on nearly all of them can be distinguished from chance:
of 8 groups, 4 that improve and none that get worse give a p of about 0.05."""
_ALIKE = 0.8
"""Two texts count as the same case if they share at least this share of all their word pairs.
`Please refund order 4411, it arrived broken and I want my money back` and the same text with
another number have about 0.8, given their length; two requests about one topic have below 0.4."""
_SHORT = 6
"""Texts with fewer words are near-duplicates only if they are equal: the difference between `Refund
order 41, please` and `Refund order 42, please` may be the point of a case."""
_READ = 2_000
"""Maximum words of a text to compare: a limit for hostile input; the topic of a case shows
earlier."""
_LONGEST = 1_000
"""Maximum bits of a number to convert to text: Python refuses to write more than 4,300 digits."""
_MOST_COMPARED = 50
"""Maximum texts that a text is compared with for one shared word pair. The rarest pairs come first,
so only texts that were made to be alike have more, and these are linked through one another."""


class Unit(NamedTuple):
    """A unit of the draw: a case, or a labelled text.

    Args:
        id: its unique name.
        groups: names it shares with other units that must be in the same part.
        issues: the same, as in ``issue:KEY``, but weaker: they are ignored if there is no other
            way.
        stratum: each part gets its share of each stratum, for example of a sub-agent's cases.
        text: the text for finding duplicates.
    """

    id: str
    groups: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()
    stratum: str = ""
    text: str = ""


class Drawn(NamedTuple):
    """The parts, the group of each unit by its id, and notes for the reader."""

    split: Split
    groups: dict[str, str]
    notes: list[str]


def units_of(cases: Iterable[Case]) -> list[Unit]:
    """Return cases as units of the draw.

    A conversation is one trace that dispatch cases come from, or one session. A user groups cases
    with ``metadata: {group: NAME}`` or a tag ``group:NAME``. Cases that were promoted from an issue
    have its tag.
    """
    return [_unit(case) for case in cases]


def _unit(case: Case) -> Unit:
    groups = [tag for tag in case.tags if tag.startswith("group:")]
    given = case.metadata.get("group")
    if isinstance(given, str | int) and str(given):
        groups.append(f"group:{given}")
    origin = case.dispatch.origin if case.dispatch is not None else None
    if origin is not None and origin.trace:
        groups.append(f"conversation:{origin.trace}")
    if case.session.id:
        groups.append(f"session:{case.session.id}")
    issues = tuple(tag for tag in case.tags if tag.startswith("issue:"))
    return Unit(case.id, tuple(groups), issues, stratum_of(case), asked_in(case))


def stratum_of(case: Case) -> str:
    """Return the sub-agent that a case is about; empty if it does not name one."""
    if (moment := case.dispatch) is not None:
        if moment.form == "decision" and moment.expected.to is not None:
            return " ".join(moment.expected.to) or "nobody"
        return moment.call.to
    for turn in case.turns:
        if turn.dispatches:
            return " ".join(each.to for each in turn.dispatches)
        if turn.agents and len(turn.agents) > 1:
            return " ".join(str(each) for each in turn.agents[1:])
    return ""


def asked_in(case: Case) -> str:
    """Return what a case asks for: its messages; of a dispatch case, what the dispatch asks for."""
    moment = case.dispatch
    if moment is not None:
        said = [each.text for each in moment.context if each.role == "user" and each.text]
        prompt = moment.call.prompt.plain() if moment.call.prompt is not None else ""
        asked = "\n".join([*said[-1:], prompt if moment.form == "child" or not said else ""])
        # Several moments of one conversation are already one group, by their trace.
        return asked.strip()
    if case.scenario is not None:
        return f"{case.scenario.start}\n{case.scenario.plan}"
    return "\n".join(turn.input.plain() for turn in case.turns)


def texts_of(case: Case) -> list[str]:
    """Return the texts of a case that a candidate must not contain: requests and expectations."""
    texts = [asked_in(case)]
    for turn in case.turns:
        texts += [each.plain() for each in (turn.input, turn.response) if each is not None]
        texts += turn.response_contains or []
        texts += _leaves([turn.structured, *(call.arguments for call in turn.tool_calls or [])])
        for handed in turn.dispatches or []:
            texts += handed.prompt_contains or []
        for visit in turn.interactions or []:
            texts += visit.says or []
    texts += _leaves(case.final_state)
    if case.stand_ins is not None:
        texts += _answered(case.stand_ins)
    if (moment := case.dispatch) is not None:
        texts += [each.text for each in moment.context if each.role == "user" and each.text]
        made = (moment.call.prompt, moment.call.result)
        texts += [each.plain() for each in made if each is not None]
        texts += [*_leaves(moment.call.arguments)]
        texts += [*(moment.expected.prompt_contains or []), *(moment.expected.follow_through or [])]
    return [text for text in dict.fromkeys(texts) if text.strip()]


def _answered(stand_ins: StandIns) -> Iterator[str]:
    """Yield the answers of stand-ins for tools and agents, and the calls that they answer."""
    own = [*stand_ins.tools.values(), *stand_ins.agents.values()]
    own += [tool for agent in stand_ins.agents.values() for tool in agent.tools.values()]
    for answer in (answer for each in own for answer in each.answers):
        yield from _leaves([answer.when, answer.result, answer.error])
    for recorded in stand_ins.recorded:
        yield from _leaves([recorded.input, recorded.result, recorded.error])


def _leaves(value: Any) -> Iterator[str]:
    """Yield the texts, numbers and keys of a JSON value; a key may be an id, as in `{"4411": 2}`.

    Nested JSON in a text is yielded as the text: ids are found in it as well.
    """
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Content):
            yield each.plain()
        elif isinstance(each, Mapping):
            waiting += [*map(str, each), *each.values()]
        elif isinstance(each, list | tuple):
            waiting += each
        elif isinstance(each, bool):
            continue
        elif isinstance(each, str | float) or (
            isinstance(each, int) and each.bit_length() < _LONGEST
        ):
            yield str(each)


def draw(units: Sequence[Unit], seed: int, shares: tuple[float, float, float] = SHARES) -> Drawn:
    """Draw units into train, select and held out.

    Args:
        units: the units to draw.
        seed: the same units and seed give the same parts, regardless of the order of the units.
        shares: the shares of train, select and held out.

    Raises:
        InputError: two units have the same id, or there are too few groups to prove anything.
    """
    repeated = [id_ for id_, times in Counter(unit.id for unit in units).items() if times > 1]
    if repeated:
        raise InputError(f"several cases have the id `{repeated[0]}`: give each an id of its own")
    ordered = sorted(units, key=lambda unit: unit.id)
    notes: list[str] = []
    group_of = _grouped(ordered, by_issue=True)
    if len(set(group_of.values())) < LEAST_GROUPS and any(unit.issues for unit in units):
        apart = _grouped(ordered, by_issue=False)
        if len(set(apart.values())) >= LEAST_GROUPS:
            group_of = apart
            notes.append(
                "nearly all cases are of the same issues, so one issue is in several parts: what "
                "is proven holds for these issues, but may not hold for others"
            )
    sizes = Counter(group_of.values())
    if len(sizes) < LEAST_GROUPS:
        raise InputError(
            f"too few cases to prove a gain: {len(sizes)} of {len(units)} count (near-duplicates "
            f"and cases of one conversation count as one), and {LEAST_GROUPS} are needed"
        )
    parts = _parts(ordered, group_of, seed, shares)
    held_out = {group_of[id_] for id_ in parts[2]}
    if len(held_out) < FEW_HELD_OUT:
        notes.append(
            f"{counted(len(held_out), 'group')} of cases held out: only a large gain can be told "
            "from chance"
        )
    joined = len(units) - len(sizes)
    if joined:
        notes.append(
            f"{counted(len(units), 'case')} are {counted(len(sizes), 'group')}, of one "
            "conversation or nearly the same: a group counts once"
        )
    split = Split(train=parts[0], select=parts[1], held_out=parts[2], seed=seed)
    return Drawn(split, group_of, notes)


def _parts(
    units: Sequence[Unit], group_of: Mapping[str, str], seed: int, shares: Sequence[float]
) -> tuple[list[str], list[str], list[str]]:
    members: defaultdict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        members[group_of[unit.id]].append(unit)
    strata: defaultdict[str, list[str]] = defaultdict(list)
    for group, own in members.items():
        # A group with several sub-agents counts for the most frequent one.
        strata[Counter(unit.stratum for unit in own).most_common(1)[0][0]].append(group)
    chance = random.Random(f"split {seed}")  # noqa: S311 - no secret is made of it
    parts: tuple[list[str], list[str], list[str]] = ([], [], [])
    filled = [0, 0, 0]
    begun = 0
    for _, groups in sorted(strata.items()):
        chance.shuffle(groups)
        # Large groups come first: small ones then even out the parts.
        groups.sort(key=lambda group: -len(members[group]))
        taken = [0, 0, 0]
        whole = sum(len(members[group]) for group in groups)
        begun += whole
        for group in groups:
            # Take the part that is furthest below its share, in this stratum and in all strata so
            # far: a stratum with one or two cases cannot be distributed by itself.
            lacks = [shares[at] * (whole + begun) - taken[at] - filled[at] for at in range(3)]
            part = lacks.index(max(lacks))
            taken[part] += len(members[group])
            filled[part] += len(members[group])
            parts[part].extend(unit.id for unit in members[group])
    if not all(parts):
        _fill_empty(parts, group_of)
    for part_ in parts:
        part_.sort()
    return parts


def _fill_empty(parts: tuple[list[str], ...], group_of: Mapping[str, str]) -> None:
    """Move a group into each empty part: strata with only one group may all go to one part."""
    for empty in (part for part in parts if not part):
        largest = max(parts, key=lambda part: len({group_of[id_] for id_ in part}))
        moved = group_of[largest[-1]]
        empty += [id_ for id_ in largest if group_of[id_] == moved]
        largest[:] = [id_ for id_ in largest if group_of[id_] != moved]


class _Joined:
    """Sets of units that are joined step by step (union-find)."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def of(self, place: int) -> int:
        while self._above[place] != place:
            self._above[place] = self._above[self._above[place]]
            place = self._above[place]
        return place

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self.of(one), self.of(other)))
        self._above[second] = first


def _grouped(units: Sequence[Unit], *, by_issue: bool) -> dict[str, str]:
    """Return the group of each unit by its id: the id of the first unit in it."""
    joined = _Joined(len(units))
    first: dict[str, int] = {}
    texts = [[word.casefold() for word in words(unit.text)[:_READ]] for unit in units]
    for place, unit in enumerate(units):
        same = [f"text {' '.join(texts[place])}"] if texts[place] else []
        for name in (*unit.groups, *(unit.issues if by_issue else ()), *same):
            joined.join(first.setdefault(name, place), place)
    _join_alike(texts, joined)
    return {unit.id: units[joined.of(place)].id for place, unit in enumerate(units)}


def _join_alike(texts: Sequence[Sequence[str]], joined: _Joined) -> None:
    """Join texts that are nearly the same.

    Two sets whose overlap is at least ``t`` of their union share one of the first
    ``n - ceil(t n) + 1`` elements in any common order (the prefix filter: S. Chaudhuri, V. Ganti
    and R. Kaushik, "A primitive operator for similarity joins", ICDE 2006); the rarest come first.
    """
    pairs = [frozenset(pairwise(text)) if len(text) >= _SHORT else frozenset() for text in texts]
    often = Counter(pair for own in pairs for pair in own)
    seen: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for place, own in enumerate(pairs):
        ordered = sorted(own, key=lambda pair: (often[pair], pair))
        prefix = ordered[: len(own) - int(-(-_ALIKE * len(own) // 1)) + 1] if own else []
        others = dict.fromkeys(other for pair in prefix for other in seen[pair])
        for other in [*others][-_MOST_COMPARED:]:
            if joined.of(other) == joined.of(place):
                continue
            if len(own & pairs[other]) >= _ALIKE * len(own | pairs[other]):
                joined.join(other, place)
        for pair in prefix:
            seen[pair].append(place)
