"""Does a caller keep to the limits that a result states?

"At most 900 EUR" allows 850 EUR, and "MAX_ATTEMPTS must stay 3" allows no other number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from baton.model import ToolCall

from .finding import changes_something
from .known_values import Known
from .lazy_patterns import regex
from .text_values import Value, are_near, is_slip, moments, values_of

# --- Bounds

# "Eleven samples are below 100 mg/kg" is true of a value of 0.4 mg/kg.
_BELOW = regex(
    r"(?:\b(?:under|below|up to|at most|(?:less|fewer|lower|smaller) than|(?:no|not) more than"
    r"|maximum(?: of)?|(?:no|not) later than|at the latest|unter|höchstens|maximal|spätestens"
    r"|(?:kleiner|weniger) als)|[<≤])\s*[€$£]?$",
    re.IGNORECASE,
)
# Right before a value, it bounds from below: "at least", "not before". "At least try" has no value
# behind it.
_ABOVE = regex(
    r"(?:\b(?:over|above|beyond|exceed|at least|(?:more|greater|higher|larger) than"
    r"|(?:no|not) (?:less|earlier) than|minimum(?: of)?|not before|über|mindestens|frühestens"
    r"|(?:größer|mehr) als)|[>≥])\s*[€$£]?$",
    re.IGNORECASE,
)
# "About 900 EUR" can be 890 EUR.
_APPROXIMATE = regex(
    r"(?:\b(?:nearly|almost|about|roughly|around|approx\w*\.?|circa|ca\.|some|etwa|rund|knapp|gut|fast"
    r"|environ|unos)|~)\s*[€$£]?$",
    re.IGNORECASE,
)
# A negation makes a bound of its verb: "do not raise it", "darf nicht".
_DENIED = regex(r"\b(?:not|never|no|nicht|nie|kein\w*)\b|n['’]t\b", re.IGNORECASE)
# "Do not raise pool_size", "must not exceed": the value is a limit in one direction.
_RISES = regex(r"\b(?:rais|increas|exceed|grow|go over|erhöh)", re.IGNORECASE)
# A denied fall is a bound from below: "must not drop under 5".
_FALLS = regex(r"\b(?:lower|reduc|decreas|drop|fall|go under|senk)", re.IGNORECASE)
# These are limits themselves: the "no" in "no more than 5" reverses nothing.
_WHOLE_LIMIT = regex(
    r"\b(?:at (?:most|least)|(?:no|not) (?:more|less|later|earlier) than)\s*$", re.IGNORECASE
)


def keeps_to(value: Value, bound: Value) -> bool:
    """Return whether the result allows a value: 850 EUR for "at most 900 EUR".

    A value that is itself a bound ("at most 800 EUR") is compared with the result's bound.
    """
    if _limit(_before(value.clause, value)) is not None:
        return False
    before = _before(bound.clause, bound)
    if _APPROXIMATE.search(before) and are_near(value.sizes, bound.sizes, 0.15):
        return not is_slip(value, bound)
    return _is_beyond(value, bound, before) is False


def is_within(value: Value, bound: Value) -> bool:
    """Return whether a value of a result is within the bound that a caller names."""
    return _is_beyond(value, bound, _before(bound.clause, bound)) is False


def _is_beyond(value: Value, bound: Value, before: str) -> bool | None:
    """Return whether a value is on the wrong side of a bound, or ``None`` if it is not a bound."""
    limit = _limit(before)
    mine, theirs = [*moments(value.fact.keys)], [*moments(bound.fact.keys)]
    if not mine or not theirs:
        mine, theirs = list(value.sizes), list(bound.sizes)
    if limit is None or not mine or not theirs:
        return None
    return min(mine) > max(theirs) if limit == "most" else max(mine) < min(theirs)


def _limit(before: str) -> Literal["most", "least"] | None:
    """Return the kind of bound that the words before a value express."""
    below, above = _BELOW.search(before), _ABOVE.search(before)
    denied = _DENIED.search(before) is not None
    if below or above:
        # "Never below 8" is at least 8, and "must not exceed 20" at most 20.
        turned = denied and not _WHOLE_LIMIT.search(before)
        return "most" if (below is not None) != turned else "least"
    if denied and (_RISES.search(before) or _FALLS.search(before)):
        return "most" if _RISES.search(before) else "least"
    return None


def _before(text: str, value: Value) -> str:
    """Return what stands before a value in a text."""
    return text[: max(0, text.rfind(value.fact.text))].rstrip()


# "Open from 11 to 5" for 11 to 17, and "decide before 2029" for the end of 2028.
_HOUR_TO = regex(r"\b\d{1,2}\s?(?:to|until|till|bis|à|a|-|–)\s?$", re.IGNORECASE)
_BEFORE_YEAR = regex(r"\b(?:before|vor|avant|antes de)\s?$", re.IGNORECASE)
_END_OF_YEAR = regex(r"\b(?:end of|until|by|ende|bis|fin|finales de|hasta)\s?$", re.IGNORECASE)


def is_same_end(value: Value, other: Value) -> bool:
    """Return whether two numbers are the same hour or the same end of a year."""
    before, theirs = _before(value.clause, value), _before(other.clause, other)
    for mine in value.numbers:
        for number in other.numbers:
            if abs(mine - number) == 12 and max(mine, number) <= 24:
                return _HOUR_TO.search(before) is not None and _HOUR_TO.search(theirs) is not None
            if mine - number == 1 and 1900 <= number <= 2100:
                ends = _END_OF_YEAR.search(theirs) is not None
                return ends and _BEFORE_YEAR.search(before) is not None
    return False


# --- Settings

# A setting: `MAX_ATTEMPTS`, `pool_size`, `poolSize`.
_SETTING = r"\w*_\w+|[A-Z]{3,}|[a-z]+[A-Z]\w*"
# Something that may not be changed according to a result: "MAX_ATTEMPTS must stay 3", "keep
# MAX_ATTEMPTS at 3". "Keep an eye on pool_size: it is 12" forbids nothing.
_STAYS = regex(
    r"\b(?:(?:must|should|has to|have to|needs to) (?:stay|remain)|(?:must|may|can|should) not be"
    r"|unchanged|fixed (?:at|to)|(?:keep|leave) (?:\S+ ){1,3}(?:at|as)\b|muss (?:\S+ ){1,3}bleiben"
    r"|(?:do not|don't|never|must not|may not|darf nicht) (?:\S+ ){0,2}"
    r"(?:change|touch|edit|alter|modify|set|geändert))",
    re.IGNORECASE,
)


def broken_limit(value: Value, against: Known, text: str) -> Value | None:
    """Find a statement of the result about a setting that a value of the caller's text violates."""
    if value.kind != "number" or against.said.holds(value.fact) or not value.numbers:
        return None
    name = re.search(
        rf"({_SETTING})\W+(?:\w+\W+){{0,2}}{re.escape(value.fact.text)}(?!\w)", value.clause
    )
    if name is None:
        return None
    own = _identifiers(text)
    for other in against.values:
        part = _part_about(other, name[1])
        if part is None:
            continue
        theirs = _identifiers(part)
        # "max_connections of q-7 must stay 40" does not apply to q-8.
        of_another = theirs and own and not theirs & own
        if not of_another and _breaks(value, other, part):
            return other
    return None


