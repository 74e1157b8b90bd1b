"""Numbers, times, dates, units and fractions in any notation, converted to one form.

``36 hours`` and ``a day and a half``, ``2.5 kg`` and ``2500 g``, ``14:15`` and ``a quarter past
two``, ``half a dozen`` and ``6``, ``3/4`` and ``75 %`` have the same keys.

The units of trades, their names in four languages and their sizes come from two libraries, Pint
and Babel (CLDR), through a table that is generated with them (``units.json``). They are not used
while reading texts: Pint takes 0.3 s of CPU time before it knows a kilogram, and reads any `hand`,
`point` or `link` after a number as a length. Other libraries were tried, but none is used:
`quantulum3` takes 5.7 s for its first text, and reads `14:15` as two numbers, `1,5 kg` as 5 kg and
a range as its mean. `dateparser` takes 6.2 s. An evaluator that is on by default must not cost
that. `text2num` 3.1 is fast (14 ms to import, 0.03 ms per text), but needs to know the language: in
other languages it reads `once` as 11, `miles` as 1000, `cent` as 100 and `Sept.` as 7. In English
it reads `third party` as `3rd party`, `nineteen ninety` as `19 90` and `5 million` as `5 1000000`.
It has no halves, quarters, dozens or times of day, so nearly all lists below would stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec

from .clock_times import (
    key_of_hours,
    keys_of_dotted_times,
    keys_of_plain_times,
    keys_of_spoken_times,
    spoken_times_in_digits,
    times_with_colons,
)
from .lazy_patterns import regex
from .number_words import ONES, TENS, WORD, any_of, folded, number_words_in_digits, words_of
from .short_notations import written_out
from .text_cache import text_cached
from .words import LANGUAGES, MONTH_NAMES, MONTHS, Spelled

# ---------------------------------------------------------------------------------------- units

_SIZES: tuple[tuple[str, float, str], ...] = (
    ("duration", 0.001, "ms millisecond milliseconds"),
    ("duration", 1, "s sec secs second seconds sekunde sekunden"),
    ("duration", 60, "min mins minute minutes minuten"),
    ("duration", 3600, "h hr hrs hour hours stunde stunden"),
    ("duration", 86400, "d day days tag tage tagen jour jours"),
    ("duration", 604800, "week weeks woche wochen"),
    ("months", 1, "month months monat monate monaten mois"),
    ("months", 3, "quarter quarters"),
    ("months", 12, "year years jahr jahre jahren"),
    ("mass", 1e-6, "µg"), ("mass", 0.001, "mg"), ("mass", 1, "g gram grams gramm"),
    ("mass", 1000, "kg kilo kilos kilogram kilograms kilogramm"),
    ("mass", 1e6, "t ton tons tonne tonnes"),
    ("mass", 453.592, "lb lbs pound pounds"), ("mass", 28.3495, "oz ounce ounces"),
    ("mass", 6350.29, "stone"),
    ("length", 0.001, "mm"), ("length", 0.01, "cm"),
    ("length", 1, "m meter meters metre metres"), ("length", 1000, "km kilometers kilometres"),
    ("length", 0.3048, "ft foot feet"), ("length", 0.0254, "inch inches"),
    ("length", 1609.34, "mile miles"), ("length", 0.9144, "yard yards"),
    ("volume", 0.001, "ml"), ("volume", 0.01, "cl"), ("volume", 0.1, "dl"),
    ("volume", 3.78541, "gallon gallons"),
    ("volume", 0.473176, "pint pints"), ("volume", 1, "l liter liters litre litres"),
    ("volume", 1000, "m³ m3"),
    ("area", 1e-4, "cm² cm2"), ("area", 1, "m² m2 sqm qm"), ("area", 1e6, "km² km2"),
    ("area", 1e4, "ha hectare hectares"), ("area", 4046.86, "acre acres"),
    ("area", 0.092903, "sqft"),
    ("speed", 1, "km/h kmh kph"), ("speed", 1.60934, "mph"), ("speed", 3.6, "m/s"),
    ("power", 1, "watt watts"), ("power", 1e3, "kw kilowatt kilowatts"),
    ("power", 735.5, "hp"),
    ("energy", 1, "wh"), ("energy", 1e3, "kwh"), ("energy", 1e6, "mwh"), ("energy", 1e9, "gwh"),
    ("voltage", 1, "volt volts"), ("voltage", 1e3, "kv"),
    # A GB has 1000 or 1024 MB, and texts rarely state which.
    ("data", 1, "byte bytes"), ("data", 1e3, "kb"), ("data", 1e6, "mb"), ("data", 1e9, "gb"),
    ("data", 1e12, "tb"), ("data", 2**10, "kb kib"), ("data", 2**20, "mb mib"),
    ("data", 2**30, "gb gib"), ("data", 2**40, "tb tib"),
    ("EUR", 1, "€ eur euro euros"), ("USD", 1, "$ usd dollar dollars"),
    ("GBP", 1, "£ gbp pound pounds"), ("CHF", 1, "chf francs franken"), ("NOK", 1, "nok"),
    ("share", 0.01, "% percent prozent"), ("share", 0.0001, "bp"),
)  # fmt: skip
_UNITS: Spelled[tuple[tuple[str, float], ...]] = Spelled({})
for _dimension, _factor, _names in _SIZES:
    for _name in _names.split():
        _UNITS[_name] = (*_UNITS.get(_name, ()), (_dimension, _factor))
_UNIT = regex(
    rf"\s?-?(?P<unit>{'|'.join(re.escape(u) for u in sorted(_UNITS, key=len, reverse=True))})"
    r"(?![^\W\d_])",
    re.IGNORECASE,
)
_LONG_UNITS = "|".join(sorted((u for u in _UNITS if len(u) > 2 or u in ("kg", "km")), key=len))
# "A 30-minute call" is 30 minutes; "a 3-tier plan" has no unit.
_HYPHENED = regex(rf"(?<=\d)-(?=(?:{_LONG_UNITS})\b)", re.IGNORECASE)
# Without `one` and similar words, which are articles more often than numbers.
_COUNTS = any_of({word: value for word, value in ONES.items() if 1 < value < 13})
_COUNT_WORDS = folded(_COUNTS.split("|"))
# "Two weeks" and "three-day", but not "two seats".
_COUNTED_UNIT = regex(rf"\b({_COUNTS})(?=[ -](?:{_LONG_UNITS})\b)", re.IGNORECASE)
# Units of trades, with sizes and names from Pint and Babel: `python -m tests.findings.units`.
# Names are read in lower case, and symbols as written: mW and MW.
_OF_TRADES: dict[str, dict[str, tuple[str, float]]] = msgspec.json.decode(
    Path(__file__).with_name("units.json").read_bytes(),
    type=dict[str, dict[str, tuple[str, float]]],
)
# The one or two words behind a number that can name a unit of trades: "nautical miles".
_NAMED_UNIT = regex(
    r"\s?-?(?P<one>[^\W\d_]+(?:[²³23]|-[^\W\d_]+)?)(?![^\W_])(?:[ ](?P<two>[^\W\d_]+))?"
)


def _of_trade(after: str) -> tuple[str, float] | None:
    match = _NAMED_UNIT.match(after)
    if match is None:
        return None
    unit = _OF_TRADES["symbols"].get(match["one"])
    if unit is None and match["two"] is not None:
        unit = _OF_TRADES["names"].get(f"{match['one']} {match['two']}".casefold())
    return unit or _OF_TRADES["names"].get(match["one"].casefold())


# "20 °C", "20 degrees" and "20C", but not "20 c", which may be cents.
_DEGREES = regex(
    r"\s?(?:°|degrees?\b|grad\b)\s?(?P<unit>[cf]\b|celsius|fahrenheit)?|(?P<letter>(?-i:[CF]))\b",
    re.IGNORECASE,
)
_SIGNS = {"€": "EUR", "$": "USD", "£": "GBP"}


@lru_cache(maxsize=8192)
def measures(value: float, before: str, after: str) -> tuple[tuple[str, float], ...]:
    """Return each possible dimension of a number, with the value in its base unit.

    None without a unit. Two for pounds, and for MB of 1000 or 1024 kB. ``before`` and ``after`` are
    the texts right before and after the number.
    """
    if before[-1:] in _SIGNS:
        return ((_SIGNS[before[-1]], value),)
    if (match := re.search(r"\b(EUR|USD|GBP|CHF|NOK) ?$", before)) is not None:
        return ((match[1], value),)
    if (degrees := _DEGREES.match(after)) is not None:
        signed = -value if re.search(r"(?<![\w)])[-−] ?$", before) else value
        fahrenheit = (degrees["unit"] or degrees["letter"] or "c")[0] in "fF"
        return (("temperature", round((signed - 32) / 1.8, 1) if fahrenheit else signed),)
    of_trade = _of_trade(after)
    if of_trade is not None:
        return ((of_trade[0], value * of_trade[1]),)
    match = _UNIT.match(after)
    if match is None:
        return ()
    return tuple((dimension, value * size) for dimension, size in _UNITS[match["unit"].lower()])


def measure_key(dimension: str, value: float) -> str:
    """Return the key of a quantity: ``u:mass:2500``."""
    return f"u:{dimension}:{value:.6g}"


@text_cached
def sizes_of_units(text: str) -> frozenset[tuple[str, float]]:
    """Return the units that a text names, also in a heading: each one's dimension and size."""
    sizes: set[tuple[str, float]] = set()
    for word in words_of(text):
        sizes.update(_UNITS.get(word, ()))
        if word in _OF_TRADES["names"]:
            sizes.add(_OF_TRADES["names"][word])
    return frozenset(sizes)


