"""Does a prompt replace a value of the request with another value?

A changed value proves more than a missing one. A caller that dispatches part of the work leaves
values out, but has no reason to change them.
"""

from __future__ import annotations

import re
from itertools import takewhile

from .facts import Fact, Reading
from .lazy_patterns import VALUE, regex, sides_of
from .text_values import (
    Value,
    days_of,
    decimal_places,
    is_converted,
    is_copied_around,
    is_slip,
    is_tens_apart,
    labels,
    unit_text,
)
from .words import COMMON, MONTHS

# "At most 160 EUR" can be passed on as 150: staying below a limit keeps to it.
_AT_MOST = regex(
    r"""\b(?:at\ (?:the\ )?(?:most|latest)|max\w*|up\ to|under|below|within|by
        |(?:less|fewer)\ than|not\ \w+\ more\ than
        |(?:no|not)\ (?:more|longer|later)|budget|limit|cap|höchstens|bis\ zu|unter|au\ plus
        |como\ máximo|hasta|tope)\b|[<≤]""",
    re.VERBOSE | re.IGNORECASE,
)
_AT_LEAST = regex(
    # Not the minutes of "15 min" and "38 ml/min".
    r"\b(?:at least|(?<![\d/])(?<!\d )min(?:imum|imal\w*)?|more than|no less"
    r"|mindestens|au moins|al menos)\b|[>≥]",
    re.IGNORECASE,
)
# These bound only the number after them: "from 45 EUR", "over 200 guests". In "Order 15 frames from
# Thornbury's", the word comes before a shop.
_FROM = regex(r"\b(?:from|over|above|ab)\s(?:[€$£]\s?|the\s|an?\s)?$", re.IGNORECASE)
# Times and dates are shifted on purpose: "be there at 19:30", "remind them on 23 June", 19:00 UTC.
_SHIFTED = regex(
    r"\b(?:utc|gmt|[ecmpw]e?[sd]?t|before|after|ahead|earlier|later|prior|remind\w*|deadline|until|by"
    r"|be (?:at|there|ready|in|on)|arriv\w*|get (?:to|there)|meet|check[- ]?in|instead)\b",
    re.IGNORECASE,
)
# Kinds of values that a text often has several of, with different meanings: "3 hours" of driving
# and "4 hours" of play. Only a slip shows that one stands for the other.
_CURRENCIES = frozenset({"EUR", "USD", "GBP", "CHF", "NOK"})
_MANY = _CURRENCIES | {"duration", "months", "share", "time", "date"}


def in_place_of(fact: Fact, asked: list[Value], new: list[Value], *, retold: bool) -> Value | None:
    """Return the value of a prompt that stands for a lost fact of the request.

    ``asked`` are the values of the request. ``new`` are the values of the prompt without any
    source. ``retold``: the prompt repeats most of the request, so one word next to a value is
    enough.
    """
    lost = next((value for value in asked if value.fact.keys == fact.keys), None)
    if lost is None:
        return None
    for value in new:
        if value.kind != lost.kind or keeps_limit(lost, value) or is_converted(lost, value):
            continue
        if lost.kind == "identifier" and _letters(lost) != _letters(value):
            continue
        if _is_own(lost, value) or _is_in_range(lost, value):
            continue
        if not retold and _is_part_of_range(lost, value):
            continue
        if value.kind in ("date", "time") and is_shifted(lost, value):
            continue
        same = bool(labels(lost) & labels(value) - MONTHS.keys())
        # "Before 18 December 2026" for "before 18 December" replaces no 2023 of the request.
        if _is_year(lost) and _is_year(value) and not same:
            continue
        if _slipped(lost, value, labelled=same):
            return value
        if retold and _is_only_code(lost, asked, value, new):
            return value
        if retold and (_is_only(lost, asked, value, new) if value.kind in _MANY else same):
            return value
    return None


