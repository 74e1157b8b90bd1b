"""The outcome of a turn's comparison: rows for reports, and reasons and evidence for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import islice
from typing import Any

import msgspec

from baton.evaluators.base_evaluator import Details
from baton.evaluators.matching.assignment import Pair
from baton.evaluators.matching.call_rules import Made, OneCall
from baton.model import Evidence, ExpectedToolCall

# A reason is one line in a terminal; the rest is in the details.
_NAMED = 4
# A reason names two values in one line of a terminal.
_LONGEST_VALUE = 60
# The number of unpaired calls of a name that are examined for the one nearest to a missing call.
_LOOKED_AT = 10


class TurnCalls(msgspec.Struct, frozen=True):
    """A scored turn. Calls are given by their positions, from 0.

    ``nearest`` pairs missing calls with extra calls of the same name. ``extra_counts`` states
    whether an extra call is a fault. ``place`` holds the ids that represent the turn itself.
    ``elsewhere`` maps expected tools to the agents outside the scope that called them. ``others``
    are calls of delegates that no expectation is about, if one is missing.
    """

    number: int
    score: float
    wanted: Sequence[ExpectedToolCall]
    made: Sequence[Made]
    pairs: Sequence[Pair]
    missing: list[int]
    extra: list[int]
    nearest: list[Pair]
    one_call: OneCall
    extra_counts: bool
    place: list[str]
    elsewhere: Mapping[str, str]
    others: Sequence[Made] = ()


def turn_calls(
    number: int,
    score: float,
    wanted: Sequence[ExpectedToolCall],
    made: Sequence[Made],
    pairs: Sequence[Pair],
    *,
    one_call: OneCall,
    extra_counts: bool,
    place: list[str],
    elsewhere: Mapping[str, str] | None = None,
) -> TurnCalls:
    """Find the missing and the extra calls, and which of them belong together."""
    if len(pairs) == len(wanted) == len(made):  # the usual case: nothing is left over
        return TurnCalls(
            number, score, wanted, made, pairs, [], [], [], one_call, extra_counts, place, {}
        )
    met, used = {one for one, _ in pairs}, {other for _, other in pairs}
    missing = [place for place in range(len(wanted)) if place not in met]
    extra = [place for place in range(len(made)) if place not in used]
    free: dict[str, dict[int, None]] = {}
    for other in extra:
        free.setdefault(made[other].name, {})[other] = None
    nearest: list[Pair] = []
    for one in missing:
        name = wanted[one].name
        names = [name] if name in free else [each for each in free if one_call.name(name, each)]
        near = [other for each in names for other in islice(free[each], _LOOKED_AT)]
        if near:
            best = min(near, key=lambda other: _distance(one_call, wanted[one], made[other]))
            del free[made[best].name][best]
            nearest.append((one, best))
    return TurnCalls(
        number,
        score,
        wanted,
        made,
        pairs,
        missing,
        extra,
        nearest,
        one_call,
        extra_counts,
        place,
        elsewhere or {},
    )


class TurnDetails(Details, kw_only=True):
    """Details of a turn whose calls were compared."""

    turn: int
    score: float
    expected: list[dict[str, Any]]
    """All expected calls: ``name``, ``arguments``, ``agent``."""
    actual: list[dict[str, Any]]
    """All calls that were made, with their ``id``."""
    matched: list[list[int]]
    """Pairs of positions in both lists, from 0."""
    missing: list[int]
    extra: list[int]
    """Positions that are not in a pair."""
    differences: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    """For each missing call, the nearest unpaired call of that name, with the arguments that differ
    (none if only the order differs)."""
    step_share: float | msgspec.UnsetType = msgspec.UNSET
    """For ADK's metric: the share of the expected calls that were made in order."""


class CallDetails(Details, kw_only=True):
    """Details of all turns whose calls were compared."""

    step_average: float | msgspec.UnsetType = msgspec.UNSET
    turns: list[TurnDetails]
    fix: str | msgspec.UnsetType = msgspec.UNSET
    """A correction of the case or the config, if one is clear."""


def turn_details(
    turn: TurnCalls, step_share: float | msgspec.UnsetType = msgspec.UNSET
) -> TurnDetails:
    """Return a turn as details."""
    return TurnDetails(
        turn=turn.number,
        score=turn.score,
        expected=[_wanted_row(call) for call in turn.wanted],
        actual=[_made_row(call) for call in turn.made],
        matched=[list(pair) for pair in turn.pairs],
        missing=turn.missing,
        extra=turn.extra,
        differences=[_difference(turn, pair) for pair in turn.nearest] or msgspec.UNSET,
        step_share=step_share,
    )


def wrong(turn: TurnCalls) -> str:
    """Describe the faults of a turn, as part of a sentence."""
    others = _by_others(turn)
    if turn.wanted and not turn.made:
        names = _list([call.name for call in turn.wanted])
        return f"turn {turn.number}: {others or 'nothing was called'}; expected {names}"
    explained = {one for one, _ in turn.nearest}
    named = {other for _, other in turn.nearest}
    differences = [_difference_text(turn, pair) for pair in turn.nearest]
    if lost := [turn.wanted[one] for one in turn.missing if one not in explained]:
        # "called `look`; missing `look`" would contradict itself.
        called_names = {call.name for call in turn.made}
        texts = [_lost(call, called_names) for call in lost]
        differences.append(f"missing {_in_short(texts)}")
    more = [turn.made[other].name for other in turn.extra if other not in named]
    if more and turn.extra_counts:
        differences.append(f"not expected {_list(more)}")
    if len(differences) > _NAMED:
        differences = [*differences[:_NAMED], f"{len(differences) - _NAMED} more differences"]
    called = f"called {_list([call.name for call in turn.made])}"
    if others:
        called += f"; {others}"
    return f"turn {turn.number}: {called}; " + "; ".join(differences)