# "11-13 June", "from 12 to 16 May": both are days of that month.
_DAYS = regex(
    r"(?<![\w./-])(\d{1,2})(?:st|nd|rd|th|\.)?(\s?[-–]\s?| (?:to|until|till|through|bis|au|al|a) "
    r"(?:the )?)(\d{1,2})(?:st|nd|rd|th|\.)? (?:of |de )?"
    rf"({MONTH_NAMES})\b",
    re.IGNORECASE,
)


def days_in_full(text: str) -> str:
    """Add the month to the first day of a range: ``11-13 June`` starts on 11 June."""
    return _DAYS.sub(r"\1 \4\2\3 \4", text)


# What other tables and JSON have: "a, b", `a;b`, `a | b`, `{"a":1,"b":2}`, and all commas within
# numbers: "Sales 325,000 / 349,800".
_NO_FIELDS = regex(r", |[;|\t]|^\s*[\[{]|^(?:[^,]|(?<=\d),(?=\d{3}(?!\d)))*$")
# The fewest commas of a line of fields. "Kiel,Ulm" may be anything.
_FEWEST_COMMAS = 2


def fields_apart(text: str) -> str:
    """Write a space after the commas of a table in CSV, as `91.2,90.8` would be one number.

    Its lines have as many commas as the next or the one before: ``core,91.2,90.8``.
    """
    if text.count(",") < 2 * _FEWEST_COMMAS or "\n" not in text:
        return text
    lines = text.split("\n")
    commas = [line.count(",") if _NO_FIELDS.search(line) is None else 0 for line in lines]
    beside = zip([0, *commas], commas, [*commas[1:], 0], strict=False)
    return "\n".join(
        line.replace(",", ", ") if own >= _FEWEST_COMMAS and own in (before, after) else line
        for line, (before, own, after) in zip(lines, beside, strict=True)
    )