# `3-5`, `3 to 5`, `between 3 and 5`: any number between fits. `3, 5` are two numbers.
_RANGE = regex(
    r"(?<![\d.,])(\d+(?:\.\d+)?)\s?(?:-|–|\.\.|(?:and|to|bis|und|et|à|y|a|e)\b)\s?(\d+(?:\.\d+)?)"
)


def _is_in_range(lost: Value, value: Value) -> bool:
    """Return whether a value is an end of a range around the lost one: 1970 to 1979 for 1974."""
    return any(
        float(low) <= number <= float(high)
        for low, high in _RANGE.findall(value.clause)
        for number in lost.numbers
        if value.fact.text in (low, high)
    )


def _is_part_of_range(lost: Value, value: Value) -> bool:
    """Return whether a range lies in another: a part of the work is on 16-17 May of 16-18 May."""
    ranges = [re.fullmatch(r"(\d{1,4})-(\d{1,4})", each.fact.text) for each in (lost, value)]
    if ranges[0] is None or ranges[1] is None:
        return False
    (start, end), (low, high) = ((int(each[1]), int(each[2])) for each in ranges if each)
    return start <= low <= high <= end


def copied_except(fact: Fact, asked: list[Value], new: list[Value]) -> Value | None:
    """Return the value that a prompt has in place of a fact, in words copied from the request.

    "Winter wheat 'Asory', 130 kg/ha, treated" for 180: a copied sentence always means the same
    number, whatever else the prompt leaves out.
    """
    for lost in (value for value in asked if value.fact.keys == fact.keys):
        for value in new:
            if value.kind != lost.kind or keeps_limit(lost, value) or is_converted(lost, value):
                continue
            if value.kind in ("date", "time") and is_shifted(lost, value, within=value.clause):
                continue
            # A commit can be given by its first digits.
            names = sorted((lost.fact.text.casefold(), value.fact.text.casefold()), key=len)
            if lost.kind == "identifier" and names[1].startswith(names[0]):
                continue
            if is_copied_around(lost, value) and not _is_own(lost, value):
                return value
    return None


_WORDS = regex(r"[^\W_]+")
# The number of words around a gap that have to be copied. One of them has to be meaningful.
_AROUND_GAP = 3
_ALONE = regex(rf"(?<!\w){VALUE}(?!\w)")


def cut_out(fact: Fact, sentence: str, prompt: str) -> bool:
    """Return whether a prompt copies the words around a fact and leaves out the fact between them.

    "Find where is defined" for "Find where retry() is defined".
    """
    sides = sides_of(_ALONE, fact.text, sentence)
    if sides is None:
        return False
    before = _WORDS.findall(sides[0].casefold())[-_AROUND_GAP:][::-1]
    after = _WORDS.findall(sides[1].casefold())[:_AROUND_GAP]
    # "The new oven: 425 °F" for "oven 1: 425 °F" names another oven.
    if not before or not after or after[0].isdecimal():
        return False
    words = _WORDS.findall(prompt.casefold())
    for here in range(1, len(words)):
        if words[here] != after[0] or words[here - 1] != before[0]:
            continue
        copied = _same(words[here:], after) + _same(words[:here][::-1], before)
        # One word has to say what it is about: "in the 3 of" is copied by chance.
        if len(copied) >= _AROUND_GAP and any(w not in COMMON and len(w) > 3 for w in copied):
            return True
    return False


def _same(words: list[str], others: list[str]) -> list[str]:
    return [
        a for a, b in takewhile(lambda pair: pair[0] == pair[1], zip(words, others, strict=False))
    ]


def _is_only(lost: Value, asked: list[Value], value: Value, new: list[Value]) -> bool:
    """Return whether both are the only time or date, in a request and a prompt that repeats it."""
    if lost.kind not in ("time", "date"):
        return False
    return all(other is lost or other.kind != lost.kind for other in asked) and all(
        other is value or other.kind != value.kind for other in new
    )


