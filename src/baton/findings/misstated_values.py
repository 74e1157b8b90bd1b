"""Which value of a result does a caller state wrongly?

"The balance is 4,130.75 EUR" for 4,310.75 EUR: the digits, the unit or the words around a value
show which one it should be.
"""

from __future__ import annotations

import re

from .another_value import (
    gives_roughly,
    is_set_apart,
    is_worked_out,
    speaks_of_another,
    speaks_of_another_moment,
    speaks_otherwise,
    supposes,
    tells_when_to_come,
)
from .broken_limits import is_within
from .changed_values import is_transposed
from .converted_values import zone_of
from .derived_values import follows, is_at_rate, is_made_of, is_rest, is_sum
from .facts import Fact, read
from .known_values import CallerText, Known
from .lazy_patterns import regex
from .normalise_values import measure_key
from .same_row import after_name_of_row, in_same_row
from .text_values import (
    Value,
    are_near,
    days_of,
    decimal_places,
    is_framed_alike,
    is_slip,
    is_tens_apart,
    labels,
    moments,
    months_of,
    unit_text,
)
from .words import COMMON

# The maximum number of words in a clause that are in neither the result nor the request. Three are
# allowed with a number that looks like a slip (`4,130.75` for `4,310.75`), otherwise none: a clause
# with new words may be about something else ("Your train costs 9 GBP" after a flight of 64 GBP).
_NEW_WORDS_OF_SLIP = 3
_NEW_WORDS = 0
# Two are allowed next to the same label: "you sit in coach 17, seat 61" for coach 7.
_NEW_WORDS_OF_LABEL = 2

# A value with "about" can be this share off: "about 900 EUR" for 890 EUR.
_ROUGHLY = 0.15


def misstated(value: Value, stated: CallerText, against: Known) -> Value | None:
    """Return the value of a result that a value of a caller should equal, but does not.

    In calls, only what looks like a slip counts: their other values are the caller's own.
    """
    if stated.is_call:
        return _slip_or_same_words(value, stated, against)
    return (
        _in_same_frame(value, stated, against)
        or _slip_or_same_words(value, stated, against)
        or _only_moment(value, stated, against)
        or _labelled_slip(value, stated, against)
        or _in_equal_clause(value, stated, against)
        or in_same_row(value, stated, against)
        or after_name_of_row(value, stated, against)
    )


def _in_same_frame(value: Value, stated: CallerText, against: Known) -> Value | None:
    """Return the only value of a result that stands between the same words."""
    alike = [
        v
        for v in against.values
        if v.kind == value.kind
        and not _in_another_unit(v, value)
        and is_framed_alike(value, v, slip=_may_be_slip(value, v))
    ]
    if len(alike) != 1 or read(value.sentence).holds(alike[0].fact):
        return None
    if speaks_otherwise(value.clause, against.result) or supposes(value.clause):
        return None
    (other,) = alike
    if is_rest(value, other):
        return None
    if _may_be_slip(value, other):
        return other
    if gives_roughly(value.clause) and are_near(value.sizes, other.sizes, _ROUGHLY):
        return None
    return None if follows(value, stated.values, against) else other


def _slip_or_same_words(value: Value, stated: CallerText, against: Known) -> Value | None:
    """Return a missing value that differs like a slip, or is in a clause with the same words."""
    clause, result = value.clause, against.result
    alike = _comparable(value, stated.missing, against)
    if not alike or follows(value, stated.values, against):
        return None
    new = len(value.words - against.words)
    slips = [v for v in alike if _is_telling_slip(value, v, against)]
    if _has_own_name(value, against):
        slips = [v for v in slips if sorted(value.digits) == sorted(v.digits)]
    # "It should be over by 12 December" for 12 September.
    moved = [v for v in slips if _is_in_other_month(value, v)]
    if moved:
        # "I remind you on 14 February" of what expires on 14 March.
        if any(_is_months_later(value, v, against) for v in moved):
            return None
        if speaks_of_another(clause, result):
            return None
        if new <= _NEW_WORDS_OF_SLIP:
            return moved[0]
    if speaks_otherwise(clause, result):
        return None
    slips += [v for v in alike if _is_only(v, against) and _zeros_apart(value, v)]
    if value.kind == "number" and new <= _NEW_WORDS_OF_LABEL:
        slips += [v for v in alike if _is_labelled_alike(value, v, against)]
    if slips and new <= _NEW_WORDS_OF_SLIP:
        return slips[0]
    if stated.is_call or new > _NEW_WORDS or supposes(clause):
        return None
    if gives_roughly(clause) and any(are_near(value.sizes, v.sizes, _ROUGHLY) for v in alike):
        return None
    return _with_same_words(value, alike, against)