def _by_others(turn: TurnCalls) -> str:
    """Write what delegates called: "`billing` called `refund`, `lab` called `test`"."""
    by_agent: dict[str, list[str]] = {}
    for call in turn.others:
        by_agent.setdefault(call.agent, []).append(call.name)
    texts = [f"`{agent}` called {_list(names)}" for agent, names in by_agent.items()]
    if len(texts) > _NAMED:
        texts = [*texts[:_NAMED], f"{len(texts) - _NAMED} more agents called tools"]
    return ", ".join(texts)


def evidence(turn: TurnCalls) -> Evidence:
    """Name the calls that prove a turn wrong, or the runs in which a call is missing."""
    shown = {other for _, other in turn.nearest}
    if turn.extra_counts:
        shown |= set(turn.extra)
    ids = [turn.made[other].id for other in sorted(shown)]
    if not ids:
        return Evidence(ids=turn.place, quote=_list([call.name for call in turn.made]))
    quotes = [_call_text(turn.made[other]) for other in sorted(shown)[:_NAMED]]
    return Evidence(ids=ids, quote=", ".join(quotes))


def only_more_arguments(turn: TurnCalls) -> bool:
    """Return whether the only fault is that calls have unexpected arguments."""
    differing = [_differing(turn, pair) for pair in turn.nearest]
    return len(turn.nearest) == len(turn.missing) > 0 and all(
        difference and not any(expected for expected, _ in difference.values())
        for difference in differing
    )


def _wanted_row(call: ExpectedToolCall) -> dict[str, Any]:
    row: dict[str, Any] = {"name": call.name}
    if call.arguments is not None:
        row["arguments"] = call.arguments
    if call.agent is not None:
        row["agent"] = call.agent
    return row


def _made_row(call: Made) -> dict[str, Any]:
    row: dict[str, Any] = {"id": call.id, "name": call.name}
    if call.arguments is not None:
        row["arguments"] = call.arguments
    row["agent"] = call.agent
    return row


def _differing(turn: TurnCalls, pair: Pair) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return each differing argument with its values, or an empty result if there is none.

    An empty name stands for the arguments as a whole.
    """
    wanted, made = turn.wanted[pair[0]], turn.made[pair[1]]
    expected = {"": wanted.arguments, **(wanted.arguments or {})}
    actual = {"": made.arguments, **made.mapping}
    return {
        key: (
            {"expected": expected[key]} if key in expected else {},
            {"actual": actual[key]} if key in actual else {},
        )
        for key in turn.one_call.differing(wanted, made)
    }


def _distance(one_call: OneCall, wanted: ExpectedToolCall, made: Made) -> int:
    return _by_another(wanted, made) + sum(1 for _ in one_call.differing(wanted, made))


def _by_another(wanted: ExpectedToolCall, made: Made) -> bool:
    return wanted.agent is not None and wanted.agent not in made.agents


def _difference(turn: TurnCalls, pair: Pair) -> dict[str, Any]:
    wanted, made = turn.wanted[pair[0]], turn.made[pair[1]]
    row: dict[str, Any] = {"expected": pair[0], "actual": pair[1]}
    arguments = {key: {**one, **other} for key, (one, other) in _differing(turn, pair).items()}
    row["arguments"] = arguments
    if _by_another(wanted, made):
        row["agent"] = {"expected": wanted.agent, "actual": made.agent}
    return row


def _difference_text(turn: TurnCalls, pair: Pair) -> str:
    wanted, made = turn.wanted[pair[0]], turn.made[pair[1]]
    differing = _differing(turn, pair)
    if differing:
        key, (expected, actual) = next(iter(differing.items()))
        rule = turn.one_call.rule(made.name, key)
        one = rule.in_words() if rule else None
        if one is None:
            one = _short(expected["expected"]) if expected else "none"
        other = _short(actual["actual"]) if actual else "none"
        more = f" ({len(differing)} arguments differ)" if len(differing) > 1 else ""
        return f"`{made.name}({key})`: expected {one}, got {other}{more}"
    if _by_another(wanted, made):
        return f"`{made.name}`: expected from `{wanted.agent}`, called by `{made.agent}`"
    return f"`{made.name}` was called out of order"


def _call_text(call: Made) -> str:
    text = ", ".join(f"{key}={_short(value)}" for key, value in list(call.mapping.items())[:_NAMED])
    return f"{call.name}({text})"


def _lost(call: ExpectedToolCall, made: Set[str]) -> str:
    if call.agent is not None:
        return f"`{call.name}` by `{call.agent}`"
    return f"another `{call.name}`" if call.name in made else f"`{call.name}`"


def _list(names: Sequence[str]) -> str:
    return _in_short([f"`{name}`" for name in names]) if names else "no call"


def _in_short(texts: Sequence[str]) -> str:
    text = ", ".join(texts[:_NAMED])
    return text if len(texts) <= _NAMED else f"{text} and {len(texts) - _NAMED} more"


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