def _is_only_code(lost: Value, asked: list[Value], value: Value, new: list[Value]) -> bool:
    """Return whether both are the only code with these letters: Q2 for Q3, 32A for 16A."""
    letters = _letters(lost)
    if lost.kind != "identifier" or not 0 < len(letters) <= _MOST_LETTERS:
        return False
    if not all(re.fullmatch(r"[A-Za-z]*\d+[A-Za-z]*", v.fact.text) for v in (lost, value)):
        return False
    mine = {v.fact.keys for v in asked if v.kind == "identifier" and _letters(v) == letters}
    theirs = {v.fact.keys for v in new if v.kind == "identifier" and _letters(v) == letters}
    return len(mine) == len(theirs) == 1 and not _OTHER_PERIOD.search(value.sentence)


# Letters of a code that counts things of one sort: "32A shore power" for 16A. Longer ones, such as
# `INV-204`, are names of things, and a prompt may be about another thing.
_MOST_LETTERS = 2
# A prompt that asks for another period too has its code as well: "Q2 compared with Q3", "the
# previous quarter Q2".
_OTHER_PERIOD = regex(
    r"\b(?:previous|prior|preceding|last|next|following|compar\w+|vs|versus|vor\w*|précédent\w*"
    r"|anterior\w*)\b",
    re.IGNORECASE,
)


def limit_changed(fact: Fact, asked: list[Value], new: list[Value]) -> Value | None:
    """Return the limit of a prompt that is looser than the only limit of its kind in a request.

    "Max. EUR 180 for the parcel" for "must not cost more than 80 EUR". This only applies to prompts
    that repeat most of a request, because another part of the work can have its own limit.
    """
    lost = next((value for value in asked if value.fact.keys == fact.keys), None)
    if lost is None or lost.kind in ("number", "identifier"):
        return None
    if sum(value.kind == lost.kind for value in asked) > 1:
        return None
    others = [value for value in new if value.kind == lost.kind]
    if len(others) != 1 or not lost.sizes or is_converted(lost, others[0]):
        return None
    other = others[0]
    looser = min(other.sizes) > max(lost.sizes)
    for bound, wrong in ((_AT_MOST, looser), (_AT_LEAST, max(other.sizes) < min(lost.sizes))):
        if wrong and bound.search(lost.clause) and bound.search(other.clause):
            return other
    return None


def keeps_to(before: str, lost: Fact, other: Fact) -> bool:
    """Return whether a number keeps the limit of another, which has ``before`` in front of it."""
    sizes, others = lost.numbers, other.numbers
    if not sizes or not others:
        return True
    if max(others) < min(sizes):
        return _AT_MOST.search(before) is not None
    return _AT_LEAST.search(before) is not None or _FROM.search(before) is not None


def _letters(value: Value) -> str:
    return re.sub(r"[\W\d]", "", value.fact.text.casefold())


def _slipped(lost: Value, value: Value, *, labelled: bool) -> bool:
    """Return whether a value differs like a slip: `E81` for `E18`, 14 July for 14 June."""
    swapped = sorted(lost.digits) == sorted(value.digits) and len(lost.digits) > 1
    # "We burnt 11k" and "more than 11 instances".
    if lost.kind == "number" and lost.digits == value.digits and not labelled:
        return False
    # Version 2.8 is no 28, unless both are called the same.
    if lost.kind == "number" and decimal_places(lost) != decimal_places(value) and not labelled:
        return False
    if lost.kind == "date":
        return bool(days_of(lost) & days_of(value)) or is_tens_apart(lost, value)
    if lost.kind == "time":
        return swapped
    if not is_slip(value, lost):
        return False
    # Round numbers differ in one digit by nature: 300 of the 500 words.
    return swapped or labelled or len(lost.digits.strip("0")) > 2


def _is_year(value: Value) -> bool:
    return value.kind == "number" and any(
        1900 <= number <= 2100 and number == int(number) for number in value.numbers
    )


