"""Does an answer give what a result says in another form: part of a word, a sum, "a third"?

Such an answer has used the result, although it repeats none of its numbers and words.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from .facts import NUMBER, Fact, Reading, number_keys, read
from .lazy_patterns import regex
from .normalise_values import in_digits

# "More than a thousand" passes on 1,204 messages, and "nearly half" 48 %: a caller can state the
# approximate amount in place of the number.
_ROUNDED = regex(
    r"\b(?:more than|less than|fewer than|over|under|above|below|about|around|roughly|approximately"
    r"|nearly|almost|close to|at least|up to|circa|mehr als|weniger als|über|unter|etwa|rund|fast"
    r"|knapp|plus de|moins de|environ|presque|más de|menos de|casi|cerca de)\s+"
    rf"(?P<number>{NUMBER})",
    re.IGNORECASE,
)
_NUMBERS = regex(NUMBER)
# "A few", "several", "hundreds" stand for a number. "All" and "few" need none.
_SOME = regex(
    r"""\b(?:an?\ (?:few|couple|handful|dozen)|several|dozens|hundreds|thousands|einige|mehrere
        |ein\ paar|dutzende|quelques|plusieurs|algunos|algunas|varios|varias)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Ten years old" and "ten years ago" follow from a year of the result. "For ten years" is a