# Each step of a caller is compared with each dispatch. See `facts.py`.
_KEPT = 20_000


def in_digits(text: str) -> str:
    """Write number words as digits, if they are several words or come before a unit.

    ``half a dozen`` is 6, and ``two weeks`` is ``2 weeks``. Other single words (``two seats``)
    stay.
    """
    return _again_in_digits(text) if len(text) <= _KEPT else _rewritten(text)


# "10 000 000" and "5 922 kg" contain spaces. Other groups of digits, such as telephone or card
# numbers, stay. See `_joined`.
_ROUND = regex(
    r"(?<![\d.,+(/-])(?<!\d )([1-9]\d{0,2})((?: \d{3}){1,4})(,\d{1,2}(?!\d))?(?! ?\d|[.,/-]\d)"
)
# Texts without it need not be searched for `_ROUND`.
_MAY_BE_ROUND = regex(r"\d \d\d\d")
# "2 500 g packs" are two packs, and "2 500 g of flour" is one amount.
_AMOUNT_ENDS = regex(
    r"\s*(?:$|[^\w\s]|(?:of|at|in|per|for|and|or|to|from|is|are|was|were|with|on|by|as|a|an|the|each|net"
    r"|gross|total|have|has|but|before|after|more|less|d|de|du|des|von|pro|par|por|à|et|y|und)\b)",
    re.IGNORECASE,
)
# Many groups of three with nine digits are telephone numbers: "612 345 678".
_TO_CALL_IN_THREES = 9