def is_shifted(lost: Value, value: Value, within: str | None = None) -> bool:
    """Return whether a time or date is moved on purpose, according to words in ``within``.

    Without ``within``, the whole sentence is searched for such words. If the words around the value
    are copied, such a word has to be in the same clause: "whether 15 Feb suits for the check, which
    must be before any flying" moves nothing.
    """
    words = _SHIFTED.findall(value.sentence if within is None else within)
    own = {word.casefold() for word in words}
    return bool(own - {word.casefold() for word in _SHIFTED.findall(lost.sentence)})


def misspelt(fact: Fact, asked: list[Value], new: list[Value]) -> Value | None:
    """Return the name or long number of a prompt that is a fact with two digits swapped.

    `HH-29038-K` for `HH-20938-K`: there is never a reason to write that, whatever the rest of the
    texts. If both are real, the prompt's value has a source, so it is not among the ``new``.
    """
    for lost in (value for value in asked if value.fact.keys == fact.keys):
        for value in new:
            if _is_code_typo(lost, value):
                return value
            alike = value.kind == lost.kind and _letters(lost) == _letters(value)
            if alike and len(lost.digits) >= _LONG and is_transposed(lost.digits, value.digits):
                return value
    return None


def swapped_digits(fact: Fact, asked: list[Value], new: list[Value]) -> Value | None:
    """Return the value of a prompt that is a fact with two digits swapped, of the same thing.

    14.5 kg for 41.5 kg, 26 % for 62 %, 54 guests for 45 guests. A limit is not lowered like that,
    and a share is not worked out like that.
    """
    for lost in (value for value in asked if value.fact.keys == fact.keys):
        for value in new:
            if value.kind != lost.kind or value.kind in ("date", "time"):
                continue
            if not is_transposed(lost.digits, value.digits) or _letters(lost) != _letters(value):
                continue
            # The decimal mark stays in place, and 26 % does not complete 74 %.
            if decimal_places(lost) != decimal_places(value) or is_converted(lost, value):
                continue
            if lost.kind == "share" and 100 in {a + b for a in lost.numbers for b in value.numbers}:
                continue
            unit = unit_text(lost)
            same = labels(lost) & labels(value)
            if (len(unit) > 1 or unit == "%" or lost.kind != "number") and unit == unit_text(value):
                if len(lost.digits) > 2 or same:
                    return value
            elif lost.kind in ("number", "identifier") and same and len(lost.digits) > 2:
                return value
    return None