# duration.
_AGE = regex(r"\byears?\s(?:old|ago)\b|\bjahre?n?\s(?:alt|her)\b|\bans\b|\baños\b", re.IGNORECASE)
# A year that a person or thing may have begun in.
_YEAR = regex(r"\b(?:1[89]|20)\d\d\b")
# Words with which a caller sums up two numbers.
_SHARES = regex(
    r"""\b(?:(?:an?|one|two|three|four)[\ -](?:third|quarter|fifth|tenth)s?\b(?!\ (?:of\ )?an?\ )
        |half\ (?:of|the|as|what)|by\ half|a\ half|halves|halved|doubl\w*|tripl\w*|twice|majority
        |minority|most\ (?:of|like|are|were|have)|hälfte|doppelt\w*|verdoppel\w*|drittel|zehntel
        |mehrheit|moitié|tiers|majorité|mitad|tercio|doble|mayoría)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# The largest distance of a rounded number from the real one: 1,999 is "more than a thousand".
_ROUNDED_BY = 2


def _rounds(answer: str, result: str) -> bool:
    """Return whether an answer gives a rounded amount that fits a number of the result."""
    rounded = {
        key for m in _ROUNDED.finditer(in_digits(answer)) for key in number_keys(m["number"])
    }
    if not rounded:
        return False
    keys = {key for m in _NUMBERS.finditer(in_digits(result)) for key in number_keys(m[0])}
    values = sorted(float(key[2:]) for key in keys)
    for key in rounded:
        number = float(key[2:])
        nearest = bisect_left(values, number / _ROUNDED_BY)
        if number and nearest < len(values) and values[nearest] <= number * _ROUNDED_BY:
            return True
    return False


# "Night trains" are no part of a day.
_PART_OF_DAY = regex(
    r"""\b(?:mornings|noon|midday|afternoons|evenings|nights|weekends|weekdays
        |(?:in|during|by|before|after|at|around|until)\ (?:the\ )?(?:early\ |late\ )?
            (?:morning|afternoon|evening|night|weekend)
        |(?:vor|nach)mittags?|mittags?|abends?|morgens|nachts|am\ wochenende
        |le\ (?:matin|midi|soir|week-end)|la\ nuit
        |por\ la\ (?:mañana|tarde|noche)|mediodía|fin(?:es)?\ de\ semana
        |(?:di|la|al)\ (?:mattin[ao]|sera|notte)|mezzogiorno)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_CLOCK_TIMES = regex(
    r"""(?<![\d.,])\d{1,2}(?:[:h]\d\d|\s?(?:am|pm|h|uhr)\b)|(?<![\d.,-])\d{1,2}\s?[-–]\s?\d{1,2}(?![\d.,-])
        |\b(?:mon|tue|wed|thu|fri|sat|sun|lun|mié|jue|vie|sáb|dom)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def in_other_form(text: str, result: str) -> str | None:
    """Return why a text may give a number of a result in words, as a share, or rounded."""
    # "A few animals" for 4 of 60, and "some thirty years old" for something founded in 1994.
    if _SOME.search(text) and _NUMBERS.search(result):
        return "the caller gives an amount in words, which may be from the result"
    if _AGE.search(text) and _YEAR.search(result):
        return "the caller states an age, and the result a year"
    # "A third less" for 42 that became 27.
    if _SHARES.search(text) and len(_NUMBERS.findall(result)) > 1:
        return "the caller states a share, which may be computed from two numbers of the result"
    # "Quiet at noon" for 64 visitors from 11:00 to 14:00.
    if _PART_OF_DAY.search(text) and _CLOCK_TIMES.search(result):
        return "the caller names a part of the day or week, and the result has times"
    if _rounds(text, result):
        return "the caller gives a rounded number that fits the result"
    return None


def has_stem(fact: Fact, said: str) -> bool:
    """Return whether a text has the beginning of a word: `albumin` in "microalbuminuria"."""
    # Six letters are enough to be no chance: `albumi`. With fewer, `card` would be in "discard".
    return fact.kind == "word" and len(fact.text) > 5 and fact.text.casefold()[:6] in said


def shows_in_part(
    words: list[str], result: str, facts: list[Fact], missing: list[Fact], had: Reading
) -> bool:
    """Return whether texts have part of a word, an adjective or a difference of two numbers.

    ``facts`` are those of the result, ``missing`` those that the texts do not repeat. ``had`` is
    what the caller knew before.
    """
    said = " ".join(words).casefold()
    if {word.casefold() for word in _SAYS_HOW.findall(said)} & {
        word.casefold() for word in _SAYS_HOW.findall(result)
    }:
        return True
    if any(has_stem(fact, said) for fact in missing):
        return True
    values = sorted({value for fact in facts for value in fact.numbers})[:60]
    # `noon` is not a fact, and can mean 13:00.
    numbers = {float(key[2:]) for key in read(*words).keys - had.keys if key.startswith("n:")}
    numbers.discard(1.0)
    # "Only 36 EUR more" for 153 and 189 EUR; "before seven" for 06:55.
    # Rounded, as 18.47 - 18.42 is 0.04999... in binary.
    made = {round(abs(a - b), 6) for i, a in enumerate(values) for b in values[i + 1 :]}
    made |= {round(a + b, 6) for i, a in enumerate(values) for b in values[i + 1 :]}
    made |= _hours_between(facts)
    hours = {float(h) for f in facts for k in f.keys if k[:2] == "t:" for h in _near_hours(k)}
    # "Only 13 % miss the cache" for a hit rate of 87 %.
    made |= {round(100 - value, 6) for value in values if 0 < value < 100}
    if numbers & (made | hours | _whole_hours(facts)):
        return True
    # "About 1,000 a month" for 11,900 a year.
    if not _PER.search(said):
        return False
    each = {
        made for value in values for times in _PERIODS for made in (value * times, value / times)
    }
    near = sorted(each)
    return any(
        abs(near[place] - number) <= _OF_PERIOD * number
        for number in numbers
        for place in (bisect_left(near, number * (1 - _OF_PERIOD)),)
        if place < len(near)
    )


# Months, weeks and days of a year, days of a week, and hours of a day.
_PERIODS = (12, 52, 365, 7, 24)
# How far a figure per period may be rounded: 11,900 a year are 992 a month. With 0.15, "a quarter
# of an hour" and "half a day" would fit some number of most results.
_OF_PERIOD = 0.02
# "A month", "per day", "pro Woche". "This month" is a period, not a rate.
_PER = regex(
    r"\b(?:an?|per|each|every|pro|im|par|al|por|cada|chaque|jede\w*) "
    r"(?:hour|day|week|month|year|stunde|tag|woche|monat|jahr|heure|jour|semaine|mois|an|hora|día"
    r"|semana|mes|año)\b",
    re.IGNORECASE,
)


def _whole_hours(facts: list[Fact]) -> set[float]:
    """Return durations in whole hours, days or weeks: "nearly ten hours" for 9 h 45 min."""
    seconds = [float(k.split(":")[2]) for f in facts for k in f.keys if k[:11] == "u:duration:"]
    return {
        float(whole)
        for each in seconds
        for unit in (60, 3600, 86400, 604800)
        for whole in (int(each / unit), int(each / unit) + 1)
        if whole > 1 and abs(whole - each / unit) <= _NEAR_WHOLE * whole
    }


# How far whole units may be from the exact duration, as a share: 9 h 45 min are nearly ten hours.
# With 0.4, nine days would be two weeks.
_NEAR_WHOLE = 0.1

# Common words prove no use, but these may contain the finding: "early kidney involvement" can be
# passed on as "early nephropathy".
_SAYS_HOW = regex(
    r"\b(?:early|late|high|low|long|short|small|large|full|clear|similar|certain|likely|possible)\b",
    re.IGNORECASE,
)


# A timetable has so many times that any number is the hours between two of them.
_FEW_TIMES = 6


def _hours_between(facts: list[Fact]) -> set[float]:
    """Return the time between two times, exactly and in whole hours: open from 9:15 to 16:45."""
    times = {key for fact in facts for key in fact.keys if key.startswith("t:")}
    if len(times) > _FEW_TIMES:
        return set()
    minutes = [60 * int(key.split(":")[1]) + int(key.split(":")[2]) for key in times]
    apart = {abs(a - b) / 60 for a in minutes for b in minutes if abs(a - b) >= 60}
    return apart | {float(int(each)) for each in apart}


def _near_hours(key: str) -> tuple[int, ...]:
    hour = int(key.split(":")[1])
    return tuple(near + half for near in (hour - 1, hour, hour + 1) for half in (-12, 0))
