"""Numbers, times, dates and identifiers of a text, each with its clause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from baton.model.views import charge

from .facts import KEPT_LENGTH, NUMBER, Fact, name_parts, read_part
from .lazy_patterns import VALUE, regex, sides_of
from .normalise_values import in_digits
from .text_cache import text_cached
from .words import COMMON, clauses, sentences

# Days and months are also written like this, and are no separate numbers: "31/03". Not the end of a
# network, as in 10.0.12.0/24.
_SHORT_DATE = regex(r"(?<![\w/.])\d{1,2}/\d{1,2}(?![\w/])")


class Value(NamedTuple):
    """A number, time, date or name of a text, with its sentence and clause.

    ``words`` are the meaningful stems of the clause.
    """

    fact: Fact
    clause: str
    words: frozenset[str]
    sentence: str

    @property
    def kind(self) -> str:
        """The kind that it may be compared with: values of the same unit, times, dates, names.

        If a unit has two meanings, the first one by name counts, so that every process agrees:
        pounds are money, not mass.
        """
        return _kind_of(self.fact)

    @property
    def numbers(self) -> frozenset[float]:
        """The possible values."""
        return self.fact.numbers

    @property
    def sizes(self) -> frozenset[float]:
        """The values in the base unit of its kind or, without a unit, the values themselves."""
        sizes = frozenset(float(key.rsplit(":", 1)[1]) for key in self.fact.unit_keys)
        return sizes or self.numbers

    @property
    def digits(self) -> str:
        """Its digits, without separators and without leading and trailing zeros."""
        return re.sub(r"\D", "", self.fact.text)


# Each value is compared with many others, and every time by its kind.
@lru_cache(maxsize=4096)
def _kind_of(fact: Fact) -> str:
    units = [key.split(":")[1] for key in fact.unit_keys]
    if units:
        return min(units)
    if any(key.startswith("t:") for key in fact.keys):
        return "time"
    if fact.is_day:
        return "date"
    return fact.kind


def values_of(text: str) -> tuple[Value, ...]:
    """Return the values of a text that have digits, in order."""
    charge(text)
    return _values_of(text) if len(text) <= KEPT_LENGTH else tuple(_read_values(text))


@text_cached
def _values_of(text: str) -> tuple[Value, ...]:
    return tuple(_read_values(text))


def _read_values(text: str) -> Iterator[Value]:
    for sentence in sentences(_SHORT_DATE.sub(" ", in_digits(text))):
        for clause in clauses(sentence):
            reading = read_part(clause)
            words = frozenset(
                key for fact in reading.facts if fact.kind == "word" for key in fact.keys
            )
            for fact in reading.facts:
                if fact.kind in ("number", "identifier") and any(c.isdigit() for c in fact.text):
                    yield Value(fact, clause, words, sentence)


# 5 kg are passed on as 11 lb, 10 miles as 16 km, and 350 °F as 177 °C.
_ROUNDED_IN_CONVERSION = 0.03


# "Current date: 2026-11-14", "Updated 14 November, 09:12", "Today is 3 May": many programs write
# the time into prompts and answers. It replaces no date that a user asks for, and contradicts none.
_PRESENT = regex(
    r"""^\W*(?:the\ )?(?:(?:current|present|today['’]?s)\ (?:date|time|day)\b
        |(?:today|now|(?:right|it\ is)\ now|heute|jetzt|hoy|oggi|hoje)\s?(?::|=|is\b|ist\b|es\b|è\b)
        |as\ of\b|(?:last\ )?updated\b|generated\b|timestamp\b|sent\ (?:on|at)\b|aktualisiert\b
        |aktuelle[rs]?\ (?:datum|zeit|uhrzeit)\b|aujourd['’]hui,?\ (?:nous|c['’]est)|nous\ sommes\b
        |date\ du\ jour\b|(?:fecha|hora)\ actual\b|actualizado\b|data\ atual\b)""",
    re.VERBOSE | re.IGNORECASE,
)
_FEW_WORDS = 12
_YEAR = regex(r"20\d\d")


def is_present(value: Value) -> bool:
    """Return whether a value only says what time it is."""
    is_time = value.kind in ("date", "time") or _YEAR.fullmatch(value.fact.text) is not None
    if not is_time or len(value.sentence.split()) > _FEW_WORDS:
        return False
    return _PRESENT.match(value.sentence) is not None


def is_converted(one: Value, other: Value) -> bool:
    """Return whether two values are the same size in different units, with usual rounding."""
    if one.kind != other.kind or unit_size(one) == unit_size(other):
        return False
    return any(
        abs(a - b) <= _ROUNDED_IN_CONVERSION * max(abs(a), abs(b))
        for a in one.sizes
        for b in other.sizes
    )


def unit_size(value: Value) -> float:
    """Return the size of a value's unit in the base unit of its kind, or 1 without a unit."""
    if value.kind == "share":
        return 1.0
    size, number = min(value.sizes, default=1.0), min(value.numbers, default=1.0)
    return round(size / number, 6) if number else 1.0


def is_slip(value: Value, other: Value) -> bool:
    """Return whether a value differs like a slip: swapped digits, one digit, an extra zero."""
    mine, theirs = value.digits, other.digits
    if value.kind in ("date", "time"):
        return _shares_part(value.fact, other.fact)
    if value.kind == "identifier" and re.sub(r"\d", "", value.fact.text.casefold()) != re.sub(
        r"\d", "", other.fact.text.casefold()
    ):
        return False
    if len(mine) < 2 and len(theirs) < 2:
        return False
    # "96 of the 412 GB" for `96G`: the unit is left out.
    if value.kind != "identifier" and _written(value) == _written(other):
        return False
    # Swapped digits leave the decimal mark in place: 15 is not a slip of 5.1.
    if value.kind != "identifier" and not _decimals(value) & _decimals(other):
        return mine.strip("0") == theirs.strip("0") and len(theirs.strip("0")) >= 2
    if sorted(mine) == sorted(theirs):
        return True
    # Of two digits, one that differs is half of the number: 24 and 27 are rather two numbers.
    if len(mine) == len(theirs) and len(mine) >= 3:
        return sum(a != b for a, b in zip(mine, theirs, strict=True)) == 1
    return mine.strip("0") == theirs.strip("0") and len(theirs.strip("0")) >= 2


def _written(value: Value) -> str:
    """Return a number as written, without a sign, a unit or a scale."""
    number = re.search(NUMBER, value.fact.text)
    return number[0] if number is not None else ""


def _decimals(value: Value) -> set[int]:
    """Return the possible counts of decimal places: `1,234` has none or three."""
    marks = re.findall(r"[.,]\d+", value.fact.text)
    if not marks:
        return {0}
    behind = len(marks[-1]) - 1
    return {0, behind} if behind == 3 else {behind}


def decimal_places(value: Value) -> int:
    """Return how many digits follow the last mark of a number: 2 for 4,310.75, 3 for 4,310."""
    behind = re.search(r"[.,](\d+)\D*$", value.fact.text)
    return len(behind[1]) if behind is not None else 0


def are_near(some: Iterable[float], others: Iterable[float], share: float) -> bool:
    """Return whether a number differs from another by at most this share of the other."""
    others = list(others)
    return any(abs(a - b) <= share * abs(b) for a in some for b in others)


# The days before each month, in a year without 29 February.
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
YEAR = 365


def moments(keys: Iterable[str]) -> Iterator[float]:
    """Yield times as minutes of the day, and dates as days of a year of 365 days.

    `13.25.` is no date, whatever a text means by it.
    """
    for key in keys:
        if key.startswith("t:"):
            hour, minute = key[2:].split(":")
            yield 60.0 * int(hour) + int(minute)
        elif key.startswith("d:") and key.count("-") == 1:
            month, day = map(int, key[2:].split("-"))
            if 1 <= month <= len(_DAYS_BEFORE):
                yield float(_DAYS_BEFORE[month - 1] + day)


def days_of(value: Value) -> set[str]:
    """Return the possible days of the month of a date."""
    return {key.rpartition("-")[2] for key in value.fact.keys if key.count("-") == 1}


def months_of(value: Value) -> set[str]:
    """Return the possible months of a date."""
    return {key[2:].partition("-")[0] for key in value.fact.keys if key.count("-") == 1}


def is_tens_apart(one: Value, other: Value) -> bool:
    """Return whether dates are 10 or 20 days apart, like 27 and 17 June: one digit differs."""
    apart = {abs(int(a) - int(b)) for a in days_of(one) for b in days_of(other)}
    return bool(months_of(one) & months_of(other)) and bool(apart & {10, 20})


def unit_text(value: Value) -> str:
    """Return the word after a number, including a slash and the text after it."""
    number = re.match(r"\D*[\d.,'’]*\d", value.fact.text)
    written = number[0] if number is not None else value.fact.text
    at = value.clause.find(written)
    behind = value.clause[at + len(written) :] if at >= 0 else ""
    match = re.match(r"\s?((?:[^\W\d]+|%)(?:/[^\W\d]+)?)", behind)
    return match[1].casefold() if match is not None else ""


# The number of equal words around two numbers: "full in about 140 days" for "full in about 40
# days". With two, "of the 40 days" would match any "of the 3 days".
_FRAME = 3
# `mg/kg` is one word.
_TOKENS = regex(r"[^\W_]+(?:/[^\W\d_]+)*|[,;:()]")
# The maximum distance of these words from the number, in characters.
_REACH = 80


def is_framed_alike(value: Value, other: Value, *, slip: bool) -> bool:
    """Return whether two numbers are between the same words. With ``slip``, fewer are enough."""
    count, telling = 0, False
    for some, others in zip(_around(value), _around(other), strict=True):
        # Words on one side only are not enough: "a price of" begins many sentences.
        if not some or some[:1] != others[:1]:
            return False
        for one, two in zip(some, others, strict=False):
            if one != two or not one.replace("/", "").isalpha():
                break
            count += 1
            # "Of" and "for" are around any number.
            telling = telling or (len(one) > 3 and one not in COMMON)
    # "Velorastin 200 mg" for "Velorastin 20 mg" is a slip in the number that belongs to a name.
    return count >= _FRAME or (slip and telling and count >= _FRAME - 1)


# The number of meaningful copied words that are needed around a number. One is enough if the number
# differs like a slip.
_COPIED = 2


def is_copied_around(value: Value, other: Value) -> bool:
    """Return whether the words on both sides of two numbers are the same, ignoring punctuation.

    The nearest word on each side has to be the same, or the text begins or ends there.
    """
    telling, words = 0, 0
    for some, others in zip(_around(value), _around(other), strict=True):
        mine = [token for token in some if token[0].isalnum()]
        theirs = [token for token in others if token[0].isalnum()]
        if mine[:1] != theirs[:1]:
            return False
        for one, two in zip(mine, theirs, strict=False):
            if one != two:
                break
            words += 1
            # "22 pallets at 14 °C" for "22 pallets at 4 °C" also repeats a number.
            telling += (len(one) > 3 and one.isalpha() and one not in COMMON) or (
                len(one) > 1 and one.isdecimal()
            )
    return words >= _FRAME and telling >= (1 if is_slip(value, other) else _COPIED)


_WHOLE = regex(rf"(?<![\d.,:]){VALUE}(?!\d)")
_NO_END = regex(rf"(?<!\d){VALUE}")


@lru_cache(maxsize=1024)
def _around(value: Value) -> tuple[list[str], list[str]]:
    """Return the words and punctuation before a number, the nearest first, and those after it."""
    sides = sides_of(_WHOLE, value.fact.text, value.sentence)
    if sides is None:
        return [], []
    before, after = sides
    return (
        _TOKENS.findall(before[-_REACH:].casefold())[::-1],
        _TOKENS.findall(after[:_REACH].casefold()),
    )


def labels(value: Value) -> frozenset[str]:
    """Return the words right next to a value, which identify it: `level` in "level: 3"."""
    sides = sides_of(_NO_END, value.fact.text, value.sentence)
    if sides is None:
        return frozenset()
    # Words beyond another number belong to that number: "hive 8 has 6 seams".
    before = re.split(r"[,;\n(\d]", sides[0])[-1]
    after = re.split(r"[,;\n)\d]", sides[1])[0]
    beside = [*_telling(before)[-1:], *_telling(after)[:1]]
    return frozenset(beside) | frozenset(name_parts(" ".join(beside)))


def _telling(text: str) -> list[str]:
    words = (word.casefold() for word in re.findall(r"[^\W\d_]+", text))
    return [word for word in words if word not in COMMON]


def _shares_part(one: Fact, other: Fact) -> bool:
    """Return whether two dates share a day or month, or two times an hour or minute."""
    parts = [
        re.split(r"[:-]", key[2:])
        for fact in (one, other)
        for key in fact.keys
        if key.startswith(("t:", "d:"))
    ]
    half = sum(key.startswith(("t:", "d:")) for key in one.keys)
    return any(
        len(a) == len(b) == 2 and (a[0] == b[0] or a[1] == b[1])
        for a in parts[:half]
        for b in parts[half:]
    )
