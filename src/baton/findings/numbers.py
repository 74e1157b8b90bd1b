"""Numbers, times and dates as people and programs write them, brought to one form."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext

from .common_words import MONTHS, NUMBER_WORDS

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
NUMBER = r"\d+(?:[.,'’\u00a0\u202f]\d+)*"
# Accounts, telephones and cards are no quantities, and their spaces mean nothing.
GROUPED = (
    r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){3,7}(?:[ ]?[A-Z0-9]{1,3})?\b"
    r"|(?<![\w.])\+(?=(?:[ /()]?\d){7})\d{1,15}+(?:[ /]\(?\d{1,12}+\)?){0,6}+(?!\w)"
    r"|(?<![\w.,])(?=(?:[ ]?\d){9})0\d{1,4}+(?:[ ]\d{2,12}+){1,4}+(?!\w)"
    r"|\b\d{4}(?:[ ]\d{4}){3}\b"
)
SCALE = r"\s?(?:k|K|[Mm]illions?|Millionen|Mio|[Tt]housand|[Bb]illion)\b|[MG](?![\w])"
DATE = r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{4}"
CLOCK = (
    r"(?:[01]?\d|2[0-4])[:h][0-5]\d(?::\d{2})?(?!\d)(?:\s?[ap]\.?m\b)?|\b(?:1[0-2]|\d)\s?[ap]m\b"
)

DAY = (
    rf"\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s(?:of\s|de\s)?(?:{_MONTH})\b|"
    rf"\b(?:{_MONTH})\.?\s\d{{1,2}}(?:st|nd|rd|th)?(?![\d:])"
)

_DAY_OF_MONTH = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:of\s|de\s)?({_MONTH})\b|"
    rf"\b({_MONTH})\.?\s(\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])",
    re.IGNORECASE,
)
_CLOCK_PARTS = re.compile(r"(\d{1,2})(?:[:h](\d{2}))?[:\d]*\s?(?:([ap])\.?m)?")
_SCALES = {"k": 10**3, "t": 10**3, "m": 10**6, "b": 10**9, "g": 10**9}
_THOUSANDS = re.compile(r"\d{1,3}([.,'’\u00a0\u202f])\d{3}(?:\1\d{3})*")
_DIGITS_TOLD = 2


def number_keys(written: str, scale: str = "", *, percent: bool = False) -> frozenset[str]:
    """Return each value that a number may have: ``1,234`` is 1234, or 1.234 where commas divide.

    Spaces and apostrophes group digits. With two kinds of separators the last one divides.
    ``scale`` is what follows (``k``, ``million``); 85 percent is 0.85 as well.
    """
    values = _values(re.sub(r"['’\u00a0\u202f]", "", written))
    times = _SCALES[scale.strip()[0].casefold()] if scale.strip() else 1
    keys = {_key(value * times) for value in values}
    return frozenset(keys | {_key(value / 100) for value in values} if percent else keys)


def _values(written: str) -> list[Decimal]:
    marks = re.findall(r"[.,]", written)
    if len(set(marks)) == 2:
        divider = marks[-1]
        if marks.count(divider) > 1:
            return [Decimal(re.sub(r"[.,]", "", written))]
        other = "," if divider == "." else "."
        return [Decimal(written.replace(other, "").replace(divider, "."))]
    if not marks:
        return [Decimal(written)]
    joined = Decimal(re.sub(r"[.,]", "", written))
    grouped = _THOUSANDS.fullmatch(written) is not None
    if len(marks) > 1:
        return [joined]
    divided = Decimal(written.replace(",", "."))
    return [joined, divided] if grouped and written[0] != "0" else [divided]


def _key(value: Decimal) -> str:
    plain = format(value.normalize(), "f")
    return f"n:{plain}"


def word_key(word: str) -> str | None:
    """Return the value of a number word (``two``, ``zwei``)."""
    value = NUMBER_WORDS.get(word)
    return None if value is None else f"n:{value}"


def hours_of(keys: frozenset[str]) -> set[str]:
    """Return the hours of full hours as numbers, by either clock: ``08:00`` is at 8."""
    hours = (int(key.split(":")[1]) for key in keys if re.fullmatch(r"t:\d+:00", key))
    return {f"n:{each}" for hour in hours for each in (hour, (hour + 12) % 24, (hour - 12) % 24)}


def clock_keys(written: str) -> frozenset[str]:
    """Return the times of day that a time may be: ``2:30`` is 14:30 as well, ``2:30 pm`` is not."""
    parts = _CLOCK_PARTS.match(written)
    if parts is None:
        return frozenset()
    hour, minute, half = int(parts[1]), parts[2] or "00", parts[3]
    if half is not None:
        hours = {hour % 12 + (12 if half == "p" else 0)}
    else:
        hours = {hour, hour + 12} if hour < 12 and not parts[1].startswith("0") else {hour}
    return frozenset(f"t:{each}:{minute}" for each in hours)


def date_numbers(written: str) -> frozenset[str]:
    """Return the numbers of year, month and day."""
    return frozenset(f"n:{int(part)}" for part in re.findall(r"\d+", written))


def date_keys(written: str) -> frozenset[str]:
    """Return the days of the year that a date may be, and the date in full."""
    one, two, three = (int(part) for part in re.split(r"[-./]", written))
    if one > 31:
        return frozenset({_day(two, three), f"d:{one}-{two}-{three}"})
    return frozenset({_day(two, one), _day(one, two), f"d:{three}-{two}-{one}"})


def named_days(text: str) -> frozenset[str]:
    """Return the days that a text names by month (``12 May``), and their numbers."""
    found = set()
    for match in _DAY_OF_MONTH.finditer(text):
        day, month = (match[1], match[2]) if match[1] else (match[4], match[3])
        found |= {_day(MONTHS[month.casefold()], int(day)), f"n:{int(day)}"}
    return frozenset(found)


def _day(month: int, day: int) -> str:
    return f"d:{month}-{day}"


def rounded_keys(key: str) -> frozenset[str]:
    """Return what a number may be rounded to: whole, or to two digits or more.

    ``n:1234.5`` gives 1235, 1234, 1230 and 1200.
    """
    if not key.startswith("n:"):
        return frozenset()
    value = Decimal(key[2:])
    digits = len(value.as_tuple().digits)
    found = {
        value.to_integral_value(rounding="ROUND_HALF_UP"),
        value.to_integral_value("ROUND_DOWN"),
    }
    with localcontext() as context:
        for told in range(_DIGITS_TOLD, digits):
            context.prec = told
            found.add(+value)
    return frozenset(_key(each) for each in found if each)