# "First test it with 10 rows", "in batches of 100 rows", "at least 100 guests".
_OWN_NUMBER = regex(
    r"""\b(?:first|top|last|next|sample|test\w*|batch\w*|e\.?g|for\ example|examples?|such\ as|like
        |per|each|every|another|additional\w*|extra|more|other|further|least|most|minimum|maximum
        |min|max|up\ to|over|under|between|about|around|roughly|approx\w*|some|than|or|of\ the
        |remaining|rest|half|spare|ersten?|jeweils|je|weitere\w*|mindestens|höchstens|bis|etwa
        |premi\w+|autres?|chaque|moins|plus|primer\w*|otr\w+|cada|menos|máximo)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def _is_own(lost: Value, value: Value) -> bool:
    """Return whether a caller chose a number itself: "in batches of 500 rows" for 8,412 rows."""
    before, _, _ = value.clause.partition(value.fact.text)
    theirs = re.findall(rf"(?:{_CHOSEN})", before[-_LETTERS_BEFORE:], re.IGNORECASE)
    return bool(theirs) and not re.search(rf"(?:{_CHOSEN})", lost.clause, re.IGNORECASE)


# Characters before a number in which such a word belongs to it: "in batches of 500 rows". Further
# away it belongs to something else: "le premier apport sur la parcelle 71" says nothing about `71`.
_LETTERS_BEFORE = 20
# Words of a caller's own numbers: "the first 10 rows", "in batches of 500", but not "all 8,412
# rows".
_CHOSEN = (
    r"\b(?:first|top|sample\w*|batch\w*|chunks?|groups?|steps?|e\.?g|ersten?|premi\w+|primer\w*)\b"
)


def counted_otherwise(fact: Fact, asked: list[Value], new: list[Value]) -> Value | None:
    """Return the number of a prompt that counts the same things as a fact: 90 guests for 60 guests.

    Only if both texts count these things once. A part of them ("2 of the guests") or a number that
    the caller chose ("at least 100 guests") is no other count.
    """
    lost = next((value for value in asked if value.fact.keys == fact.keys), None)
    if lost is None or lost.kind != "number":
        return None
    noun = unit_text(lost)
    if len(noun) <= _SHORT_NOUN or noun in COMMON or not noun.isalpha():
        return None
    mine = [value for value in asked if unit_text(value) == noun]
    theirs = [value for value in new if unit_text(value) == noun]
    if len({v.fact.keys for v in mine}) != 1 or len({v.fact.keys for v in theirs}) != 1:
        return None
    other = theirs[0]
    if other.kind != "number" or keeps_limit(lost, other):
        return None
    if _OWN_NUMBER.search(other.clause) or _OWN_NUMBER.search(lost.clause):
        return None
    return other


# Words of at most this many letters are rather units than things that are counted: `km`, `min`,
# `mol`. Five would exclude `hours`: "within 48 hours" for 4 hours.
_SHORT_NOUN = 3


def _is_code_typo(lost: Value, value: Value) -> bool:
    """Return whether two codes differ in one letter: QK7P2W for QK7P2M."""
    one, other = lost.fact.text.casefold(), value.fact.text.casefold()
    if lost.kind != "identifier" or value.kind != "identifier" or len(one) != len(other):
        return False
    parts = zip(re.split(r"[\W_]", one), re.split(r"[\W_]", other), strict=False)
    apart = [(a, b) for a, b in parts if a != b]
    if len(apart) != 1 or len(apart[0][0]) != len(apart[0][1]) or len(apart[0][0]) < _CODE:
        return False
    letters = [(a, b) for a, b in zip(*apart[0], strict=True) if a != b]
    return len(letters) == 1 and all(letter.isalpha() for letter in letters[0])


# Shorter parts are kinds and units, like `A4` and `B4`, `build-a1`, `1.5Gi` and `1.5Mi`.
_CODE = 6
# The fewest digits of a number that has no similar number by chance: 2140.50 and 2410.50, but not
# 145 and 154.
_LONG = 5


def is_transposed(one: str, other: str) -> bool:
    """Return whether two digit strings differ by two swapped neighbours."""
    if len(one) != len(other):
        return False
    apart = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(apart) != 2 or apart[1] != apart[0] + 1:
        return False
    first, second = apart
    return one[first] == other[second] and one[second] == other[first]


def in_another_unit(fact: Fact, given: Reading, new: list[Value]) -> Value | None:
    """Return the same number with another unit, if there is no other match: 74 lb for 74 kg."""
    sizes = fact.unit_keys
    if not sizes or sizes & given.keys:
        return None
    kind = min(sizes).split(":")[1]
    for value in new:
        if not value.fact.unit_keys or not value.fact.keys & (fact.keys - sizes):
            continue
        # "From 14.6 % to 13.9 %" has 15 % only when rounded.
        if not value.numbers & fact.numbers:
            continue
        # `m` can be metres or minutes.
        if value.kind == kind or {value.kind, kind} <= _CURRENCIES:
            return value
    return None


def keeps_limit(lost: Value, value: Value) -> bool:
    """Return whether a value keeps the limit of another: 150 EUR for "at most 160 EUR"."""
    if not lost.sizes or not value.sizes:
        return False
    lower, higher = max(value.sizes) < min(lost.sizes), min(value.sizes) > max(lost.sizes)
    if lower:
        return _AT_MOST.search(lost.clause) is not None
    before, _, _ = lost.clause.partition(lost.fact.text)
    return higher and (
        _AT_LEAST.search(lost.clause) is not None or _FROM.search(before) is not None
    )