def _comparable(value: Value, missing: list[Value], against: Known) -> list[Value]:
    """Return the missing values that a value can stand for: those of its kind."""
    alike = [v for v in missing if v.kind == value.kind and not _in_another_unit(v, value)]
    alike = [v for v in alike if not is_rest(value, v)]
    if value.kind == "number":
        alike = [v for v in alike if not _counts_another(value, v)]
    if value.kind != "time":
        return alike
    # The result gives how long steps take, not when they are.
    if _MINUTES.search(against.result):
        return []
    alike = [v for v in alike if _context(v) & _context(value) and zone_of(v) == zone_of(value)]
    # "Leave home at eleven, then you're there by 11:45" for a boarding at 12:45.
    other = tells_when_to_come(value.clause) or gives_roughly(value.clause)
    return [] if other else [v for v in alike if _is_deadline(v) or not _is_deadline(value)]


# "6:00 (mm:ss)"
_MINUTES = regex(r"\b(?:mm?:ss|min:s(?:ec)?|minutes:seconds)\b", re.IGNORECASE)
# "Not through the tests by 03:52": a caller that plans sets times.
_UNTIL = regex(
    r"\b(?:by|until|till|no later than|(?:at the )?latest|bis|spätestens|jusqu['’]à|avant"
    r"|au plus tard|hasta|antes de(?: las?)?|a más tardar|entro(?: le)?|até|do|przed|voor"
    r"|uiterlijk)(?: (?:um|a las|às|at))?\s*\Z",
    re.IGNORECASE,
)


def _is_deadline(value: Value) -> bool:
    return _UNTIL.search(value.clause.partition(value.fact.text)[0]) is not None


# Beginnings of words that show that two nouns may be the same: "Kartons" and "Karton".
_STEM = 4


def _counts_another(one: Value, other: Value) -> bool:
    """Return whether two plain numbers count different things: 41 boxes, a box of 24 pieces."""
    nouns = [unit_text(each) for each in (one, other)]
    return all(map(_is_noun, nouns)) and nouns[0][:_STEM] != nouns[1][:_STEM]


def _counts_noun_without(clause: str, value: Value) -> bool:
    """Return whether a number counts things that a clause does not name: "41 boxes"."""
    noun = unit_text(value)
    return _is_noun(noun) and noun[:_STEM] not in clause.casefold()


def _is_noun(word: str) -> bool:
    return len(word) >= _STEM and word.isalpha() and word not in COMMON


def _is_in_other_month(value: Value, other: Value) -> bool:
    """Return whether two dates are the same day of different months."""
    if value.kind != "date":
        return False
    return bool(days_of(other) & days_of(value)) and not months_of(other) & months_of(value)


def _with_same_words(value: Value, alike: list[Value], against: Known) -> Value | None:
    """Return the value that the words around another show: "arrival 18:05" for "arrival 19:05"."""
    alike = [v for v in alike if not is_within(v, value) and not _is_far(v, value)]
    if not alike:
        return None
    shared = [len(_context(v) & _context(value)) for v in alike]
    # The only value of its unit in the result, in a clause that says nothing else: "86 % full".
    # "The penalty for four weeks" does not contradict a notice period of 90 days.
    only = [v for v in against.values if v.kind == value.kind and v.words & value.words]
    only = [v for v in only if not is_within(v, value) and not _is_far(v, value)]
    if value.kind not in ("number", "identifier") and only and _is_only(only[0], against):
        return only[0]
    most = max(shared)
    if most == 0 or shared.count(most) > 1:
        return None
    return alike[shared.index(most)]


def _in_equal_clause(value: Value, stated: CallerText, against: Known) -> Value | None:
    """Return the value of a result in a clause with the same words, next to the same word.

    "The ceiling is at 2.4 m" for "ceiling 4.2 m": what follows from other values by chance doesn't
    matter here. "A bit less than you were first told" means another value on purpose.
    """
    if value.kind == "identifier" or not value.words:
        return None
    same = [v for v in against.values if v.kind == value.kind and value.words <= v.words]
    if len(same) != 1 or same[0].words != value.words or same[0] not in stated.missing:
        return None
    (other,) = same
    if unit_text(value) != unit_text(other) or not labels(value) & labels(other):
        return None
    if _is_far(value, other) and not _may_be_slip(value, other):
        return None
    if speaks_otherwise(value.sentence, against.result) or supposes(value.clause):
        return None
    if gives_roughly(value.clause) or is_rest(value, other) or zone_of(other) != zone_of(value):
        return None
    return None if is_made_of(value, other, against) else other


