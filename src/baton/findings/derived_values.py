"""Does a value follow from other values: rounded, shifted, a sum, a product, a share, a mean?

A caller that works something out states values that no text has: "38 of 41 are fine" if 3 are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, combinations

from .another_value import gives_roughly
from .facts import rounded_keys
from .known_values import MOST_VALUES, Known
from .lazy_patterns import regex
from .text_values import (
    YEAR,
    Value,
    are_near,
    decimal_places,
    is_converted,
    moments,
    unit_size,
    unit_text,
    values_of,
)

# The minutes that times are rounded to, and the largest distance: "half past three" for 15:29.
_QUARTER_HOUR = 15
_MINUTES_ROUNDED = 4


def is_rounded(value: Value, against: Known) -> bool:
    """Return whether a value is a known one, rounded, or the result's in another unit."""
    known_values = [*against.values, *against.others]
    rounded = (rounded_keys(key) for other in known_values for key in other.fact.keys)
    if any(keys & value.fact.keys for keys in rounded):
        return True
    if value.kind == "time":
        quarters = [m for m in moments(value.fact.keys) if m % _QUARTER_HOUR == 0]
        times = [m for v in known_values if v.kind == "time" for m in moments(v.fact.keys)]
        return any(abs(a - b) <= _MINUTES_ROUNDED for a in quarters for b in times)
    # "80 feet" are roughly 24.5 m.
    return any(is_converted(value, other) for other in against.values)


def is_sum(value: Value, against: Known) -> bool:
    """Return whether a value is the sum or difference of two known ones: a balance."""
    sizes = {size for v in (*against.values, *against.others) for size in v.sizes}
    near = ((total, size) for total in value.sizes for size in sizes)
    return any(round(abs(a - b), 6) in sizes or round(a + b, 6) in sizes for a, b in near)


def is_rest(value: Value, other: Value) -> bool:
    """Return whether a value is the rest of a total: 38 of 41 are fine if 3 are not."""
    wholes = {n for v in values_of(other.sentence) for n in v.numbers}
    wholes &= {n for v in values_of(value.sentence) for n in v.numbers}
    return any(a + b in wholes for a in value.numbers for b in other.numbers)


# "90 EUR for both", "each way": an amount is doubled or shared.
_SHARED = regex(
    r"\b(?:both|double|twice|half|each|per|pair|couple|return|round[- ]trip|in total|altogether"
    r"|beide\w*|je|pro|doppelt|halb\w*|zusammen|hin und zurück|deux|chacun\w*|par|double|moitié"
    r"|dos|cada|por|ambos|doble|mitad)\b",
    re.IGNORECASE,
)


def is_made_of(value: Value, other: Value, against: Known) -> bool:
    """Return whether a value is made of another by a number that any text has: 90 for two at 45.

    Sums of two other values are so many that nearly any number is one. With the same words around
    a value, only those that begin with the other value count.
    """
    if value.kind in ("date", "time"):
        return False
    if _SHARED.findall(value.clause.casefold()) != _SHARED.findall(other.clause.casefold()):
        return True
    known = (*against.values, *against.others)
    numbers = {n for v in known for n in v.numbers if n}
    # 50 g of what has 4.2 g per 100 g, and 35 % of 214 rows. Ten times as much is an extra zero.
    factors = [n / 100 for n in numbers] + [n for n in numbers if n > _DOUBLE]
    factors = [n for n in factors if n not in _POWERS_OF_TEN]
    sizes = {size for v in known if v.kind == value.kind for size in v.sizes}
    largest = max(value.sizes, default=0.0)
    near = max(min(_half_a_digit(value), _ROUNDED_AMOUNT * largest), _EXACTLY * largest)
    for size in other.sizes:
        made = [size * factor for factor in factors]
        made += [size / factor for factor in factors if factor > _DOUBLE]
        made += [abs(size - each) for each in sizes] + [size + each for each in sizes - {size}]
        if any(abs(mine - each) <= near for mine in value.sizes for each in made):
            return True
    return False


# Any text has a "two" or "both" somewhere, and words show whether an amount is doubled.
_DOUBLE = 2.0
_POWERS_OF_TEN = frozenset({0.01, 0.1, 1.0, 10.0, 100.0, 1000.0})


# "€3,560 at £1 = €1.17", "zum Kurs 0,92", "512 x 0.92"
_AT_RATE = regex(
    r"(?<!\d)1\s?[^\W\d]{0,20}\s?=|[€$£]1\s?=|\b(?:rate|kurs|wechselkurs|taux|cambio|tasso|câmbio)\b"
    r"|\d\s?[x×*·]\s?\d",
    re.IGNORECASE,
)