def _part_about(other: Value, name: str) -> str | None:
    """Return the part of a sentence that states a number for this setting, and for no other."""
    if other.kind != "number":
        return None
    for part in re.split(r"[;:]\s", other.sentence):
        numbers = [v.numbers for v in values_of(part) if v.kind == "number"]
        if set(re.findall(rf"(?<![\w.])(?:{_SETTING})(?!\w)", part)) == {name} and numbers:
            # "Between 8 and 20" has two numbers, and nothing shows which one applies.
            return part if all(each == other.numbers for each in numbers) else None
    return None


def _breaks(value: Value, other: Value, part: str) -> bool:
    """Return whether a value breaks a stated limit: on the wrong side, or a different value."""
    beyond = _is_beyond(value, other, _before(part, other))
    return _STAYS.search(part) is not None if beyond is None else beyond


def _identifiers(text: str) -> frozenset[str]:
    """Return the keys of all names with digits in a text: `q-7`."""
    return frozenset(key for v in values_of(text) if v.kind == "identifier" for key in v.fact.keys)


def limits_broken_by(call: ToolCall, text: str, against: Known) -> Iterator[tuple[Value, Value]]:
    """Yield limits of a result, each with the value that a call set instead: `set(pool_size=80)`.

    ``text`` are the arguments of the call. A refused call changed nothing, and a call that only
    reads may ask about any value.
    """
    if call.status in ("refused", "failed") or not changes_something(call.name):
        return
    for name, number in _settings(call.arguments):
        if name not in against.result:
            continue
        for value in values_of(f"{name} = {number}"):
            limit = broken_limit(value, against, text)
            if limit is not None:
                yield limit, value


def _settings(arguments: Any) -> Iterator[tuple[str, float]]:
    """Yield the numbers in arguments, by name, including nested ones."""
    due = [arguments]
    while due:
        each = due.pop()
        for name, value in each.items() if isinstance(each, dict) else ():
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield str(name), value
            else:
                due.append(value)


# "I have set the retention to 60 days" reports a change; it is no question or proposal.
_HAS_CHANGED = regex(
    r"\b(?:set|changed|raised|lowered|updated|increased|reduced|switched|moved|extended|shortened|cut)\b"
    r"[^.;?!]{0,80}\bto\b",
    re.IGNORECASE,
)
# A result forbids a change: "the limit must stay at 40". "It stayed at 40" does not.
_MUST_STAY = regex(
    r"\b(?:must (?:stay|remain)|(?:must|may|can|should) not be (?:changed|raised|lowered|reduced"
    r"|increased|touched|altered|extended)|has to (?:stay|remain)|do(?: not|n't) (?:change|touch)"
    r"|fixed at)\b",
    re.IGNORECASE,
)
# Changes that are only talked about: "I asked whether it may be raised". "I raised it to 60" was
# done.
_NOT_DONE = regex(
    r"\b(?:whether|if|ask\w*|not|n't|would|could|can|may|should|approv\w*|agreed?|consent\w*"
    r"|permission|shall)\b|\?",
    re.IGNORECASE,
)


def changed_in_spite(value: Value, against: Known) -> Value | None:
    """Find something that must stay unchanged according to the result, but that changed."""
    if against.said.holds(value.fact) or not _MUST_STAY.search(against.result):
        return None
    if not _HAS_CHANGED.search(value.sentence) or _NOT_DONE.search(value.sentence):
        return None
    words = {key for v in values_of(value.sentence) for key in v.words}
    for other in against.values:
        if other.kind != value.kind or not _MUST_STAY.search(other.sentence):
            continue
        alike = [v for v in values_of(other.sentence) if v.kind == other.kind]
        own = {key for v in values_of(other.sentence) for key in v.words}
        if len(alike) == 1 and words & own:
            return other
    return None