# "186 seats" in two coaches and a double-decker of 78: more than double is rather worked out. Small
# numbers differ so much by one digit: 7 for 17.
_FAR = 2.0
_NOT_SMALL = 100


def _is_far(one: Value, other: Value) -> bool:
    """Return whether two amounts differ by more than a factor."""
    if one.kind in ("time", "date", "identifier"):
        return False
    pairs = [(abs(a), abs(b)) for a in one.sizes for b in other.sizes if a and b]
    if max((max(pair) for pair in pairs), default=0.0) < _NOT_SMALL:
        return False
    return all(max(pair) > _FAR * min(pair) for pair in pairs)


# "Doors open at 19:00" for "20:00": many times are full or half hours, so no new word is allowed.
_NEW_WORDS_OF_MOMENT = 1
_HALF_HOUR = 30


def _only_moment(value: Value, stated: CallerText, against: Known) -> Value | None:
    """Return the only time or date of a result, if an answer has one other, similar one instead.

    4:50 pm for 16:30, 27 January for 27 February: half of it is the same, and it occurs nowhere.
    """
    if value.kind not in ("time", "date"):
        return None
    other = next((v for v in stated.missing if v.kind == value.kind), None)
    if other is None or _moments_in(against.values, value) != 1:
        return None
    if _moments_in(stated.values, value) != 1:
        return None
    is_round = value.kind == "time" and all(m % _HALF_HOUR == 0 for m in moments(value.fact.keys))
    if len(value.words - against.words) > (0 if is_round else _NEW_WORDS_OF_MOMENT):
        return None
    if value.kind == "time" and not is_slip(value, other):
        return None
    if value.kind == "date" and not days_of(value) & days_of(other):
        return None
    if value.kind == "date" and _is_months_later(value, other, against):
        return None
    clause = value.clause
    if tells_when_to_come(clause) or gives_roughly(clause) or supposes(clause):
        return None
    if speaks_of_another_moment(clause) or zone_of(other) != zone_of(value):
        return None
    return None if follows(value, stated.values, against) else other


def _moments_in(values: list[Value], value: Value) -> int:
    """Count the different times or dates among values, whichever a value is."""
    return len({v.fact.keys for v in values if v.kind == value.kind})


# One is allowed beside a labelled value or swapped digits: "duty and VAT make 278.14 EUR
# altogether" for 287.14.
_NEW_WORDS_OF_LABELLED = 1
# "In the pilot, p was 0.04": a clause begins with what it is about.
_ELSEWHERE = regex(
    r"\s?(?:in|at|for|on|with|during|under|by|im|in|bei|für|mit|dans|pour|avec|en|para|con)\b",
    re.IGNORECASE,
)


def _labelled_slip(value: Value, stated: CallerText, against: Known) -> Value | None:
    """Return the value of a result that differs like a slip, next to the same word.

    "A deposit of 30 %" for "deposit 20 %", "p is 0.08" for "p = 0.008", and 278.14 EUR for 287.14
    EUR, which needs no word: so many digits are never swapped by chance.
    """
    if value.kind in ("date", "time", "identifier") or is_set_apart(value):
        return None
    new = len(value.words - against.words)
    if new > _NEW_WORDS_OF_LABELLED or supposes(value.clause):
        return None
    # "Last year your ferritin was 26".
    if any(speaks_of_another(each, against.result) for each in (value.clause, value.sentence)):
        return None
    before = value.sentence.partition(value.clause)[0]
    words = (fact for fact in read(before).facts if fact.kind == "word")
    if _ELSEWHERE.match(before) and any(not fact.keys & against.words for fact in words):
        return None
    for other in stated.missing:
        if other.kind != value.kind or not _is_labelled_slip(value, other, new, against):
            continue
        if not follows(value, stated.values, against) and not is_sum(value, against):
            return other
    return None


# So many digits are never swapped by chance.
_MANY_DIGITS = 5