def is_at_rate(value: Value, mine: list[Value], against: Known) -> bool:
    """Return whether an amount is another one at a rate: 3,040 GBP at 1.17 are some 3,560 EUR.

    The sentence has to show a rate; it can come from the request.
    """
    if _AT_RATE.search(value.sentence) is None:
        return False
    amounts = {n for v in mine if v is not value for n in v.numbers}
    rates = {n for v in mine if v.sentence == value.sentence and v is not value for n in v.numbers}
    if len(against.others) <= 2 * MOST_VALUES:
        rates |= {n for v in against.others for n in v.numbers}
    made = (made for a in amounts for b in rates if a and b for made in (a * b, a / b))
    return are_near(value.numbers, list(made), _EXACTLY)


# The largest distance of a number with "about" from the computed value.
_ROUGHLY = 0.02
# The largest distance of any other number: results of divisions are rounded.
_EXACTLY = 0.002
# The largest distance of a share, which is mostly given in whole percents.
_WHOLE_PERCENT = 0.006
# Double, and the numbers of days, weeks, months and hours in one another.
_TIMES = {float(n) for n in range(2, 32)} - {10.0}
_CONSTANTS = (2.0, 7.0, 12.0, 24.0, 30.0, 52.0, 60.0, 365.0)
# From which size on numbers explain a small one by their difference (see `_combined`). Among
# smaller numbers, nearly any small one is some difference: 0 for 21.
_LARGE = 1000.0


def follows(value: Value, mine: list[Value], against: Known) -> bool:
    """Return whether a value follows from others: a sum, difference, product or share.

    ``mine`` are all values of the text that has it.
    """
    if value.kind in ("time", "date"):
        return _is_shifted(value, mine, against)
    if _is_year_of_shifted(value, mine, against):
        return True
    base = [*against.values, *against.others, *(v for v in mine if v is not value)]
    if len(base) > 2 * MOST_VALUES or is_at_rate(value, mine, against):
        return True
    same = [size for v in base if v.kind == value.kind for size in v.sizes]
    if value.kind != "number":
        same += [n * unit_size(value) for n in _added(against)]
    if _is_multiple(value, same) or _is_with_share(value, base) or _is_part(value, base):
        return True
    if value.kind == "share":
        made = [*_combined(value, same, base), *_shares(same, base)]
        return any(abs(a - b) <= _WHOLE_PERCENT for a in value.sizes for b in made)
    if _is_total_or_mean(value, against):
        return True
    made = [*_combined(value, same, base), *_parts_of_rates(value, against), *_each(value, against)]
    return are_near(value.sizes, made, _ROUGHLY if gives_roughly(value.clause) else _EXACTLY)


# "35 EUR + fuel ~8": what a result adds has the unit of what it adds to.
_ADDED = regex(
    r"(?:\+|\bplus\b) ?(?:[^\W\d_]{1,20} ){0,2}(?:[~≈]|(?:ca?|approx|about|around)\b\.?)? ?"
    r"(?P<number>\d[\d.,]{0,12})",
    re.IGNORECASE,
)


def _added(against: Known) -> Iterator[float]:
    """Yield the plain numbers of a result that it adds to something."""
    added = {match["number"].rstrip(".,") for match in _ADDED.finditer(against.result)}
    for value in against.values:
        if value.kind == "number" and value.fact.text in added:
            yield from value.numbers


def _combined(value: Value, same: list[float], base: list[Value]) -> Iterator[float]:
    """Yield products, quotients, differences and sums of two known numbers.

    ``same`` are the sizes of values of the same kind.
    """
    counts = [n for v in base if v.kind == "number" for n in v.numbers if n != 1]
    for size in same:
        for by in (*counts, *_CONSTANTS):
            yield size * by
            if by:
                yield size / by
    # Small numbers are often sums of others by chance, but seldom the difference of large ones: 15
    # rows too many, for 1,204,571 in place of 1,204,556.
    small = _is_small_number(value)
    taken = [size for size in same if size >= _LARGE] if small else same
    yield from (abs(a - b) for a, b in combinations(taken, 2))
    if not small:
        yield from (a + b for a, b in combinations(same, 2))
    if value.kind == "number":
        numbers = (n for v in base for n in v.numbers if n != 1)
        yield from (a * b for a, b in combinations(numbers, 2))
    if value.kind == "duration":
        times = (m for v in base if v.kind == "time" for m in moments(v.fact.keys))
        yield from (60 * abs(a - b) for a, b in combinations(times, 2))


