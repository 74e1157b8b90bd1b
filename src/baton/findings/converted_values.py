"""May a caller have converted a result's values: to another time zone, currency or unit?

07:42 CEST is 05:42 UTC, 22,100 NOK are 1,905 EUR, 48 kg are 105.8 lb. Headings and requests often
name the zone or the currency, and not the value itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from itertools import product

from .lazy_patterns import regex
from .normalise_values import sizes_of_units
from .text_cache import text_cached
from .text_values import Value, are_near, days_of, decimal_places, moments, months_of

# "UTC+2", "14:00 CEST", "2 pm Lisbon time", "13:25 Ortszeit", "heure de Paris", "our time". "ET"
# and "PT" only after a time, because both are words of other languages.
_ZONE = regex(
    r"""\b(?:(?:UTC|GMT)(?:\s?[+−-]\s?\d{1,2}(?::?\d\d)?)?|(?:CES?|WES?|EES?|ME|MES|OE)[TZ]
        |[ECMP][SD]T|A[EWC]S?[SD]?T|NZ[SD]T|BST|JST|KST|IST|SGT|HKT|MSK|SAST|BRT|ART)\b
    |(?<=\d)\s?(?:[ap]\.?m\.?\ )?(?:ET|PT|CT|MT|Z)\b
    |(?<=:\d\d)[+−-]\d\d:\d\d\b
    |\b(?:[A-Z][\w'’-]{1,20}|(?i:local|our|your|their|my|his|her|universal))\ time\b
    |(?i:\b(?:time\ ?zones?|timezones?|zeitzonen?|ortszeit|fuseaux?|zona\ horaria|huso\ horario))
    |\b(?:[A-Z]\w{1,20}er|(?i:unserer|eurer|ihrer|deiner|meiner|hiesiger|dortiger))\ Zeit\b
    |(?i:\bheures?\ (?:locales?|d['’]ici))|\b[Hh]eure\ d(?:e\ |['’])[A-Z]
    |(?i:\bhora\ local)|\b[Hh]ora\ de\ [A-Z]|\b(?i:ora\ locale|ora\ di)\b
    |(?i:\b(?:bei\ uns|chez\ (?:nous|vous|moi)))\b""",
    re.VERBOSE,
)
# "At the same time", "by the time", "Last time": no zones.
_NO_ZONE = regex(
    r"\b(?:the|last|next|this|that|first|second|any|some|every|each|long|full|part|real|lead|"
    r"delivery|travel|waiting|opening|closing|start|end|free|spare|what|same|more|good|no) time\b",
    re.IGNORECASE,
)


@text_cached
def zones_in(text: str) -> frozenset[str]:
    """Return the time zones that a text names, in upper case."""
    zones = (match[0].strip().upper() for match in _ZONE.finditer(text))
    return frozenset(zone for zone in zones if not _NO_ZONE.fullmatch(zone))


def zone_of(value: Value) -> str:
    """Return the first time zone that a value's clause names: 02:40 UTC is 3:40 in Berlin."""
    return min(zones_in(value.clause), default="")


_CURRENCY_WORDS = {
    "EUR": "€ euro euros", "USD": "$ dollar dollars", "GBP": "£ sterling", "INR": "₹ rupee rupees",
    "CHF": "franken francs", "JPY": "¥ yen", "PLN": "zł zloty", "CZK": "kč", "TRY": "₺ lira",
    "KR": "kr kroner kronor krone krona kronen koruna", "HUF": "forint", "BRL": "reais",
    "PESO": "peso pesos", "CNY": "yuan rmb", "ILS": "₪ shekel shekels", "RUB": "₽", "THB": "฿ baht",
}  # fmt: skip
_CURRENCIES = {word: code for code, words in _CURRENCY_WORDS.items() for word in words.split()}
# Signs and codes as written, names in any case: `€`, `NOK`, "Dollars". `nok` is no currency, but a
# Norwegian word.
_CURRENCY = regex(
    r"\b(?:EUR|USD|GBP|CHF|JPY|INR|NOK|SEK|DKK|ISK|PLN|CZK|HUF|RON|TRY|BRL|MXN|CAD|AUD|NZD|CNY|ZAR"
    r"|RUB|ILS|THB|SGD|HKD|KRW)\b|[€$£₹¥₺₪₽฿]|\b(?i:euros?|dollars?|sterling|rupees?|franken|francs"
    r"|yen|zł|zloty|kč|lira|kr|kroner|kronor|krone|krona|kronen|koruna|forint|reais|pesos?|yuan|rmb"
    r"|shekels?|baht)\b"
)


@text_cached
def currencies_in(text: str) -> frozenset[str]:
    """Return the codes of the currencies that a text names or has signs of."""
    currencies = (match[0] for match in _CURRENCY.finditer(text))
    return frozenset(_CURRENCIES.get(each.casefold(), each.upper()) for each in currencies)


def may_be_converted(
    meant: Value, value: Value, mine: Sequence[Value], theirs: Sequence[Value], texts: Sequence[str]
) -> bool:
    """Return whether a value of an answer may be one of a result, converted.

    ``meant`` is the value that it seems to stand for, ``mine`` are the values of the answer, and
    ``theirs`` those of the result. ``texts``: the answer, the result, and all other texts that the
    caller had.
    """
    if value.kind in ("time", "date"):
        if _is_moved_like_others(meant, value, mine, theirs):
            return True
        return _is_moment_of_other_zone(meant, value, texts)
    if value.kind in _NO_AMOUNTS or meant.kind in _NO_AMOUNTS:
        return False
    return (
        _has_ratio_of_others(meant, value, mine, theirs)
        or _is_in_other_currency(meant, value, texts)
        or any(_is_in_other_unit(other, value, texts) for other in theirs)
        or _has_factor_of_words(meant, value, texts)
    )


# Kinds without a size, which no currency or unit converts.
_NO_AMOUNTS = frozenset({"time", "date", "identifier"})
# Minutes of a day: 23:30 and 00:30 are one hour apart.
_DAY = 24 * 60
# Zones differ by whole hours, half hours or quarters.
_QUARTER_HOUR = 15
# How many other values have to be moved or converted like a value, if it is another one's than it
# seems to be.
_OTHERS = 2


def _is_moved_like_others(
    meant: Value, value: Value, mine: Sequence[Value], theirs: Sequence[Value]
) -> bool:
    """Return whether other times or dates are moved by as much: to UTC, or "a week later"."""
    moves = _moves(tuple(mine), tuple(theirs), value.kind)
    own = [(meant, _shifts(meant, value))]
    if len(moves) <= _MOST_PAIRS:
        own += [(old, shifts) for new, old, shifts in moves if new.fact.keys == value.fact.keys]
    for other, moved in own:
        shifts = {shift for shift in moved if not _is_odd(shift, value)}
        like = sum(
            bool(shifts & each)
            and one.fact.keys != value.fact.keys
            and two.fact.keys != other.fact.keys
            for one, two, each in moves
        )
        # The two days of a range move together.
        sure = other.fact.keys == meant.fact.keys and value.kind == "time"
        if like >= (1 if sure else _OTHERS):
            return True
    return False


@lru_cache(maxsize=8)
def _moves(
    mine: tuple[Value, ...], theirs: tuple[Value, ...], kind: str
) -> list[tuple[Value, Value, set[float]]]:
    """Return each pair of moments, of the answer and of the result, and what they differ by.

    Cached, because each fault of an answer is compared with all of them.
    """
    pairs = _only_in_one(mine, theirs, {kind})
    return [(one, other, _shifts(other, one)) for one, other in pairs]


# Of more pairs, each would be compared with each.
_MOST_PAIRS = 400


def _is_odd(shift: float, value: Value) -> bool:
    return value.kind == "time" and shift % _QUARTER_HOUR != 0


def _is_moment_of_other_zone(meant: Value, value: Value, texts: Sequence[str]) -> bool:
    """Return whether texts name time zones, and not the same one for two times or dates."""
    if value.kind == "date" and not _is_next_day(meant, value):
        return False
    if value.kind == "time" and all(_is_odd(shift, value) for shift in _shifts(meant, value)):
        return False
    answer, result, *others = (zones_in(text) for text in texts)
    if (zone := zone_of(value)) and zone == zone_of(meant):
        return False
    named = answer.union(result, *others)
    return bool(named) and not answer == result == named


def _shifts(one: Value, other: Value) -> set[float]:
    """Return by how many minutes of a day, or days of a year, two moments are apart."""
    if one.kind == "date":
        return {b - a for a in _days(one) for b in _days(other) if a != b}
    return {
        (b - a) % _DAY for a in moments(one.fact.keys) for b in moments(other.fact.keys) if a != b
    }


_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


def _days(value: Value) -> set[int]:
    dates = (key[2:].split("-") for key in value.fact.keys if key.startswith("d:"))
    return {
        _DAYS_BEFORE[int(date[0]) - 1] + int(date[1])
        for date in dates
        if len(date) == 2 and 1 <= int(date[0]) <= len(_DAYS_BEFORE)
    }


def _is_next_day(one: Value, other: Value) -> bool:
    """Return whether two dates are neighbours: 23:30 on 4 May is 1:30 on 5 May."""
    if not months_of(one) & months_of(other):
        return False
    return any(abs(int(a) - int(b)) == 1 for a in days_of(one) for b in days_of(other))


def _only_in_one(
    mine: Sequence[Value], theirs: Sequence[Value], kinds: Set[str]
) -> Iterator[tuple[Value, Value]]:
    """Yield each value that only the answer has, with each one that only the result has.

    Both are of the same one of these kinds.
    """
    own = [v for v in mine if v.kind in kinds]
    others = [v for v in theirs if v.kind in kinds]
    stated = frozenset[str]().union(*(v.fact.keys for v in own))
    known = frozenset[str]().union(*(v.fact.keys for v in others))
    new = (v for v in own if not v.fact.keys & known)
    gone = [v for v in others if not v.fact.keys & stated]
    yield from ((one, other) for one, other in product(new, gone) if one.kind == other.kind)


# Ratios of rounded values differ by this share. With other words around them, by less, because
# two of many values have nearly any ratio by chance.
_ROUNDED = 0.02
_EXACTLY = 0.002
# Amounts that differ by less are the same one, rounded: 105.8 and 106 lb. Amounts with a larger
# rounding error are too rough to show a tax: 2.5 and 3 EUR need not be 20 % apart.
_SLIGHT = 0.005


def _has_ratio_of_others(
    meant: Value, value: Value, mine: Sequence[Value], theirs: Sequence[Value]
) -> bool:
    """Return whether another value of the answer has the same ratio to one of the result.

    4,953 and 1,207 EUR for 57,460 and 14,000 NOK.
    """
    made = _ratios(tuple(mine), tuple(theirs))
    own = [(meant, _ratio(meant, value))]
    if len(made) <= _MOST_PAIRS:
        own += [(old, ratio) for new, old, ratio, _ in made if new.fact.keys == value.fact.keys]
    rounded = _half_a_digit(value)
    for other, ratio in own:
        like = sum(
            one.fact.keys != value.fact.keys
            and two.fact.keys != other.fact.keys
            and are_near(ratio, each, min(rounded + off, _ROUNDED) if off else _EXACTLY)
            for one, two, each, off in made
        )
        if like >= (1 if other.fact.keys == meant.fact.keys else _OTHERS):
            return True
    return False


@lru_cache(maxsize=8)
def _ratios(
    mine: tuple[Value, ...], theirs: tuple[Value, ...]
) -> list[tuple[Value, Value, list[float], float]]:
    """Return each pair of amounts, one of the answer and one of the result, and their ratio.

    The last item is how far it may be off, or 0 without a common word. Cached like ``_moves``.
    """
    kinds = {v.kind for v in (*mine, *theirs)} - _NO_AMOUNTS
    return [
        (new, old, _ratio(old, new), _half_a_digit(new) + _EXACTLY if new.words & old.words else 0)
        for new, old in _only_in_one(mine, theirs, kinds)
    ]


def _ratio(old: Value, new: Value) -> list[float]:
    """Return the possible ratios of two amounts, other than 1."""
    ratios = [b / a for a in old.sizes for b in new.sizes if a and b]
    return [ratio for ratio in ratios if abs(ratio - 1) > _SLIGHT]


def _half_a_digit(value: Value) -> float:
    """Return half of the last digit that a value is written with, as a share of the value.

    4.80 counts as 4.8: prices are often rounded to ten cents.
    """
    size = min((abs(number) for number in value.numbers if number), default=1.0)
    cents = re.search(r"[.,](\d{1,2})\D*$", value.fact.text)
    places = decimal_places(value) if cents is None else len(cents[1].rstrip("0"))
    # A little more than half, as floats are not exact: 1.25 rounds to 1.3.
    return 0.51 * 10.0**-places / size


def _is_in_other_currency(meant: Value, value: Value, texts: Sequence[str]) -> bool:
    """Return whether the texts name currencies, and not the same one for both amounts."""
    if "number" not in (meant.kind, value.kind):
        return False
    if not (_is_money(meant) and _is_money(value)) or _currency_of(value) & _currency_of(meant):
        return False
    answer, result, *others = (currencies_in(text) for text in texts)
    return len(answer.union(result, *others)) > 1


def _is_money(value: Value) -> bool:
    """Return whether a value is an amount of money, or may be one."""
    return value.kind == "number" or value.kind.isupper()


def _currency_of(value: Value) -> Set[str]:
    return {value.kind} if value.kind.isupper() else currencies_in(value.clause)


def _is_in_other_unit(meant: Value, value: Value, texts: Sequence[str]) -> bool:
    """Return whether two plain numbers are the same size in units that headings name: kg and lb."""
    if not {value.kind, meant.kind} <= {"number", "temperature"}:
        return False
    if any(map(_DEGREES.search, texts)):
        degrees = [(a, b) for a in meant.numbers for b in value.numbers]
        # Either may be rounded first: 19.6 °C are 67.3 °F, or as 20 °C 68 °F.
        if any(abs(1.8 * a + 32 - b) < 1 or abs(1.8 * b + 32 - a) < 1 for a, b in degrees):
            return True
    answer, result, *others = (sizes_of_units(text) for text in texts)
    asked = frozenset[tuple[str, float]]().union(*others)
    return any(
        are_near([b * mine for b in value.numbers], [a * theirs for a in meant.numbers], _ROUNDED)
        for (of, theirs), (what, mine) in product(result | asked, answer | asked)
        if of == what and theirs != mine
    )


# A word or sign of temperatures: "in Fahrenheit", `20 °C`, but not "20 degrees", which may be an
# angle.
_DEGREES = regex(r"\b(?:fahrenheit|celsius|centigrade)\b|°\s?[CF]\b", re.IGNORECASE)
# "Net", "incl. VAT", "TTC", "zzgl. MwSt", but not "network".
_TAX = regex(
    r"\b(?:net|gross|vat|gst|tax\w*|netto|brutto|mwst|ust|mehrwertsteuer\w*|ht|ttc|tva|hors taxes?"
    r"|iva|impuestos?|excl|incl|inkl)\b",
    re.IGNORECASE,
)
# Rates of sales tax in Europe and Canada: an amount and its gross amount differ by one of them.
_TAXES = (0.05, 0.055, 0.07, 0.08, 0.081, 0.1, 0.13, 0.19, 0.2, 0.21, 0.22, 0.23, 0.24, 0.25, 0.27)
# "In thousands", "k€", "Mio": numbers are shown in other units. "Thousands of users" is only much.
_THOUSANDS = regex(
    r"\b(?:in|en)\s(?:k|thousands?|tsd|tausend|milliers|miles)\b|\bt€|\bteur\b|\bk€|\btsd\b"
    r"|\|\s?k\s?\||\(k\)|\bin\s(?:m|millions?|mio)\b|\bmio\b|\bmillions?\b",
    re.IGNORECASE,
)


def _has_factor_of_words(meant: Value, value: Value, texts: Sequence[str]) -> bool:
    """Return whether words explain the ratio of two amounts: net and gross, "in thousands"."""
    money = _is_money(meant) and _is_money(value)
    ratios = [max(a, b) / min(a, b) for a in meant.numbers for b in value.numbers if a and b]
    near = _half_a_digit(value) + _half_a_digit(meant)
    if money and near < _SLIGHT and any(map(_TAX.search, texts)):
        if are_near(ratios, [1 + tax for tax in _TAXES], near):
            return True
    # 97.5 k for 97,450.
    scaled = are_near(ratios, [1e3, 1e6], min(near, _ROUNDED))
    return scaled and any(map(_THOUSANDS.search, texts))