def _joined(match: re.Match[str]) -> str:
    """Join groups of three digits if they are one number.

    They are one number if the last groups are zeros, if decimals follow, before a unit, and in
    languages that write numbers this way. `flight 12 345` in English stays.
    """
    groups, decimals = match[2], match[3] or ""
    whole = match[1] + groups.replace(" ", "") + decimals
    if groups.endswith(" 000"):
        return whole
    after = match.string[match.end() : match.end() + 40]
    unit = _UNIT.match(after)
    language = _written_in(match.string[:_START])
    if language in ("de", "fr", "es"):
        return whole if unit or decimals or len(whole) < _TO_CALL_IN_THREES else match[0]
    if unit is not None and (decimals or _AMOUNT_ENDS.match(after[unit.end() :])):
        return whole
    before = match.string[max(0, match.start() - 4) : match.start()]
    return whole if re.search(r"[€$£] ?$|\b(?:EUR|USD|GBP|CHF) $", before) else match[0]


# The number of characters that are examined to find the language of a text.
_START = 2000


@lru_cache(maxsize=64)
def _written_in(text: str) -> str | None:
    """Return the language whose common words are most frequent in a text. ``None`` if unsure."""
    words = WORD.findall(text.casefold())
    counts = sorted((sum(w in known for w in words), name) for name, known in LANGUAGES.items())
    return counts[-1][1] if counts[-1][0] > max(counts[-2][0], 1) else None


# ".5 kg" is 0.5 kg. The dot in "v.5" and at the end of a sentence is none of these.
_BARE_DOT = regex(r"(?:^|(?<=[\s$€£(]))\.(?=\d)")


@text_cached
def _again_in_digits(text: str) -> str:
    return _rewritten(text)


def _rewritten(text: str) -> str:
    text = written_out(fields_apart(text))
    text = times_with_colons(text)
    if "." in text:
        text = _BARE_DOT.sub("0.", text)
    if _MAY_BE_ROUND.search(text) is not None:
        text = _ROUND.sub(_joined, text)
    text = number_words_in_digits(spoken_times_in_digits(text))
    if not _COUNT_WORDS.isdisjoint(words_of(text)):
        text = _COUNTED_UNIT.sub(lambda m: str(ONES[m[1].lower()]), text)
    return _HYPHENED.sub(" ", text)


# ---------------------------------------------------------- what has a form of its own in a text

# `3/4`, but not `3/4/2026` or `13/4`, which are dates.
_FRACTION = regex(r"(?<![\w./-])([1-9])/([2-9])(?![\w/-]|\.\d)")
# `3-5` holds 3 and 5; `A3-5` is a code, and `2024-05-12` a date.
_RANGE = regex(r"(?<![\w.,/-])(\d+(?:[.,]\d+)?)\s?[-–—]\s?(\d+(?:[.,]\d+)?)(?![\w/-]|[.,]\d)")
# `1 204 556` may be one number; so may `12 345`, beside its parts.
_SPACED = regex(r"(?<![\d.,] )(?<![\d.,])(\d{1,3}(?: \d{3})+)(?![ ]?\d)")
# "Nineteen ninety" is 19.90; "ninety nineteen" is nothing.
_PRICE = regex(rf"\b({any_of(ONES)}) ({any_of(TENS)})\b", re.IGNORECASE)
# `12/5` and `12.5.` may be dates. `12/5/26` has a pattern of its own.
_SHORT_DATE = regex(r"(?<![\d./-])(\d{1,2})[-/.](\d{1,2})\.?(?![\d/-])(?!\.\d)")
_MONTH = regex(rf"\b({MONTH_NAMES})\b", re.IGNORECASE)
# `Q3`, `3Q24`, "3rd quarter", but not `Q5`.
_QUARTER = regex(
    r"\bQ ?([1-4])\b|\b([1-4])Q(?=\d|\b)|\b([1-4])(?:st|nd|rd|th)? quarter\b", re.IGNORECASE
)
# `3Q24`, `Q3/24` and `'24`.
_SHORT_YEAR = regex(r"(?:[1-4]Q|Q[1-4][/ '’]|(?<!\w)['’])(\d\d)(?!\d)", re.IGNORECASE)
# "The seventies" and "70s" are the 1970s.
_DECADE = regex(r"(?<!\w)(?:19|['’])?([2-9]0)(?:['’]?s|er)\b")
_DECADES = Spelled({
    word: f"19{tens}0"
    for tens, words in enumerate(
        (
            "fifties fünfziger", "sixties sechziger", "seventies siebziger", "eighties achtziger",
            "nineties neunziger",
        ),
        5,
    )
    for word in words.split()
})  # fmt: skip
_DECADE_NAMES = regex(rf"\b(?:{'|'.join(_DECADES)})", re.IGNORECASE)
# "At the end of June" includes 30 June, and "early July" the first days of July.
_PART_OF_MONTH = regex(
    rf"\b(?:(?P<end>end|late|ende|fin|finales|fines)|(?P<mid>mid|middle|mitte|mediados)"
    rf"|beginning|start|early|anfang|début|principios)"
    rf"(?:[ -](?:of|de|des|the|in))?[ -](?P<month>{MONTH_NAMES})\b",
    re.IGNORECASE,
)
_FIRST_OF = regex(rf"\b(?:the )?first of ({MONTH_NAMES})\b", re.IGNORECASE)
# Nine digits or more with the marks of a telephone number in between.
_PHONE = regex(
    r"(?<![\w.])(?:\+|00?)\(?\d(?:[ /().-]{0,2}\d){7,14}(?!\w)"
    r"|(?<![\w.-])\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}(?![\w-])"
)