def _each(value: Value, against: Known) -> Iterator[float]:
    """Yield sums and differences of a few amounts, divided by known numbers.

    "5,840 per flat" for 58,400 EUR less a grant of 11,680 EUR, and eight flats. Prices often lack
    their currency.
    """
    if not _RATE.search(value.clause) or not (value.kind == "number" or value.kind.isupper()):
        return
    base = (*against.values, *against.others)
    amounts = {size for v in base if v.kind.isupper() for size in v.sizes}
    counts = {float(key[2:]) for key in against.said.keys if key.startswith("n:")}
    counts = {count for count in counts if 1 < count <= _MOST_SHARERS and count.is_integer()}
    if len(amounts) <= _FEW:
        for a, b in combinations(amounts, 2):
            yield from (total / count for total in (a + b, abs(a - b)) for count in counts)


# An amount is shared by so many at most: persons, flats, nights.
_MOST_SHARERS = 100


def _is_small_number(value: Value) -> bool:
    return value.kind == "number" and all(n < 100 for n in value.numbers)


def _is_multiple(value: Value, same: list[float]) -> bool:
    """Return whether an amount is a multiple of another one: 45 EUR are three nights at 15 EUR.

    A factor of ten is more likely an extra zero.
    """
    if value.kind in ("number", "share", "identifier"):
        return False
    return any(max(a, b) / min(a, b) in _TIMES for a in value.sizes for b in same if a and b)


def is_price_of_known(value: Value, against: Known) -> bool:
    """Return whether a price is a multiple or part of a known one: 104 GBP, and 416 for 4 nights.

    Not for other units: 90 weeks are 7 times 90 days.
    """
    known = (v for v in (*against.values, *against.others) if v.kind == value.kind)
    return value.kind.isupper() and _is_multiple(value, [size for v in known for size in v.sizes])


def _is_part(value: Value, base: list[Value]) -> bool:
    """Return whether a number is a share of another: 48 % of 214 people are 103.

    18 % of 2,715 are "some 490".
    """
    if value.kind != "number":
        return False
    sizes = [n for v in base for n in v.numbers if n != 1]
    parts = [a * b for a in sizes if a < 1 for b in sizes if b > 1]
    off = _ROUGHLY if gives_roughly(value.clause) else 0.0
    return any(abs(n - p) <= max(0.5, off * p) for n in value.numbers if n >= 10 for p in parts)


def _shares(same: list[float], base: list[Value]) -> Iterator[float]:
    """Yield the shares that values have in larger ones of their kind, and what completes shares."""
    sizes = [(v.kind, size) for v in base for size in v.sizes]
    yield from (a / b for kind, a in sizes for other, b in sizes if kind == other and b > a)
    yield from (1 - a for a in same)


# "13.5 g per 100 g", "0.38 EUR/km", "12 % of the turnover"
_RATE = regex(r"\b(?:per|each|je|pro|par|por|à)\b|[/%]", re.IGNORECASE)


def _parts_of_rates(value: Value, against: Known) -> Iterator[float]:
    """Yield the products of the result's values and of amounts, if there are rates.

    60 g of oats with 13.5 g of protein per 100 g have 8.1 g.
    """
    texts = (against.result, *(v.sentence for v in against.others))
    if not any(_RATE.search(text) for text in texts):
        return
    rates = [size for v in against.values if v.kind == value.kind for size in v.sizes]
    amounts = {n for v in against.others if v.kind != "identifier" for n in v.numbers if n}
    for rate in rates:
        for amount in amounts:
            yield from (rate * amount / base for base in (1.0, 100.0, 1000.0))


# "10.00 net" for 11.90 with 19 % VAT. Shares below 1 % are no taxes and discounts.
_SMALLEST_SHARE = 0.01
# More shares make other values by chance.
_FEW_SHARES = 4
# A rounded amount, such as 34,560 or 1,283.4.
_ROUNDED_AMOUNT = 0.005
# 10.00 and 7.95, but not 9.1 seconds.
_OF_MONEY = 2