def _is_labelled_slip(value: Value, other: Value, new: int, against: Known) -> bool:
    """Return whether two values differ like a slip, which a word beside both has to confirm."""
    mine, theirs = value.digits, other.digits
    if mine == theirs:
        return False
    same = bool(labels(value) & labels(other) - {unit_text(value)})
    if decimal_places(value) != decimal_places(other):
        # 0.08 and 0.008
        small = all(0 < n < 1 for v in (value, other) for n in v.numbers)
        return small and same and mine.strip("0") == theirs.strip("0")
    if is_transposed(mine, theirs):
        return len(mine) >= _MANY_DIGITS or (same and not new)
    # Without a unit, numbers of things differ in one digit by chance.
    if value.kind == "number" or not same or new or not len(mine) == len(theirs) > 1:
        return False
    if speaks_otherwise(value.clause, against.result) or gives_roughly(value.clause):
        return False
    return sum(a != b for a, b in zip(mine, theirs, strict=True)) == 1


# The minimum number of different digits for comparing values with reordered digits.
_SWAPPED = 3


def with_swapped_digits(value: Value, stated: CallerText, against: Known) -> Value | None:
    """Find a value of the result whose digits, three or more, are in another order: 73,180.

    This hardly ever happens by chance, so the words around it do not matter.
    """
    if against.said.holds(value.fact) or value.kind == "date":
        return None
    if value.kind == "time":
        return _with_swapped_minutes(value, stated.missing)
    if is_worked_out(value.clause, against.result):
        return None
    is_year = any(1900 <= number <= 2100 for number in value.numbers)
    if is_year or len(set(value.digits.strip("0"))) < _SWAPPED:
        return None
    for other in stated.missing:
        if other.kind != value.kind and "number" not in (other.kind, value.kind):
            continue
        # "Some 175 EUR cheaper" has the digits of 7.15 EUR by chance.
        pairs = [(a, b) for a in value.numbers for b in other.numbers if a and b]
        if pairs and all(max(a, b) >= 10 * min(a, b) for a, b in pairs):
            continue
        if value.digits == other.digits or not is_slip(value, other):
            continue
        if sorted(value.digits) == sorted(other.digits):
            # "Framed 102 cm" in a prompt after "at most 120 days".
            if stated.is_prompt and len(value.digits) < _MANY_DIGITS:
                if not value.words & other.words:
                    continue
            if is_sum(value, against) or is_at_rate(value, stated.values, against):
                return None
            return other
    return None


def _with_swapped_minutes(value: Value, missing: list[Value]) -> Value | None:
    """Find 8:24 for 8:42: the digits of the minutes are swapped, in the same hour."""
    if tells_when_to_come(value.clause) or gives_roughly(value.clause):
        return None
    mine = {key for key in value.fact.keys if key.startswith("t:")}
    for other in missing:
        turned = {key[:-2] + key[:-3:-1] for key in other.fact.keys if key.startswith("t:")}
        if turned - other.fact.keys and turned & mine and zone_of(other) == zone_of(value):
            return other
    return None


def in_other_unit(value: Value, against: Known) -> Value | None:
    """Find the same number with another unit: `4,310.75 USD` for `4,310.75 EUR`."""
    sizes = value.fact.unit_keys
    if not sizes or sizes & against.said.keys or len(value.digits) < 2:
        return None
    if len(value.words - against.words) > _NEW_WORDS:
        return None
    if speaks_otherwise(value.clause, against.result):
        return None
    for other in against.values:
        theirs = other.fact.unit_keys
        if not theirs or theirs & sizes or other.digits != value.digits:
            continue
        # "Within 10 minutes" and a job that takes 10 s share a short number by chance.
        named = value.words & other.words or labels(value) & labels(other)
        if len(value.digits.strip("0")) < 2 and not named:
            continue
        # 12 degrees and 12,000 EUR share a number by chance.
        if other.numbers & value.numbers and _family(other) == _family(value):
            return other
    return None


def _family(value: Value) -> str:
    """Return what is measured. All currencies count as one, and so do days and months."""
    kind = "duration" if value.kind == "months" else value.kind
    return "money" if kind.isupper() else kind


def _in_another_unit(one: Value, other: Value) -> bool:
    """Return whether values are equal per another unit: 9.8 g/dL are 98 g/L."""
    units = unit_text(one), unit_text(other)
    return units[0] != units[1] and "/" in "".join(units)


def _may_be_slip(value: Value, other: Value) -> bool:
    return is_slip(value, other) or _zeros_apart(value, other)


