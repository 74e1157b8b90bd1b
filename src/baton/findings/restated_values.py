"""May something new in a prompt stand for a number or name of the request that is not in it?

"9 am EST" for "14:00 UTC", "128 EUR for both" for "64 EUR each", "until 16 May" for "4 nights from
12 May".
"""

from __future__ import annotations

import re
from collections.abc import Set
from itertools import permutations
from math import ceil

from .facts import HARD, Fact, Reading, hours_of, is_spelled_in, word_key
from .lazy_patterns import VALUE, marked, regex
from .normalise_values import in_digits
from .sent_context import Sent

# Words that can express a number, a time or a share in a way not handled here: "half eight",
# "around the clock", "a handful". New ones in a prompt may stand for a missing value.
_MAY_BE_A_VALUE = regex(
    r"""\b(?:an?\ (?:few|dozen|couple|pair|score|handful|hundred|thousand|million|decade|century)
        |half|halves|quarters?|thirds?|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety
        |two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|both|twice|thrice|double|triple
        |single|pair|couple|clock|noon|midday|midnight|morning|afternoon|evening|night|daily|weekly
        |monthly|yearly|annual\w*|quarterly|fortnight\w*|decade|century|grand|hundred|thousand
        |million|billion|percent|per\ cent|majority|most|today|tomorrow|tonight|yesterday|weekend
        |mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?|last|next|first
        |second|fourth|fifth|mid|early|late|end|start|beginning|same|[IVX]{2,}
        |halb\w*|viertel|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|mittag|demi\w*|midi|media
        |deux|trois|quatre|cinq|dos|tres|cuatro|cinco)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# `3/4` and `12.5.26` may be dates or numbers, so a prompt may state either.
_MAY_BE_A_DATE = regex(r"\d{1,2}/\d{1,2}|\d{1,2}\.\d{1,2}\.\d\d")
# It starts at a word: otherwise a long run of letters would be scanned from each letter.
_PACKAGE = regex(r"(?<![a-z-])[a-z][a-z-]*[:@]\d+(?:\.\d+)+")


def may_be_said_otherwise(fact: Fact, sent: Sent) -> bool:
    """Return whether something new in a prompt may be the fact, in another notation.

    A prompt can have "9 am EST" instead of "14:00 UTC". If it has nothing new that could be a
    value, the fact is missing.
    """
    # "12 March 2026" for 12.3.26, which can also be a version, and "the 3rd of March" for 3/3.
    if _MAY_BE_A_DATE.fullmatch(fact.text) is not None:
        if any(key.startswith("d:") for key in sent.in_prompt.keys):
            return True
    mine = _dimensions(fact)
    for each in sent.in_prompt.facts:
        if not _is_new(each, sent.asked, sent.request.text):
            continue
        # `python:3.11` is not a notation of 3.12.
        if fact.kind == "number" and "." in fact.text and _PACKAGE.fullmatch(each.text):
            continue
        theirs = _dimensions(each)
        if not mine or not theirs or mine & theirs:
            return True
    if fact.kind == "number":
        asked_words = {word.casefold() for word in _MAY_BE_A_VALUE.findall(sent.request.text)}
        own = {word.casefold() for word in _MAY_BE_A_VALUE.findall(sent.prompt)} - asked_words
        return any(word_key(word) not in sent.asked.keys for word in own)
    # "Issue #42" for `GH-42`, "Node 18" for `node:18-alpine`, `3.12` for `py312`.
    digits = re.sub(r"\D", "", fact.text)
    said = {re.sub(r"\D", "", each) for each in re.findall(r"(?<!\w)[\d.]*\d(?!\w)", sent.prompt)}
    return bool(digits) and digits in said


def _is_new(fact: Fact, request: Reading, text: str) -> bool:
    """Return whether a prompt's number or name is not in the request: 6 guests are not 6 feet."""
    if fact.kind not in HARD or (fact.kind != "number" and is_spelled_in(fact.text, text)):
        return False
    return not (fact.precise_keys or fact.keys) & request.keys


def _dimensions(fact: Fact) -> set[str]:
    """Return what is measured. All currencies count as one, as an amount can be converted."""
    kinds = {key.split(":")[1] for key in fact.unit_keys}
    kinds |= {key[0] for key in fact.precise_keys - fact.unit_keys}
    return {"money" if kind.isupper() else kind for kind in kinds}


# "16.2 kg x 50 mg/kg", "270 mg = 5.4 mL": a computed value can stand for its inputs.
_SUM = regex(r"\d[^\W\d]{0,8}(?:/[^\W\d]{1,8})?\s?(?:[x×*=]|-->?|→)\s?(?:[€$£]\s?)?\d")
# "120 x 80 cm" can be expressed as "Euro pallets", "31 ft by 19 ft" as an area.
_BY = r"\s?(?:[^\W\d]{1,6}\s?)?(?:[x×]|\b(?:by|auf|mal|sur|por)\b)\s?"
_SIDE = regex(rf"\d{_BY}{VALUE}(?!\d)|(?<!\d){VALUE}{_BY}\d")
_SIDES = regex(rf"\d{_BY}\d")
# What can be worked out from what: an area or a volume from lengths, energy from power and time.
_MADE_OF = {
    "area": {"length"},
    "volume": {"length", "area"},
    "mass": {"volume", "area", "length"},
    "energy": {"power", "duration"},
    "length": {"speed", "duration"},
    "speed": {"length", "duration"},
    "duration": {"length", "speed", "data", "energy", "power"},
    "power": {"energy", "duration", "voltage", "current"},
    "data": {"duration"},
}


def may_be_worked_out(fact: Fact, sentence: str, sent: Sent) -> bool:
    """Return whether a prompt may have used a number in a calculation, or named a size instead."""
    if fact.kind != "number":
        return False
    if _SIDE.search(marked(fact.text, sentence)) and not _SIDES.search(sent.prompt):
        return True
    if _is_factor(fact, sent):
        return True
    return bool(sent.new) and len(_SUM.findall(sent.prompt)) > len(_SUM.findall(sent.request.text))


def _is_factor(fact: Fact, sent: Sent) -> bool:
    """Return whether a prompt has a new kind of quantity that may be made of a fact: m³ of feet."""
    mine = _dimensions(fact)
    asked = {dimension for each in sent.asked.facts for dimension in _dimensions(each)}
    sent_dimensions = {
        dimension for each in sent.in_prompt.facts for dimension in _dimensions(each)
    }
    if any(mine & _MADE_OF.get(dimension, set()) for dimension in sent_dimensions - asked):
        return True
    # 35 minutes before 13:20, or "from 13:00 to 15:30" as 150 minutes.
    moments, spans = {"t", "d"}, {"duration", "months"}
    kinds = {kind for each in sent.in_prompt.without(sent.asked) for kind in _dimensions(each)}
    return bool((mine & spans and kinds & moments) or (mine & moments and kinds & spans))


# "Last year", "year over year": the prompt names the year by its relation. "Two years" is a
# duration.
_RELATIVE_YEAR = regex(
    r"\b(?:this|last|next|previous|current|same|each|every|past|one|a) year"
    r"|\byear[- ](?:before|over|on|earlier|ago)|\bvorjahr|\b(?:dieses|letztes|nächstes) jahr",
    re.IGNORECASE,
)

# Quotients are rounded: 33.33 for a third of 100.
_ROUNDED = 0.005


def has_value_derived_from(fact: Fact, sent: Sent) -> bool:
    """Return whether a number in the prompt can stand for this one: two others make three."""
    if fact.kind != "number":
        return False
    if fact.is_day:
        return _has_length_of_stay(fact, sent)
    values = fact.numbers
    if not values:
        return False
    numbers = [each for each in sent.in_prompt.facts if each.kind == "number"]
    new = {n for each in numbers if not sent.asked.holds(each) for n in each.numbers}
    known = {n for each in sent.asked.facts if each.kind == "number" for n in each.numbers}
    # Three quarters of a year are nine months: a share can be passed on as the resulting amount.
    if new and any(key.startswith("sh:") for key in fact.keys):
        return True
    years, new_years = _years(values), _years(new)
    # "2023" is "last year" in 2024.
    if years == values and not new_years and _RELATIVE_YEAR.search(sent.prompt):
        return True
    # "Five years from 2019" are 2019 to 2023.
    if any(abs(a - b) + 1 in new for a in years | new_years for b in _years(known)):
        return True
    # A sum, difference, product or share can be passed on in place of its parts: "128 EUR for both"
    # for "64 EUR each", 120 chairs for 130 chairs "with 10 spare ones". One of the people is the
    # customer.
    steps = (known - values) | new | {1.0}
    if any(_follows(value, old, by) for value in new for old in values for by in steps):
        return True
    # "8 boxes" for 90 tiles in boxes of 12.
    rounded = {float(ceil(max(a, b) / min(a, b))) for a in values for b in known if a and b}
    if rounded & {number for number in new if number > 1}:
        return True
    # "Enough for 12 weeks, we use 6 a week and have 37" are 35.
    if len(known) <= _FEW_NUMBERS and any(_is_of_three(v, values, known) for v in new):
        return True
    # "12 members, all except Per and Ida" of 14.
    if any(0 < abs(a - b) <= _MOST_NAMED for a in values for b in new):
        if any(_BUT_SOME.search(text) for text in (sent.prompt, sent.request.text)):
            return True
    return _is_split(values, sent)


# Of more numbers, some three make nearly any number.
_FEW_NUMBERS = 8
# At most this many people or things are named after "all except". A larger difference has another
# reason.
_MOST_NAMED = 4
# "All except Per", "everyone but Ida": a number less some names. "But the price" names nobody.
_BUT_SOME = regex(
    r"\b(?:(?:all |everyone )?(?:except|but)|but not|apart from|excluding|minus|plus|außer|bis auf"
    r"|sauf|salvo|menos|excepto)\s(?:for\s|a\s)?[A-ZÀ-Þ]"
)


def _is_of_three(made: float, values: Set[float], known: Set[float]) -> bool:
    """Return whether a number is a product of two known ones, plus or minus one of ``values``.

    Or a product of one of ``values`` and another, plus or minus a third.
    """
    for one, two, three in permutations(known, 3):
        if values & {one, two, three} and made in (one * two + three, one * two - three):
            return True
    return False


# A count with its place in a text: not the parts of "12:15", "3.5" and "A-4".
_COUNTED = regex(r"(?<![\w.,:/-])(\d{1,6}|[^\W\d_]{2,9})(?![\w]*\d|[.,:/]\d)")
# More parts have nearly any sum.
_PARTS = 6


def _is_split(values: Set[float], sent: Sent) -> bool:
    """Return whether numbers in a row of a prompt add up: 4 tickets are 1 + 1 + 2 places."""
    counts = _counts_in(sent.prompt)
    for start in range(len(counts)):
        total = counts[start]
        for number in counts[start + 1 : start + _PARTS]:
            total += number
            if total in values:
                return True
    return False


def _counts_in(text: str) -> list[float]:
    """Return the whole numbers of a text in order, also in words."""
    counts = []
    for match in _COUNTED.finditer(in_digits(text)):
        written = match[0].casefold()
        if written.isdecimal():
            counts.append(float(written))
        elif (key := word_key(written)) is not None and written not in _NO_COUNTS:
            counts.append(float(key[2:]))
        elif written in _ONES:
            counts.append(1.0)
    return counts


# Words of numbers that are rather positions or pairs than counts.
_NO_COUNTS = frozenset({"both", "twice", "third", "fourth"})
_ONES = frozenset("one ein eine einen un une uno una".split())  # noqa: SIM905


def _years(numbers: Set[float]) -> Set[float]:
    return {number for number in numbers if 1900 <= number <= 2100}


def _has_length_of_stay(fact: Fact, sent: Sent) -> bool:
    """Return whether a date follows from a length of stay: 16 May from "4 nights from 12 May"."""
    ends = {int(key.rpartition("-")[2]) for key in fact.keys if key.count("-") == 1}
    nights = {
        n for each in sent.in_prompt.facts if not sent.asked.holds(each) for n in each.numbers
    }
    days = [float(part) for part in re.findall(r"(?<![\d.,])\d{1,2}(?![\d.,]*\d)", sent.prompt)]
    stays = [end - day for end in ends for day in days if end > day]
    return any(stay in nights or stay + 1 in nights for stay in stays)


def _follows(value: float, old: float, by: float) -> bool:
    """Return whether a number is the sum, difference, product or quotient of two others."""
    if value in (old + by, old - by, by - old):
        return True
    made = (old * by, old / by if by else old, by / old if old else by)
    return any(abs(value - one) <= _ROUNDED * abs(one) for one in made if one != old)


def is_by_chance(fact: Fact, sent: Sent) -> bool:
    """Return whether only numbers of other things can carry a full hour, or the day of a date.

    "Two shifts of 18" does not carry 6 pm, and "3 teachers" does not carry 3 December, if the
    request has these numbers as well.
    """
    if fact.keys & sent.given.keys:
        return False
    dates = [key for key in fact.keys if key.startswith("d:") and key.count("-") == 1]
    numbers = hours_of(fact.keys) | {f"n:{key.rpartition('-')[2]}" for key in dates}
    if not numbers or any(f"in:{number}" in sent.given.keys for number in numbers):
        return False
    others = [f for f in sent.asked.facts if f.kind == "number" and f.keys != fact.keys]
    alone = [number for number in numbers if f"alone:{number}" in sent.given.keys]
    return bool(alone) and all(any(number in f.keys for f in others) for number in alone)
