"""Is one value of a request replaced in a prompt that carries the others?

"Refund INV-60913, keep the 5 % fee, plan until 30 June" for "keep the 15 % fee": the prompt has the
same values as the request, except one of a kind. A caller that splits the work leaves values out,
and a caller that adds something adds values. One that has another value in the same place changed
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence, Set
from itertools import combinations
from typing import NamedTuple

from .changed_values import is_shifted, keeps_limit
from .facts import Fact
from .lazy_patterns import regex
from .normalise_values import in_digits
from .other_events import is_of_other_event
from .restated_values import has_value_derived_from, may_be_worked_out
from .sent_context import Sent
from .text_values import Value, are_near, is_converted, unit_size, unit_text, values_of
from .words import COMMON

# How many other values have to be the same ones. With two, the words around the replaced one have
# to be the same as well: "change contract K-190 to an hourly rate of 58 USD" for 52 USD.
_SAME = 3
_SAME_WITH_WORDS = 2
_COMMON_WORDS = 2
# The share of the values of a request that a prompt has to carry. A prompt with fewer is about a
# part of the work, and that can have values of its own.
_CARRIED = 0.5
# A caller chooses or works out such a value: "in batches of 100", "18 to 20 kg in all".
_CHOSEN = regex(
    r"""\b(?:first|top|sample\w*|batch\w*|chunks?|groups?|steps?|e\.?g|example\w*|about|around
        |roughly|approx\w*|circa|some|each|per|every|total\w*|together|altogether|sum|in\ all
        |combined|overall|more|extra|another|additional\w*|other|further|remaining|rest|left|spare
        |reserve|buffer|safety|including|plus|minus|net|gross|average|at\ least|over|above|than
        |options?|alternativ\w*|candidates?|ideas?|suggest\w*|propos\w*|compare|between|range
        |remind\w*|deadline|reply|answer|report\w*|before|after|earlier|later|until|by|from|ab
        |insgesamt|zusammen|gesamt|je|pro|etwa|rund|ca|mindestens|bis|vor|nach|noch|weitere\w*
        |environ|total\w*|par|chaque|avant|après|d[eé]s|jusqu\w*|aproximad\w*|cada|por|antes
        |después|hasta|desde)\b|[~≈+×*=<>≤≥–]""",
    re.VERBOSE | re.IGNORECASE,
)


# No one adds a temperature to a count: "bay 3" and 19 °C make no 16 °C.
_NOT_ADDED = frozenset({"temperature", "share", "speed", "date", "time"})
# Each value of longer texts would be compared with each other one.
_LONGEST = 4000


def substituted_in(sent: Sent) -> list[tuple[Fact, str]]:
    """Return the value that a prompt replaces, with its sentence, if it carries the others."""
    if not sent.undivided or not sent.values or sent.only_asks:
        return []
    if max(len(sent.request.text), len(sent.prompt)) > _LONGEST:
        return []
    asked = values_of(sent.request.text)
    substituted = _substituted(asked, sent.values, sent.given.keys, lambda: sent.known_before.keys)
    if substituted is None:
        return []
    lost = substituted.lost
    if is_of_other_event(lost.fact, lost.sentence):
        return []
    if keeps_limit(lost, substituted.value) or may_be_worked_out(lost.fact, lost.sentence, sent):
        return []
    if lost.kind not in _NOT_ADDED and has_value_derived_from(lost.fact, sent):
        return []
    if lost.kind not in _NOT_ADDED and _is_calculated(substituted.value, asked):
        return []
    return [] if sent.elsewhere.holds(lost.fact) else [(lost.fact, lost.sentence)]


def _is_calculated(value: Value, asked: Sequence[Value]) -> bool:
    """Return whether a value is calculated from others of a request: a sum, a rest, a multiple.

    "94.80 EUR instead of 52.90 EUR" makes a claim of 41.90 EUR.
    """
    sizes = {size for v in asked if v.kind == value.kind for size in v.sizes}
    counts = {n for v in asked if v.kind == "number" for n in v.numbers if n > 1}
    made = [each for a, b in combinations(sizes, 2) for each in (a + b, abs(a - b))]
    made += [each for a in sizes for n in counts for each in (a * n, a / n)]
    return are_near(value.sizes, made, _CALCULATED)


class _Substituted(NamedTuple):
    """A value of a request, and the value that a prompt has in its place."""

    lost: Value
    value: Value


def _substituted(
    asked: Sequence[Value],
    sent: Sequence[Value],
    given: Set[str],
    known: Callable[[], Set[str]],
) -> _Substituted | None:
    """Return the only value of its kind that a prompt replaces, if it carries the others.

    ``asked`` are the values of the request, ``sent`` those of the prompt, ``given`` the keys of all
    that the receiver got. ``known`` returns the keys of other texts that the caller had.
    """
    gone = _distinct(v for v in asked if not any(_is_same(v, each) for each in sent))
    new = _distinct(v for v in sent if not any(_is_same(v, each) for each in asked))
    kept = len(_distinct(asked)) - len(gone)
    if kept < _SAME_WITH_WORDS or kept < _CARRIED * len(_distinct(asked)):
        return None
    for lost in gone:
        mine = [v for v in gone if _is_comparable(lost, v)]
        theirs = [v for v in new if _is_comparable(lost, v)]
        if len(mine) != 1 or len(theirs) != 1 or _is_slight(lost, theirs[0]):
            continue
        value = theirs[0]
        if _keys(lost) & given or _keys(value) & known():
            continue
        if _chosen(value) - _chosen(lost):
            continue
        words = len(lost.words & value.words)
        if kept < _SAME and words < _COMMON_WORDS:
            continue
        # "Due 21 days after 9 June": such a date or time can be worked out. And texts have many
        # durations: "a list of what to do in the next 10 minutes".
        if lost.kind in ("date", "time") and any(v.kind == "duration" for v in (*asked, *sent)):
            continue
        # 14:00 UTC is 15:00 CET.
        if lost.kind in ("date", "time") and is_shifted(lost, value, value.clause):
            continue
        # "Delivery at 18:00" for a meeting at 18:30: a sub-task has times of its own.
        if lost.kind in ("duration", "date", "time") and words < _COMMON_WORDS:
            continue
        return _Substituted(lost, value)
    return None


def _chosen(value: Value) -> set[str]:
    return {word.casefold() for word in _CHOSEN.findall(in_digits(value.clause))}


def _distinct(values: Iterable[Value]) -> list[Value]:
    return list({value.fact.keys: value for value in values}.values())


def _keys(value: Value) -> Set[str]:
    return value.fact.precise_keys or value.fact.keys


def _is_same(one: Value, other: Value) -> bool:
    mine, theirs = one.fact.precise_keys, other.fact.precise_keys
    if mine and theirs and one.kind == other.kind:
        return bool(mine & theirs) or is_converted(one, other)
    return bool(one.fact.keys & other.fact.keys)


def _is_comparable(lost: Value, other: Value) -> bool:
    """Return whether two values are of one kind: both in kg, both dates, both numbers of rooms."""
    if lost.kind != other.kind or lost.kind in ("number", "identifier"):
        noun = unit_text(lost)
        counts = lost.kind == other.kind == "number" and len(noun) > 2 and noun not in COMMON
        return counts and noun == unit_text(other)
    if lost.kind in ("date", "time"):
        return True
    return unit_size(lost) == unit_size(other)


# The largest distance of a value from what it is calculated from: cents.
_CALCULATED = 0.001
# 1,999 for 2,000: rounded.
_ROUNDED = 0.02


def _is_slight(lost: Value, value: Value) -> bool:
    if lost.kind in ("date", "time"):
        return False
    return any(
        abs(a - b) <= _ROUNDED * max(abs(a), abs(b)) for a in lost.sizes for b in value.sizes
    )