def extra_keys(text: str, words: frozenset[str]) -> set[str]:
    """Return the keys of forms beyond single numbers, for a text with numbers in digits.

    ``words`` are the words of the text (``words_of``).
    """
    keys = set(keys_of_spoken_times(text, words))
    if _DIGIT.search(text) is not None:
        keys.update(_of_digits(text))
    if not _TENS_WORDS.isdisjoint(words):
        for match in _PRICE.finditer(text):
            # "nineteen ninety" is a spoken price.
            keys.add(f"n:{ONES[match[1].lower()]}.{TENS[match[2].lower()] // 10}")
    for match in _DECADE_NAMES.finditer(text):
        keys.add(f"n:{_DECADES[match[0].lower()]}")
    months: set[int] = set()
    if not MONTH_WORDS.isdisjoint(words):
        for match in _PART_OF_MONTH.finditer(text):
            days = range(28, 32) if match["end"] else range(14, 17) if match["mid"] else range(1, 8)
            keys |= {f"d:{MONTHS[match['month'].lower()]}-{day}" for day in days}
        for match in _FIRST_OF.finditer(text):
            keys.add(f"d:{MONTHS[match[1].lower()]}-1")
        months = {MONTHS[name.lower()] for name in _MONTH.findall(text)}
        for match in _MONTH_OF_YEAR.finditer(text):
            keys.add(f"mo:{match[2]}-{MONTHS[match[1].lower()]}")
    months |= {int(m) for m in _DATE_MONTH.findall(text)}
    if "month" in words or "months" in words:
        if re.search(r"\bmonths?\b", text):
            months |= {int(m) for m in re.findall(r"\b(\d{1,2})\b", text)}
    keys |= {f"qu:{q}" for q in range(1, 5) if {3 * q - 2, 3 * q} <= months}
    if not _ORDINAL_WORDS.isdisjoint(words):
        keys.update(f"in:n:{_PLACES[word]}" for word in _ORDINAL_WORDS & words)
    if "million" in words or "milliarde" in words:
        keys.update(f"n:{10**6}" for _ in _A_MILLION.findall(text))
    for match in _ROMAN.finditer(text):
        keys.add(f"n:{_roman(match[0])}")
    keys.update(_more_measures(text, words))
    return keys