def _is_with_share(value: Value, base: list[Value]) -> bool:
    """Return whether an amount is another with a share added or taken off, or before that.

    Net and gross prices, before and after a discount. In two steps only a share of the result:
    34,560 GBP are 60 % of 48,000 GBP with 20 % VAT. Prices often lack their currency.
    """
    is_price = value.kind == "number" and decimal_places(value) == _OF_MONEY
    if not (value.kind.isupper() or is_price):
        return False
    shares = {a for v in base if v.kind == "share" for a in v.sizes}
    shares = {a for a in shares if _SMALLEST_SHARE <= a < 1}
    if not shares or len(shares) > _FEW_SHARES:
        return False
    sizes = {size for v in base if v.kind in (value.kind, "number") for size in v.sizes}
    steps = {step for a in shares for f in (1 + a, 1 - a) for step in (f, 1 / f)}
    steps |= {(1 + a) * b for a in shares for b in shares if a != b}
    half = _half_a_digit(value)
    off = (
        (abs(old * step - size), size) for size in value.sizes for old in sizes for step in steps
    )
    if gives_roughly(value.clause):
        return any(apart <= _ROUGHLY * size for apart, size in off)
    return any(apart <= _ROUNDED_AMOUNT * size and apart <= half for apart, size in off)


def _half_a_digit(value: Value) -> float:
    """Return half of the last digit that a value is written with, in the base unit of its kind."""
    # A little more than half, as floats are not exact: 1.25 rounds to 1.3.
    half = 0.51 * 10.0 ** -decimal_places(value) * unit_size(value)
    return half / 100 if value.kind == "share" and value.fact.text.endswith("%") else half


# Of more values, each group would be too many.
_FEW = 8


def _is_total_or_mean(value: Value, against: Known) -> bool:
    """Return whether a value is the sum or mean of some of the result's values of its kind.

    As exactly as it is written, or roughly: "about 50 km" for 18.4, 22.1 and 9.7 km.
    """
    # Small numbers are often sums of others by chance.
    if _is_small_number(value):
        return False
    half = _half_a_digit(value)
    about = _ROUGHLY if gives_roughly(value.clause) else 0.0
    alike = [v for v in against.values if v.kind == value.kind]
    # "212 fail, 0 ok ... 151 fail, 0 ok": the sum of those with one unit.
    by_unit: dict[str, list[float]] = {}
    for other in alike:
        by_unit.setdefault(unit_text(other), []).extend(other.sizes)
    sizes = [size for v in alike for size in v.sizes]
    return any(
        abs(size - made) <= max(half, about * abs(made))
        for group in (sizes, *by_unit.values())
        for made in _totals_and_means(group)
        for size in value.sizes
    )


def _totals_and_means(sizes: list[float]) -> Iterator[float]:
    """Yield sums and means of values: of each group of a few, else of all that are in a row."""
    count = len(sizes)
    if count <= _FEW:
        groups = (
            [size for place, size in enumerate(sizes) if chosen >> place & 1]
            for chosen in range(1, 1 << count)
        )
        sums = [(sum(group), len(group)) for group in groups]
    else:
        running = [0.0, *accumulate(sizes)]
        sums = [
            (running[end] - running[start], end - start)
            for start in range(count)
            for end in range(start + 1, count + 1)
        ]
    for total, number in sums:
        if number > 1:
            yield total
            yield total / number


def _is_shifted(value: Value, mine: list[Value], against: Known) -> bool:
    """Return whether a time or date is a known one plus or minus a known number.

    With frost until 12 May, sowing starts on 13 May.
    """
    near = [*against.values, *against.others, *mine]
    spans = {n for other in near for n in other.numbers}
    is_date = value.kind == "date"
    prefix, by = ("d:", 7) if is_date else ("t:", 60)
    known_keys = [key for key in against.said.keys if key.startswith(prefix)]
    for moment in moments(value.fact.keys):
        for other in moments(known_keys):
            apart = abs(moment - other)
            if apart in spans or apart / by in spans or (is_date and apart == 1):
                return True
            if is_date and not spans.isdisjoint(_around(moment, other)):
                return True
    return False


# The day of the year after which a leap year has one more.
_END_OF_FEBRUARY = 59


def _around(moment: float, other: float) -> Iterator[float]:
    """Yield the days between two days over the end of a year, and over 29 February."""
    first, last = sorted((moment, other))
    yield YEAR - (last - first)
    if first > _END_OF_FEBRUARY:
        yield YEAR + 1 - (last - first)
    elif last > _END_OF_FEBRUARY:
        yield last - first + 1


def _is_year_of_shifted(value: Value, mine: list[Value], against: Known) -> bool:
    """Return whether a number is the year of a date that follows: 30 days from 20 December."""
    if re.fullmatch(r"(?:19|20)\d\d", value.fact.text) is None:
        return False
    dates = (v for v in mine if v.kind == "date" and v.clause == value.clause)
    return any(_is_shifted(date, mine, against) for date in dates)