def _is_telling_slip(value: Value, other: Value, against: Known) -> bool:
    """Return whether a difference looks like a slip.

    Round numbers and days of one month often differ in one digit anyway: 300 for 500, or 15 June
    for 6 June, is no slip.
    """
    if not is_slip(value, other):
        return False
    if value.kind == "time":
        return True
    if sorted(value.digits) == sorted(other.digits):
        # "41 boxes" and "14 free places" occur in one answer by chance.
        by_chance = value.kind == "number" and len(value.digits) < _SWAPPED
        return not by_chance or not _counts_noun_without(other.clause, value)
    if value.kind == "identifier" and _is_in_series(other, against):
        return False
    if value.kind == "date":
        same_day = bool(days_of(value) & days_of(other))
        return same_day or is_tens_apart(value, other) or bool(value.words & other.words)
    sizes = [(a, b) for a in value.sizes for b in other.sizes if a and b]
    if sizes and all(max(a, b) >= 10 * min(a, b) for a, b in sizes):
        return _zeros_apart(value, other)
    return len(other.digits.strip("0")) > 2 or bool(labels(value) & labels(other))


def _zeros_apart(value: Value, other: Value) -> bool:
    """Return whether two values differ by zeros: 100,000 EUR for 10,000 EUR."""
    sizes = [(a, b) for a in value.sizes for b in other.sizes if a and b]
    return value.kind not in ("number", "identifier") and any(
        max(a, b) / min(a, b) in (10.0, 100.0, 1000.0) for a, b in sizes
    )


def _has_own_name(value: Value, against: Known) -> bool:
    """Return whether what is right before a value occurs nowhere else: "the allowance of 1,230"."""
    before = value.sentence.partition(value.fact.text)[0]
    match = re.search(
        r"([^\W\d_]{4,40})\s(?:of|von|de|at|is|ist|zu)\s(?:[€$£]|EUR |USD )?$", before
    )
    return match is not None and not any(against.said.holds(fact) for fact in read(match[1]).facts)


def _is_in_series(value: Value, against: Known) -> bool:
    """Return whether a name is in a numbered series of the result: valves V-198 and V-201.

    "V-204 stays open" refers to a third valve, and is no slip for one of these.
    """
    names = {v.fact.text.casefold() for v in against.values if v.kind == "identifier"}
    series = re.sub(r"\d", "", value.fact.text.casefold())
    return sum(re.sub(r"\d", "", name) == series for name in names) > 1


def _is_only(value: Value, against: Known) -> bool:
    """Return whether a value is the only one of its kind in the result."""
    return [v for v in against.values if v.kind == value.kind] == [value]


def _is_months_later(value: Value, other: Value, against: Known) -> bool:
    """Return whether a date is off by a stated number of months: "within one month" of 6 Nov."""
    apart = {abs(int(a) - int(b)) for a in months_of(value) for b in months_of(other)}
    return any(
        measure_key("months", months) in against.said.keys
        for each in apart
        for months in (each, 12 - each)
    )


# "Step 2" and "option 2" number the caller's own list.
_ENUMERATES = frozenset(
    """
    step option part day week month phase section chapter page point question level version line
    item figure table stage round year grade tier priority task case number example note variant
    schritt punkt teil tag seite frage étape partie point jour paso punto parte
    """.split()  # noqa: SIM905
)


def _is_labelled_alike(value: Value, other: Value, against: Known) -> bool:
    """Return whether labels match: `coach 17` for `coach 7`, if the result has only one coach."""
    label = _word_before(value)
    if not label or label in _ENUMERATES or label != _word_before(other):
        return False
    return sum(_word_before(v) == label for v in against.values) == 1


def _word_before(value: Value) -> str:
    match = re.search(rf"([^\W\d_]{{3,}})\s{re.escape(value.fact.text)}(?![\w.,]*\d)", value.clause)
    return "" if match is None or match[1].casefold() in COMMON else match[1].casefold()


def _context(value: Value) -> frozenset[str]:
    """Return what identifies a value: words of its clause, and other values next to it."""
    beside = [f for f in read(value.clause).facts if f.keys != value.fact.keys]
    # "31 December 2025" and "14 May 2025" have no more in common than a year.
    beside = [f for f in beside if re.fullmatch(r"(?:19|20)\d\d", f.text) is None]
    return value.words | frozenset(key for fact in beside for key in _largest(fact))


def _largest(fact: Fact) -> frozenset[str]:
    """Return the keys of the largest value of a fact: "18,000 EUR" does not count as an 18."""
    numbers = sorted((float(key[2:]), key) for key in fact.keys if key.startswith("n:"))
    return fact.keys - {key for _, key in numbers[:-1]}