# "May 2026", but not "May 20".
_MONTH_OF_YEAR = regex(rf"\b({MONTH_NAMES})\.?,? (20\d\d)\b", re.IGNORECASE)
# "The twelfth floor" is the 12th, and "im zweiten Stock" is "im 2. Stock". "First", "second" and
# their like often mean something else, so these words can carry a number, but are never a required
# number.
_GERMAN_PLACES = "erst zweit dritt viert fünft sechst siebt acht neunt zehnt elft zwölft".split()  # noqa: SIM905
_PLACES = {
    word: place
    for place, words in enumerate(
        (
            "first premier première primer primero primera primo prima primeiro primeira",
            "second seconde deuxième segundo segunda secondo seconda tweede andra",
            "third troisième tercer tercero tercera terzo terza terceiro terceira derde tredje",
            "fourth quatrième cuarto cuarta quarto quarta vierde fjärde",
            "fifth cinquième quinto quinta vijfde femte",
            "sixth sixième sexto sexta sesto sesta zesde sjätte",
            "seventh septième séptimo séptima settimo settima sétimo sétima zevende sjunde",
            "eighth huitième octavo octava ottavo ottava oitavo oitava achtste åttonde",
            "ninth neuvième noveno novena nono nona negende nionde",
            "tenth dixième décimo décima decimo decima tiende tionde",
            "eleventh onzième elfde elfte",
            "twelfth douzième twaalfde tolfte",
        ),
        1,
    )
    for word in (
        *words.split(),
        *(_GERMAN_PLACES[place - 1] + end for end in ("e", "en", "er", "es", "em")),
    )
}
_PLACES |= {"eerste": 1, "första": 1}
_ORDINAL_WORDS = folded(_PLACES)
_A_MILLION = regex(r"\b(?:a|one) million\b", re.IGNORECASE)
# It must not be empty, as an empty match is all that `VX` and `IIII` contain of a Roman number.
_ROMAN = regex(r"\b(?=[IVX]{2,})X{0,3}(?:IX|IV|V?I{0,3})(?<=[IVX])\b")
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10}


def _roman(written: str) -> int:
    values = [_ROMAN_DIGITS[letter] for letter in written]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < behind else value for value, behind in pairs)


_DIGIT = regex(r"\d")
_DATE_MONTH = regex(r"\b\d{4}-(\d{2})-\d{2}\b")
_TENS_WORDS = folded(TENS)
MONTH_WORDS = folded(MONTHS)
"""Names of months, as ``words_of`` has them."""


# Texts without it have none of the forms of `_of_joined_digits`.
_JOINED = regex(r"\d(?:\s?[-–—]\s?|[./:h ])\d")


def _of_digits(text: str) -> Iterator[str]:
    """Yield the keys of forms with digits, for a text that has digits."""
    if _JOINED.search(text) is not None:
        yield from _of_joined_digits(text)
    yield from keys_of_plain_times(text)
    for match in _DECADE.finditer(text):
        yield f"n:19{match[1]}"
    for match in _QUARTER.finditer(text):
        yield f"qu:{match[1] or match[2] or match[3]}"
    for match in _RUN_TOGETHER.finditer(text):
        yield from (f"d:{int(match[2])}-{int(match[3])}", f"n:{match[1]}")
    for match in SHARE_OF.finditer(text):
        if 0 < int(match[1]) <= int(match[2]):
            yield from share_keys(int(match[1]) / int(match[2]))
            yield f"n:{int(match[1]) / int(match[2]):.4g}"
    for match in _SHORT_YEAR.finditer(text):
        yield f"n:20{match[1]}"
    for match in _PHONE.finditer(text):
        yield phone_key(match[0])
    for match in _COINS.finditer(text):
        yield f"n:{float(f'{match[1]}.{match[2]}'):g}"


def _of_joined_digits(text: str) -> Iterator[str]:
    """Yield the keys of forms with a mark or a space between digits: `3/4`, `14.30`."""
    for match in _FRACTION.finditer(text):
        share = int(match[1]) / int(match[2])
        yield from (*share_keys(share), f"n:{share:.4g}")
    yield from keys_of_dotted_times(text)
    for match in _RANGE.finditer(text):
        yield from (f"n:{end.replace(',', '.')}" for end in match.groups())
    for match in _SPACED.finditer(text):
        yield f"n:{match[1].replace(' ', '')}"
    for match in _SHORT_DATE.finditer(text):
        one, two = int(match[1]), int(match[2])
        days = ((one, two), (two, one))
        yield from (f"d:{a}-{b}" for a, b in days if 0 < a <= 12 and 0 < b <= 31)
        yield from (f"in:n:{one}", f"in:n:{two}")
    for match in _TWO_DIGIT_YEAR.finditer(text):
        one, two = int(match[1]), int(match[2])
        yield from (f"d:{two}-{one}", f"d:{one}-{two}", f"n:20{match[3]}")
    for match in _PART_OF_UNIT.finditer(text):
        for dimension, size in _UNITS.get(match[3].lower(), ()):
            yield measure_key(dimension, size * int(match[1]) / int(match[2]))
    for match in _HOURS_MINUTES.finditer(text):
        yield measure_key("duration", 3600 * int(match[1]) + 60 * int(match[2]))


