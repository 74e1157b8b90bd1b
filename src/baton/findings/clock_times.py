"""Times of day in any notation: ``14:15``, ``2.15 pm``, ``a quarter past two in the afternoon``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from .lazy_patterns import regex
from .number_words import ONES, SMALL, folded
from .words import Spelled

# "5 p.m." is "5 pm". The dot after it can end a sentence, and stays.
_DOTTED_HALF = regex(r"(?<=\d)(\s?[ap])\.\s?m(?!\w)", re.IGNORECASE)


# `10.30 am` and `10.30 Uhr`, but not `10.30`, which can be a price.
_DOTTED_TIME = regex(
    r"(?<![\d.,:])([01]?\d|2[0-4])\.([0-5]\d)(?=\s?(?:[ap]m|uhr)\b)", re.IGNORECASE
)


# "A quarter past two" and "ten to five", but not "10 to 5" and "from ten to five", which are ranges
# of hours or numbers.
_PAST = regex(
    r"(?<!-)\b(?!(?<=\bfrom )[\w-]+ to\b)(?:an? )?"
    r"(?P<part>quarter|half|(?:twenty[- ]five|five|ten|twenty)(?= (?:past|to)\b)"
    r"|\d{1,2}(?= past\b)) "
    rf"(?P<side>past|to) (?P<hour>{SMALL}|\d{{1,2}})\b(?!\s?[%€$£:\d]|[.,]\d)"
    r"(?: in the (?P<half>morning|afternoon|evening))?",
    re.IGNORECASE,
)


# "9 o'clock", "9 Uhr", "9 in the morning", but not "9 guests".
_HOUR = regex(
    rf"\b(?P<hour>{SMALL}|\d{{1,2}})(?:[:.](?P<minute>[0-5]\d))?"
    r"(?:[ ]o['’]?clock\b|[ ]uhr\b|[ ]?h\b|[ ]?(?P<am>[ap])\.?[ ]?m\b"
    r"|(?=[ ]in[ ]the[ ](?:morning|afternoon|evening)))"
    r"(?:[ ]in[ ]the[ ](?P<half>morning|afternoon|evening))?(?![ ]?\d)",
    re.IGNORECASE,
)


# In "between 3 and 5 pm", both hours are in the afternoon.
_BOTH_HALVES = regex(
    r"\b(\d{1,2})(?P<join>\s?[-–]\s?| (?:and|to|until) )(\d{1,2}) ?([ap])\.?m\b", re.IGNORECASE
)


_NAMED_HOURS = Spelled({"noon": 12, "midday": 12, "mittag": 12, "midnight": 0, "mitternacht": 0})


_HOUR_NAMES = regex(rf"\b(?:{'|'.join(_NAMED_HOURS)})\b", re.IGNORECASE)


# `14.30` may be a time of day; `14.3` and `14.301` are not.
_DOTTED = regex(r"(?<![\d.,])(\d{1,2})\.([0-5]\d)(?:\s?([ap])\.?m\b)?(?!\d|[.,]\d)", re.IGNORECASE)


# `1430` may be a time of day; `1475` and `14301` are not.
_PLAIN_CLOCK = regex(r"(?<![\d.,:])([01]\d|2[0-3])([0-5]\d)(?!\d|[.,:]\d)")


# `1400 hrs` and `1400 Uhr` are times; `1400 guests` are not.
_HOURS_OF_DAY = regex(r" ?(?:h|hrs|hours|uhr)\b", re.IGNORECASE)


_PARTS = Spelled({"quarter": 15, "half": 30, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25})


_HALVES = {"morning": "a", "afternoon": "p", "evening": "p"}


def keys_of_spoken_times(text: str, words: frozenset[str]) -> Iterator[str]:
    """Yield the keys of times with a word: `9 o'clock`, `2 pm`, `noon`.

    ``words`` are the words of the text (``words_of``).
    """
    if True in map(_may_tell_hour, words):
        for match in _HOUR.finditer(text):
            hour = _hour(match["hour"])
            if hour is not None:
                half = _HALVES.get((match["half"] or "").lower()) or (match["am"] or "").lower()
                yield from _clock(hour, int(match["minute"] or 0), half)
    if not _HOUR_WORDS.isdisjoint(words):
        for match in _HOUR_NAMES.finditer(text):
            hour = _NAMED_HOURS[match[0].lower()]
            yield f"t:{hour}:00"
            yield f"n:{hour}"


# One word of each form of `_HOUR`, for texts that can be skipped.
_TELLS_HOUR = regex(
    rf"(?<!\w)(?:o?clock|uhr|morning|afternoon|evening|m|(?:{SMALL}|\w*\d)?(?:h|[ap]m))",
    re.IGNORECASE,
)


_HOUR_WORDS = folded(_NAMED_HOURS)


@lru_cache(maxsize=8192)
def _may_tell_hour(word: str) -> bool:
    """Return whether a word makes a number a time: `clock`, `pm`, `7h`, the `m` in `p.m.`."""
    return _TELLS_HOUR.fullmatch(word) is not None


def _past(match: re.Match[str]) -> str:
    """Write `a quarter past two in the afternoon` as `2:15 pm`."""
    part = match["part"].lower().replace(" ", "-")
    minutes = int(part) if part.isdigit() else _PARTS[part]
    hour = _hour(match["hour"])
    if hour is None or not 0 < minutes <= 30:
        return match[0]
    if match["side"].lower() == "to":
        hour, minutes = (hour - 1) or 12, 60 - minutes
    half = _HALVES.get((match["half"] or "").lower())
    return f"{hour}:{minutes:02d}" + (f" {half}m" if half else "")


def _hour(written: str) -> int | None:
    hour = int(written) if written.isdigit() else ONES.get(written.lower())
    return hour if hour is not None and hour <= 24 else None


def _clock(hour: int, minute: int, half: str) -> Iterator[str]:
    if hour > 24 or minute > 59:
        return
    if half:
        hours = {hour % 12 + (12 if half == "p" else 0)}
    else:
        hours = {hour, hour + 12} if hour < 12 else {hour}
    for each in hours:
        yield f"t:{each}:{minute:02d}"


# Texts without it have neither of the two patterns below.
_MAY_BE_TIME = regex(r"past\b|\bto\b|[ap]\.?m\b", re.IGNORECASE)


def times_with_colons(text: str) -> str:
    """Write `5 p.m.` as `5 pm` and `10.30 am` as `10:30 am`."""
    if "p." in text or "a." in text or "P." in text or "A." in text:
        text = _DOTTED_HALF.sub(r"\1m", text)
    return _DOTTED_TIME.sub(r"\1:\2", text) if "." in text else text


def spoken_times_in_digits(text: str) -> str:
    """Write `a quarter past two` as `2:15`, and `between 3 and 5 pm` with `pm` at both hours."""
    if _MAY_BE_TIME.search(text) is None:
        return text
    return _BOTH_HALVES.sub(r"\1 \4m\g<join>\3 \4m", _PAST.sub(_past, text))


def keys_of_plain_times(text: str) -> Iterator[str]:
    """Yield the keys of four digits that may be a time of day: `1430`."""
    for match in _PLAIN_CLOCK.finditer(text):
        yield f"t:{int(match[1])}:{match[2]}"


def keys_of_dotted_times(text: str) -> Iterator[str]:
    """Yield the keys of numbers with a dot that may be a time of day: `14.30`."""
    for match in _DOTTED.finditer(text):
        yield from _clock(int(match[1]), int(match[2]), (match[3] or "").lower())


def key_of_hours(digits: str, after: str) -> str | None:
    """Return the key of `1400` if `hrs`, `Uhr` or the like comes after it."""
    clock = _PLAIN_CLOCK.fullmatch(digits)
    if clock is None or not _HOURS_OF_DAY.match(after):
        return None
    return f"t:{int(clock[1])}:{clock[2]}"