# "3 out of 4", "3 in 4", "3 of 4".
SHARE_OF = regex(r"(?<![\w.,])(\d{1,3}) (?:out of|of|in) (\d{1,3})(?![\w%]|[.,:]\d)")
"""Two numbers, one of which is a part of the other."""
# `12.5.26` may be a date in either order; `12.5.2026` is read elsewhere.
_TWO_DIGIT_YEAR = regex(r"(?<![\d./])(\d{1,2})[./](\d{1,2})[./](\d\d)(?![\d./])")
# `20260304` is a date; `20269904` is none.
_RUN_TOGETHER = regex(r"(?<!\d)(20\d\d)([01]\d)([0-3]\d)(?!\d)")


# Units after an article are one of them: "a week" is 7 days. Only units that texts use this way.
_COUNTED = "second|minute|hour|day|week|month|year|stunde|tag|woche|monat|jahr|kilo|mile|ton"
_UNIT_WORDS = folded(_COUNTED.split("|"))
# "A week" and "per hour" are one unit, "weeks" are not.
_ONE_UNIT = regex(
    rf"\b(?:an?|one|per|each|every|ein(?:e[nmr]?)?) (?P<unit>{_COUNTED})\b", re.IGNORECASE
)
# "3/4 of an hour" is 45 minutes; "3/4 of it" is a share.
_PART_OF_UNIT = regex(r"([1-9])/([2-9]) (?:of )?(?:an?|one|the) (\w+)")
# "5 euros 20" is 5.20; "5 euros, 20 guests" are two numbers.
_COINS = regex(r"\b(\d+) (?:euros?|dollars?|pounds?|€) (?:and )?(\d\d)\b", re.IGNORECASE)
# `2h30` and `2:30` may be durations.
_HOURS_MINUTES = regex(r"(?<![\d:])(\d{1,2})(?:h|:)([0-5]\d)(?![\d:])")


def _more_measures(text: str, words: frozenset[str]) -> Iterator[str]:
    if not _UNIT_WORDS.isdisjoint(words):
        for match in _ONE_UNIT.finditer(text):
            for dimension, size in _UNITS[match["unit"].lower()]:
                yield measure_key(dimension, size)
            if match["unit"].lower() in ("month", "monat"):
                yield measure_key("duration", 30 * 86400)
    if not _SHARE_WORDS.isdisjoint(words):
        for match in _SHARES.finditer(text):
            yield from _WORDS[match[0].lower()]


# Below this share, rounding to a hundredth of the whole loses too much.
_LEAST_SHARE = 0.1
# Words that can stand for a number, but are not numbers by themselves.
_WORDS = Spelled(
    {
        "half": ("sh:0.50", "n:0.5"),
        "hälfte": ("sh:0.50", "n:0.5"),
        "quarter": ("sh:0.25", "n:0.25"),
        "viertel": ("sh:0.25", "n:0.25"),
        "pair": ("n:2",),
        "couple": ("n:2",),
        "double": ("n:2",),
        "doppelzimmer": ("n:2",),
        "triple": ("n:3",),
        "thrice": ("n:3",),
    }
)


_SHARE_WORDS = folded(_WORDS)
_SHARES = regex(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)


def share_keys(share: float) -> set[str]:
    """Return the key of a share of a whole: a third is 33 % and 0.333, but 2.3 % is not 2 %."""
    return {f"sh:{share:.2f}"} if share >= _LEAST_SHARE else set()


def unmarked_keys(digits: str, after: str) -> Iterator[str]:
    """Yield the possible meanings of a run of digits, considering the text after it.

    `20260304` is a date, `1400 hrs` a time of day, `5551234567` a telephone number.
    """
    run = _RUN_TOGETHER.fullmatch(digits)
    if run is not None:
        year, month, day = (int(part) for part in run.groups())
        yield from (f"d:{month}-{day}", f"d:{year}-{month}-{day}")
    elif len(digits) >= _TO_CALL:
        yield phone_key(digits)
    time = key_of_hours(digits, after)
    if time is not None:
        yield time


# The fewest digits of a telephone number with its area code.
_TO_CALL = 9


def phone_key(written: str) -> str:
    """Return the key of a telephone number: its last digits, as prefixes vary."""
    return f"ph:{re.sub(r'[^0-9]', '', written)[-8:]}"
