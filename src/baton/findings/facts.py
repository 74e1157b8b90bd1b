"""The facts of a text: numbers, identifiers, paths, quoted strings, and words that are not common.

A fact is identified by its keys. Another text contains the fact if it has one of the keys, in any
notation (``1,234.50`` and ``1234.5 EUR``, ``R-77`` and ``r77``, ``src/retry.py`` and ``retry.py``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

from baton.formats.nesting import decode_json
from baton.model import Content
from baton.model.limits import JSON_DEPTH
from baton.model.views import charge, charge_work, index_kept

from .lazy_patterns import regex
from .normalise_values import (
    MONTH_WORDS,
    extra_keys,
    in_digits,
    measure_key,
    measures,
    phone_key,
    share_keys,
    unmarked_keys,
)
from .number_words import words_of
from .text_cache import KEPT_CHARACTERS, kept_size, text_cached
from .words import COMMON, LANGUAGES, MONTH_NAMES, MONTHS, NUMBER_WORDS, UNITS

# Any of `1,234.50`, `1.234,50`, `1'234` and `1 234` with a narrow space, without deciding yet which
# mark groups and which divides (see `number_keys`).
NUMBER = r"\d+(?:[.,'’\u00a0\u202f]\d+)*"
# Account, telephone and card numbers are not quantities, and their spaces mean nothing. In this
# order: an IBAN (`AT61 1904 3002 3457 3201`), a telephone number with its country (`+43 660
# 1234567`), one without it, which starts with 0, and a card number in blocks of four. As plain
# numbers these would be four or five facts, and `3002` alone could occur anywhere. All parts are
# bounded and have a mark between them, so long runs of digits do not take quadratic time. The
# possessive `+` is not used for that, because Python before 3.11.5 handles it wrongly.
GROUPED = (
    r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){3,7}(?:[ ]?[A-Z0-9]{1,3})?\b"
    r"|(?<![\w.])\+(?=(?:[ /()-]{0,2}\d){7})\d{1,15}(?:[ /-]\(?\d{1,12}\)?){0,6}(?!\w)"
    r"|(?<![\w.,])(?=(?:[ ]?\d){9})0\d{1,4}(?:[ ]\d{2,12}){1,4}(?!\w)"
    r"|\b\d{4}(?:[ -]\d{4}){3}\b"
)
# `79.9k` is 79,900 and `2 million` is 2,000,000. `M` and `G` count only directly after the number
# and with no letter after them: `5 Maps` is not five million.
SCALE = r"\s?(?:k|K|[Mm]illions?|Millionen|Mio|[Tt]housand|[Bb]illion)\b|[MG](?![\w])"
# Before clock and number in `_TOKEN`: `2024-05-12` would be three numbers, `12.05.2024` one.
DATE = r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{4}|\d{1,2}/\d{1,2}/\d{2}"
# `14:30`, `18h04`, `2:30 pm`, `7pm`. Minutes are 00 to 59, so `16:90` and a ratio like `3:75` are
# not times of day.
CLOCK = (
    r"(?:[01]?\d|2[0-4])[:h][0-5]\d(?::\d{2})?(?!\d)(?:\s?[ap]\.?m\b)?|\b(?:1[0-2]|\d)\s?[ap]m\b"
)

DAY = (
    rf"\b\d{{1,2}}(?:st|nd|rd|th|er|º|\.)?\s(?:of\s|de\s)?(?:{MONTH_NAMES})\b|"
    rf"\b(?:{MONTH_NAMES})\.?\s\d{{1,2}}(?:st|nd|rd|th)?(?![\d:])"
)

# `12 May`, `12th of May`, `May 12`, but not `May 12:30`.
_DAY_OF_MONTH = regex(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|er|º|\.)?\s(?:of\s|de\s)?({MONTH_NAMES})\b|"
    rf"\b({MONTH_NAMES})\.?\s(\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])",
    re.IGNORECASE,
)
# Hour, minutes and am or pm: `9:30`, `9h30`, `9 p.m`.
_CLOCK_PARTS = regex(r"(\d{1,2})(?:[:h](\d{2}))?[:\d]*\s?(?:([ap])\.?m)?")
# The first letter of what makes a number larger: `5k`, `5 thousand`, `5 million`, `5 G`.
_SCALES = {"k": 10**3, "t": 10**3, "m": 10**6, "b": 10**9, "g": 10**9}
# `1,204`, `1.204.556` and `1'204` are grouped, `1,204.5` and `12,04` are not.
_THOUSANDS = regex(r"\d{1,3}([.,'’\u00a0\u202f])\d{3}(?:\1\d{3})*")
# The fewest digits of a rounded number. 231,800 can come back as 232,000 or 230,000. With one
# digit, as 200,000, it could mean any number of that size.
_DIGITS_TOLD = 2


def number_keys(written: str, scale: str = "", *, percent: bool = False) -> frozenset[str]:
    """Return a number's possible values: ``1,234`` is 1234, or 1.234 if the comma is decimal.

    Spaces and apostrophes group digits. With two kinds of separators, the last one is decimal.
    ``scale`` is what follows (``k``, ``million``). 85 percent is also 0.85.
    """
    if not scale and not percent and len(written) <= _DIGITS_OF_PLAIN and written.isdecimal():
        return frozenset({f"n:{int(written)}"})
    values = _values(re.sub(r"['’\u00a0\u202f]", "", written))
    times = _SCALES[scale.strip()[0].casefold()] if scale.strip() else 1
    keys = {_key(value * times) for value in values}
    return frozenset(keys | {_key(value / 100) for value in values} if percent else keys)


_DIGITS_OF_PLAIN = 15
"""The most digits of a number without marks (the usual kind) that has only one value."""


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
    # `1,234` is 1234 in English and 1.234 in German, and nothing in a single number shows which.
    # Both values are kept, and either one matches. `0.500` can only be a half.
    return [joined, divided] if grouped and written[0] != "0" else [divided]


def _key(value: Decimal) -> str:
    plain = format(value.normalize(), "f")
    return f"n:{plain}"


def word_key(word: str) -> str | None:
    """Return the value of a number word (``two``, ``zwei``)."""
    value = NUMBER_WORDS.get(word)
    return None if value is None else f"n:{value}"


def hours_of(keys: frozenset[str]) -> set[str]:
    """Return the hours of full-hour times as numbers, by either clock: ``08:00`` is at 8."""
    full = [key for key in keys if key.endswith(":00") and key.startswith("t:")]
    if not full:
        return set()
    hours = [int(key.split(":")[1]) for key in full]
    return {f"n:{each}" for hour in hours for each in (hour, (hour + 12) % 24, (hour - 12) % 24)}


def clock_keys(written: str) -> frozenset[str]:
    """Return a time's possible times of day: ``2:30`` can be 14:30, ``2:30 pm`` has one value."""
    parts = _CLOCK_PARTS.match(written)
    if parts is None:
        return frozenset()
    hour, minute, half = int(parts[1]), parts[2] or "00", parts[3]
    if half is not None:
        hours = {hour % 12 + (12 if half == "p" else 0)}
    else:
        # `2:30` can be in the afternoon. `02:30` and `14:30` use a 24-hour clock.
        hours = {hour, hour + 12} if hour < 12 and not parts[1].startswith("0") else {hour}
    return frozenset(f"t:{each}:{minute}" for each in hours)


def date_numbers(written: str) -> frozenset[str]:
    """Return the numbers of year, month and day."""
    parts = [int(part) for part in re.findall(r"\d+", written)]
    # `12.05.24` ends with a year of two digits; `24-05-2024` and `2024-05-12` do not.
    if len(parts) == 3 and parts[2] < 100 and parts[0] <= 31:
        parts[2] += 2000
    return frozenset(f"n:{part}" for part in parts)


def date_keys(written: str) -> frozenset[str]:
    """Return the possible days of the year of a date, and the date in full."""
    one, two, three = (int(part) for part in re.split(r"[-./]", written))
    # `2024-05-12` starts with the year. `05/12/2024` is May in America and December in Europe: both
    # days are kept.
    three += 2000 if three < 100 and one <= 31 else 0
    if one > 31:
        return frozenset({_day(two, three), f"d:{one}-{two}-{three}"})
    return frozenset({_day(two, one), _day(one, two), f"d:{three}-{two}-{one}"})


def named_days(text: str) -> set[str]:
    """Return the days that a text names by month (``12 May``), and their numbers."""
    keys = set()
    for match in _DAY_OF_MONTH.finditer(text):
        day, month = (match[1], match[2]) if match[1] else (match[4], match[3])
        keys |= {_day(MONTHS[month.casefold()], int(day)), f"n:{int(day)}"}
    return keys


def _day(month: int, day: int) -> str:
    return f"d:{month}-{day}"


@lru_cache(maxsize=4096)
def rounded_keys(key: str) -> frozenset[str]:
    """Return the possible roundings of a number: whole, or to two digits or more.

    ``n:1234.5`` gives 1235, 1234, 1230 and 1200.
    """
    if not key.startswith("n:"):
        return frozenset()
    value = Decimal(key[2:])
    digits = len(value.as_tuple().digits)
    rounded = {
        value.to_integral_value(rounding="ROUND_HALF_UP"),
        value.to_integral_value("ROUND_DOWN"),
    }
    with localcontext() as context:
        for digits_kept in range(_DIGITS_TOLD, digits):
            context.prec = digits_kept
            rounded.add(+value)
    return frozenset(_key(each) for each in rounded if each)


Kind = Literal["number", "identifier", "path", "quote", "word"]
# The kinds of facts that can't be said in other words, as nouns and verbs can.
HARD: frozenset[Kind] = frozenset({"number", "identifier", "path"})
# A number, name or path hardly ever comes up again by chance or in other words, but a plain word
# can do both. So `Lutetia` and `Raspail` together count less than `210`.
HARD_WEIGHT = 3
# The first paragraphs of a text show its language. Counting the words of a whole long report would
# take longer than finding its facts.
_SAMPLE = 2000
# Texts up to this length are remembered. In a run with 50 dispatches each step is compared with
# every dispatch, so it would be read 50 times. Longer texts are rare, and 4096 of them would take
# much memory.
KEPT_LENGTH = 20_000

# Only the extension makes a name without slashes a file: `retry.py` is a file, `e.g.` and
# `support.team` are not.
_EXTENSIONS = (
    "py|js|ts|tsx|jsx|mjs|json|jsonl|yaml|yml|toml|md|rst|txt|csv|tsv|html|css|sh|go|rs|java|kt|c|h|"
    "cpp|cs|rb|php|sql|xml|pdf|docx|xlsx|pptx|png|jpe?g|gif|svg|log|cfg|ini|lock|ipynb|env|proto|"
    "parquet|zip|gz|tar|sse|db|sqlite"
)
# The first alternative that fits wins, so forms that can contain others come first: an address
# contains a path, a path contains names and numbers (`/v2/orders/88`), a date contains numbers, and
# a time of day looks like two numbers. A number ends at a word boundary, except before units and
# ordinals: `12kg`, `1st` and `3ª` are numbers, and `12abc` continues as a name.
# Three forms with slashes are not paths: `and/or`, `8/10` and `km/h`. Without a leading `/`, `./`
# or drive, a path needs a file extension or two slashes between names.
# "(m/w/d)" and "(f/m/x)" in an advertisement are no paths: every part is a single letter.
_LETTERS = r"(?:[A-Za-z]/){2,4}(?:[A-Za-z]|divers)?(?![\w.@/-])"
_BEFORE_DAYS = (
    rf"(?P<url>https?://[^\s<>\"'`)\]}}]+)"
    rf"|(?P<mail>(?<![\w.+@-])[\w.+-]{{1,64}}@[\w-]+(?:\.[\w-]+)+)"
    # No path has more than 40 parts. Without a bound, `1/1/1/...` takes quadratic time.
    rf"|(?<![\w.@-])(?P<path>(?:[A-Za-z]:|~|\.{{1,2}})?(?:[\\/][\w.@-]+){{2,40}}[\\/]?"
    rf"|(?<!\w)/[A-Za-z][\w.@-]+|\.{{1,2}}/[\w.@-]+|(?:[\w.@-]+[\\/]){{1,40}}[\w@-]*\.[A-Za-z]\w*"
    rf"|(?!{_LETTERS})(?:[A-Za-z][\w.@-]*/){{2,40}}[\w.@-]*"
    rf"|[\w-]+(?:\.[\w-]+)*\.(?:{_EXTENSIONS})\b)"
    rf"|(?P<date>\b(?:{DATE})(?!\d))"
)
_DAYS = rf"|(?P<day>(?i:{DAY}))"
_BEHIND_DAYS = (
    rf"|(?P<grouped>{GROUPED})"
    # Three quarters, but not a rating (`8/10`), date or page.
    rf"|(?P<fraction>(?<![\w./-])[1-9]/[2-9](?![\w/-]|\.\d))"
    rf"|(?P<clock>(?<![\w.])(?:{CLOCK}))"
    rf"|(?P<number>(?<![\w])#?{NUMBER}(?![\w]*_)(?P<scale>{SCALE})?(?P<percent>\s?%)?"
    rf"(?:st|nd|rd|th|{'|'.join(sorted(UNITS, key=len, reverse=True))}|[CFxhsgmltªº])?(?![\w-]*\w))"
    rf"|(?P<call>[A-Za-z_][\w.]*(?=\(\)))"
    rf"|(?P<name>\w+(?:[-._:]\w+)*)"
)
_TOKEN = regex(_BEFORE_DAYS + _DAYS + _BEHIND_DAYS)
# Most texts name no month, so there is no need to try all month names at each of their words.
_TOKEN_BUT_DAYS = regex(_BEFORE_DAYS + _BEHIND_DAYS)
# Lengths are bounded because a lone quotation mark (`a 5" pipe`) must not turn all following text
# into a quote.
_QUOTED = regex(
    r"\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|„([^“”\n]{2,80})[“”]|«\s?([^»\n]{2,80}?)\s?»|`([^`\n]{2,80})`"
    r"|(?<!\w)'([^'\n]{2,60})'(?!\w)"
)
# Parts of `getUserName` and `HTTPServer`, so "get the user name" matches.
_PART = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+")
_WORD = regex(r"[^\W\d_]+")
# `one` and `a single` may not be counts, but they can carry a 1.
_ONE = regex(r"\b(?:one|once|single|sole|eine?[nmrs]?|einmal|une?|una|uno)\b", re.IGNORECASE)
# A name of letters and digits within a longer one, a path or an address: `q3` of `q3_report.pdf`.
_NAME_PART = regex(r"(?<![^\W_])(?:[^\W\d_]+\d|\d+[^\W\d_])[^\W_]*")


class Fact(NamedTuple):
    """A fact of a text. ``keys`` are its forms. Any of them identifies the fact."""

    kind: Kind
    text: str
    keys: frozenset[str]

    @property
    def weight(self) -> int:
        """How much it counts: numbers, identifiers and paths 3, anything else 1."""
        return HARD_WEIGHT if self.kind in HARD else 1

    @property
    def numbers(self) -> frozenset[float]:
        """The numbers that it may be: 1204 and 1.204 for `1,204`."""
        return frozenset(float(key[2:]) for key in self.keys if key.startswith("n:"))

    @property
    def unit_keys(self) -> frozenset[str]:
        """Its keys with a unit: 5 kg, and not 5."""
        return frozenset(key for key in self.keys if key.startswith("u:"))

    @property
    def precise_keys(self) -> frozenset[str]:
        """Its keys as a number with a unit, as a time and as a date."""
        return frozenset(key for key in self.keys if key.startswith(("u:", "t:", "d:")))

    @property
    def is_day(self) -> bool:
        """Whether it may be a date."""
        return any(key.startswith("d:") for key in self.keys)


class Reading:
    """A text as read: its facts in order, without duplicates, and all its keys.

    ``start`` is the start of the text, which shows its language. If several ``texts`` are read as
    one, their facts are joined only on demand: what a caller had before a dispatch is only
    searched, and can be thousands of facts.
    """

    def __init__(
        self,
        facts: tuple[Fact, ...],
        keys: frozenset[str],
        start: str = "",
        texts: Collection[str] = (),
    ) -> None:
        self.keys = keys
        self.start = start
        self._facts = facts
        self._texts = texts

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts in the order of the text, without duplicates."""
        if self._texts:
            by_keys: dict[frozenset[str], Fact] = {}
            for text in self._texts:
                for fact in _read_one(text).facts:
                    by_keys.setdefault(fact.keys, fact)
            self._facts, self._texts = tuple(by_keys.values()), ()
        return self._facts

    @property
    def language(self) -> str | None:
        """The probable language of the text, or ``None`` if unsure. Computed only if needed."""
        return language(self.start)

    def holds(self, fact: Fact, *, loosely: bool = False) -> bool:
        """Return whether the text has this fact, including an identifier written as words.

        ``loosely`` also accepts a rounded number, and an identifier by its only word. Otherwise a
        number also counts within a name, or as the hour of a full hour.
        """
        if fact.keys & self.keys:
            return True
        if fact.kind == "number" and loosely:
            return any(rounded_keys(key) & self.keys for key in fact.keys)
        # Not loosely: used for what a prompt carries. `python:3.12-slim` contains the version
        # `3.12`, but a rounded price would be wrong.
        if fact.kind == "number":
            if any(f"in:{key}" in self.keys for key in fact.keys):
                return True
            # "15 August" is carried by "mid-August (the 15th)", but not by "15 April".
            days = (key.rpartition("-")[2] for key in fact.keys if key.count("-") == 1)
            if any(f"alone:n:{day}" in self.keys for day in days):
                return True
            # "at 9:00" is carried by "at nine".
            return any(f"alone:{hour}" in self.keys for hour in hours_of(fact.keys))
        for key in fact.keys:
            if key.startswith("r:") and all(f"n:{end}" in self.keys for end in key[2:].split("-")):
                return True
        words = [key for key in fact.keys if key.startswith("w:")]
        if fact.kind == "word":
            return any(self._near(word) for word in words)
        parts = [f"w:{stem}" for stem in name_parts(fact.text)]
        # More than half of the words, since quotes are shortened: "beware of the goose" is carried
        # by "the sign about the goose says beware".
        if fact.kind == "quote":
            return 2 * sum(self._has(part) for part in parts) > len(parts)
        # `support_router` is found in "the support router". A name with one meaningful word is too
        # weak for that, as `with_retry` would be found in any text with "retry". A file can be
        # called by its one word ("a constant in the client" for `client.py`).
        enough = len(parts) > (0 if loosely or fact.kind == "path" else 1)
        return enough and all(self._has(part) for part in parts)

    def _has(self, key: str) -> bool:
        return key in self.keys or self._near(key)

    def _near(self, key: str) -> bool:
        """Return whether a word has the same start: ``expiry`` for ``expired``."""
        # English word families share their first letters: `expir` of "expired" and `expiry`. The
        # limits are 5 letters in common, as `cont` starts "contract", "control" and "contest", and
        # stems of at most 7, as `internal` and `international` share 8 and differ. Without this
        # rule, two good traces of benchmarks/accuracy seem to ignore a result, and no other fault
        # is found.
        stem = key[2:]
        if len(stem) < 5:
            return False
        start = f"p:{stem[:5]}"
        return start in self.keys and len(stem) <= 7

    def with_all_of(self, more: Reading) -> Reading:
        """Return the reading of both texts as one. Facts that are in both appear twice."""
        facts = (*self.facts, *more.facts)
        return Reading(facts, self.keys | more.keys, self.start)

    def without(self, had: Reading) -> list[Fact]:
        """Return the facts that another text does not have."""
        return [fact for fact in self.facts if not had.holds(fact)]


def plain_text(value: Content | Any) -> str:
    """Return content or JSON data as plain text: its values, one per line, without their names.

    A true flag is written as its name. Text that is JSON is read as JSON. See also
    :func:`without_style`.
    """
    if isinstance(value, Content):
        value = value.text if value.text is not None else value.data
    # JSON with values starts with `{`, `[` or `"`, so most texts are none.
    is_plain = isinstance(value, str) and value[:1].isalnum()
    return without_style(value if is_plain else "\n".join(_leaves(value)))


def without_style(text: str) -> str:
    """Remove Markdown of bold and italics and tags of HTML; write blanks and digits as usual."""
    if "*" in text or "__" in text:
        text = _EMPHASISED.sub(_without_marks, text)
    if "</" in text or "<br" in text:
        text = _TAG.sub(" ", text)
    if "`" in text:
        text = _NUMBER_AS_CODE.sub(r"\1", text)
    if text.isascii():
        return text
    text = _WIDE_BLANK.sub(" ", _THIN_BLANK.sub("\u202f", text))
    return text.translate(_FULL_WIDTH) if _FULL_WIDTH_DIGIT.search(text) is not None else text


# "2.48\u00a0m" as French typography, and many models, write it; but "1\u202f234" is one number.
_WIDE_BLANK = regex(r"(?<!\d)[\u00a0\u202f]|[\u00a0\u202f](?!\d)")
_THIN_BLANK = regex("[\u2007\u2009]")


# "**5** nights", "*not* refundable", "__Total__: 4"; not "2**10", "3*4", "****4471" or "a__b".
_EMPHASISED = regex(
    r"(?<![\w*])\*\*(?=\S)([^*\n]*[^*\s])\*\*(?!\*)"
    r"|(?<![\w*])\*(?=\S)([^*\n]*[^*\s])\*(?![\w*])"
    r"|(?<!\w)__(?=\S)([^_\n]*[^_\s])__(?!\w)"
)


_TAG = regex(  # "<p>700</p>"; other tags may be what a text is about
    r"</?(?:p|br|b|i|u|em|strong|li|ul|ol|div|span|h[1-6]|t[dhr]|table|tbody|thead)"
    r"(?:\s[^<>\n]{0,200})?/?>",
    re.IGNORECASE,
)
_NUMBER_AS_CODE = regex(r"(?<![\w`])`(\d[\d.,:]{0,20})`(?![\w`])")  # "`14` days"
# "５００円" is "500円".
_FULL_WIDTH_DIGIT = regex("[\uff10-\uff19]")
_FULL_WIDTH = {0xFF00 + n: chr(0x20 + n) for n in range(1, 0x5F)}


def _without_marks(match: re.Match[str]) -> str:
    return match[1] or match[2] or match[3] or ""


def _leaves(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        data = as_json(value, JSON_DEPTH.value - depth)
        if data is None:
            yield value
        else:
            yield from _leaves(data, depth + 1)
    elif isinstance(value, dict):
        for name, each in value.items():
            # `{"fragile": true, "paid": false}` means "fragile". A false flag means something too,
            # but its words will not come up again.
            if each is True:
                yield str(name)
            else:
                yield from _leaves(each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each, depth + 1)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


# Models put JSON between such marks.
_FENCED = regex(r"```(?:json5?|JSON)?[ \t]*\n(.*?)\n?```\s*", re.DOTALL)


def as_json(text: str, levels: int = JSON_DEPTH.value) -> dict[str, Any] | list[Any] | None:
    """Return the object or list that the whole text is, or ``None`` if it is neither.

    It may stand between marks of code. Also ``None`` if it has more ``levels``, as JSON texts
    within JSON texts add up.
    """
    fenced = _FENCED.fullmatch(text) if text[:3] == "```" else None
    text = text if fenced is None else fenced[1]
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        data = decode_json(text, levels)
    except msgspec.DecodeError:
        return None
    return data if isinstance(data, dict | list) else None


# The characters of a long list that can be searched in the time of comparing one text.
_READ_ANEW = 16
# Only the keys of stretches are kept, which take a tenth of the memory of the facts.
_STRETCHES_KEPT = 10 * KEPT_CHARACTERS


def charge_reading(texts: Collection[str], times: int = 1) -> None:
    """Charge the reading of different texts to the work budget of a trace.

    Texts that fit into a cache are read once. If there are more, some are read again for each
    dispatch: 3,000 dispatches of one caller took minutes. ``times`` is how often a text is read, in
    parts.

    Raises:
        TooMuchTextError: there is no work left.
    """
    size = times * max(sum(map(len, texts)), kept_size("") * len(texts))
    if size > KEPT_CHARACTERS:
        charge_work(size // _READ_ANEW)


def read(*texts: str) -> Reading:
    """Read the facts of texts as if they were one."""
    if len(texts) == 1:
        return _read_one(texts[0])
    distinct = dict.fromkeys(texts)
    charge_reading(distinct)
    return Reading((), _keys_of(distinct), _start(texts), distinct)


def _keys_of(texts: Collection[str]) -> frozenset[str]:
    """Return all keys of different texts."""
    kept = index_kept() if len(texts) > 2 * _STRETCH else None
    if kept is None:
        return frozenset[str]().union(*(_read_one(text).keys for text in texts))
    stretches = kept.once("stretches", _Stretches)
    return frozenset[str]().union(*(stretches.keys(each) for each in _stretches(texts)))


# The approximate number of a caller's texts that are read as one.
_STRETCH = 32


def _stretches(texts: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Split a long list at points chosen by the texts themselves, not at every n-th text.

    What a caller had before its 500th dispatch is what it had before the 499th plus one text, and
    what it wrote afterwards is one text less. Split in this way, both lists have nearly all
    stretches in common, wherever they start.
    """
    stretch: list[str] = []
    for text in texts:
        stretch.append(text)
        if hash(text) % _STRETCH == 0:
            yield tuple(stretch)
            stretch = []
    if stretch:
        yield tuple(stretch)


class _Stretches:
    """The keys of stretches of texts in one trace, kept for stretches that were requested before.

    Most other stretches are the ends of a list, which occur only once.
    """

    def __init__(self) -> None:
        self._keys: dict[tuple[str, ...], frozenset[str]] = {}
        self._seen: set[int] = set()
        self._room = _STRETCHES_KEPT

    def keys(self, texts: tuple[str, ...]) -> frozenset[str]:
        """Return all keys of these texts."""
        keys = self._keys.get(texts)
        if keys is not None:
            return keys
        keys = frozenset[str]().union(*(_read_one(text).keys for text in texts))
        number = hash(texts)
        if number not in self._seen:
            self._seen.add(number)
            return keys
        self._room -= sum(map(kept_size, texts))
        if self._room < 0:
            self._keys.clear()
            self._seen.clear()
            self._room = _STRETCHES_KEPT
        self._keys[texts] = keys
        return keys


def _start(texts: Sequence[str]) -> str:
    """Return the start of several texts, one after the other."""
    start, length = [], 0
    for text in texts:
        start.append(text)
        length += len(text) + 1
        if length > _SAMPLE:
            break
    return "\n".join(start)[:_SAMPLE]


def _read_one(text: str) -> Reading:
    """Read a text once: every dispatch of a run is compared with the same steps."""
    charge(text)
    return read_part(text)


def read_part(text: str) -> Reading:
    """Read a part of a text that is charged as a whole."""
    return _read_again(text) if len(text) <= KEPT_LENGTH else _read(text)


@text_cached
def _read_again(text: str) -> Reading:
    return _read(text)


def _read(text: str) -> Reading:
    text = in_digits(text)
    words = words_of(text)
    keys = extra_keys(text, words)
    token = _TOKEN_BUT_DAYS
    if not MONTH_WORDS.isdisjoint(words):
        keys |= named_days(text)
        token = _TOKEN
    quotes, rest = _quotes(text, token)
    everything = list(_facts(text, token))
    by_keys: dict[frozenset[str], Fact] = {}
    # The numbers of a list say nothing. They stay keys: "the second point" may be carried by "(2)".
    bare = without_list_numbers(rest if quotes else text)
    facts = everything if bare == text else _facts(bare, token)
    for fact in (*quotes, *facts):
        by_keys.setdefault(fact.keys, fact)
    for fact in everything:
        keys |= fact.keys
        if fact.kind == "number" and not fact.is_day:
            # Not part of a date: "the 15th" can be the day that another text names in full.
            keys.update(f"alone:{key}" for key in fact.keys if key.startswith("n:"))
        if fact.kind in ("path", "identifier"):
            keys |= _inside(fact.text)
        # "before 8" is carried by "before 08:00".
        keys.update(f"in:{key}" for key in hours_of(fact.keys))
        if fact.is_day:
            keys |= date_numbers(fact.text)
        keys.update(f"w:{part}" for part in name_parts(fact.text))
    for match in _WORD.finditer(text):
        keys.update(f"w:{each}" for each in _stems(match[0]))
    # "2 licenses, and I bought 1" is carried by "two licenses, and only one was bought". As `one`
    # is also a pronoun, it can carry a 1 but is never a fact itself.
    if _ONE.search(text):
        keys |= number_keys("1")
    keys.update(f"p:{key[2:7]}" for key in list(keys) if key.startswith("w:") and len(key) > 6)
    return Reading(tuple(by_keys.values()), frozenset(keys), text[:_SAMPLE])


# "1. " and "2) " at the start of lines, and "(1) " anywhere. A number before another closing
# parenthesis is not taken: "(option 1)".
_LIST_NUMBER = regex(r"(?m:^)[ \t>*]{0,8}(\d{1,2})[.)](?=\s)|(?<!\w)\((\d{1,2})\)(?=\s)")


def without_list_numbers(text: str) -> str:
    """Replace the numbers of a list that counts from 1 with spaces.

    "1. A hotel" at the start of the only line stays, and so does "12. March", as nothing counts.
    """
    numbers = list(_LIST_NUMBER.finditer(text)) if ")" in text or "." in text else []
    parts: list[str] = []
    end, expected = 0, 1
    for place, match in enumerate(numbers):
        number = int(match[1] or match[2])
        follows = place + 1 < len(numbers)
        after = int(numbers[place + 1][1] or numbers[place + 1][2]) if follows else 0
        if number == 1 and after == 2:
            expected = 1
        if number == expected and (number > 1 or after == 2):
            parts += [text[end : match.start()], " " * len(match[0])]
            end, expected = match.end(), expected + 1
    return "".join((*parts, text[end:])) if parts else text


def _inside(name: str) -> set[str]:
    """Return the alphanumeric names and the numbers within a name."""
    keys = {f"i:{part}" for part in _NAME_PART.findall(name.casefold())}
    for number in re.findall(r"(?<![\d.])\d+(?:\.\d+)?(?![\d.])", name):
        keys.update(f"in:{key}" for key in number_keys(number))
    return keys


def _quotes(text: str, token: re.Pattern[str]) -> tuple[list[Fact], str]:
    """Take quoted strings of several words out of a text, but leave numbers and names in them."""
    facts = []
    for match in _QUOTED.finditer(text):
        inner = next(group for group in match.groups() if group is not None)
        inside = list(_facts(inner, token))
        # A quote with a number or name is read for those instead. `'beware of the goose'` has only
        # words, which mean more together than one by one.
        if len(_WORD.findall(inner)) > 1 and inside and all(f.kind == "word" for f in inside):
            facts.append(Fact("quote", inner, frozenset({f"q:{' '.join(name_parts(inner))}"})))
            text = text.replace(match[0], " " * len(match[0]), 1)
    return facts, text


def _facts(text: str, token: re.Pattern[str]) -> Iterator[Fact]:
    for match in token.finditer(text):
        kind, written = match.lastgroup, match[0].rstrip(".,:;")
        if kind in ("scale", "percent"):
            kind = "number"
        if kind == "url":
            yield _address(written)
        elif kind == "path":
            yield _path(written)
        elif kind == "date":
            yield Fact("number", written, date_keys(written))
        elif kind == "day":
            days = frozenset(key for key in named_days(written) if key.startswith("d:"))
            yield Fact("number", written, days)
        elif kind == "grouped":
            digits = re.sub(r"\W", "", written.casefold())
            keys = {f"i:{digits}", phone_key(digits)}
            if digits.isdecimal():
                keys.add(f"n:{digits.lstrip('0')}")
            yield Fact("identifier", written, frozenset(keys))
        elif kind == "fraction":
            share = int(written[0]) / int(written[2])
            keys = {*share_keys(share), f"n:{share:.4g}"}
            yield Fact("number", written, frozenset(keys))
        elif kind == "clock":
            times = clock_keys(written)
            # `18h04` is a time of day, `1h30` can be 90 minutes.
            if (lasts := _HOURS_LONG.fullmatch(written)) is not None:
                seconds = 3600 * int(lasts[1]) + 60 * int(lasts[2])
                times |= {measure_key("duration", seconds)}
            yield Fact("number", written, times)
        elif kind == "number":
            yield _number(match)
        elif kind == "call":
            bare = _identifier(written)
            yield bare._replace(keys=bare.keys | {f"w:{stem}" for stem in _stems(written)})
        elif kind == "mail":
            yield _identifier(written)
        else:
            yield from _named(written)


# `2h30` is a duration and a time: both count.
_HOURS_LONG = regex(r"(\d{1,2})h(\d\d)")


# An address comes back shortened: `http://127.0.0.1:4318` as "port 4318", and
# `https://a.example/x/report.html` as "report.html".
def _address(written: str) -> Fact:
    """Return an address as a fact, identified by itself, its port, or the last part of its path."""
    bare = written.casefold().split("://", 1)[1].rstrip("/.").removeprefix("www.")
    host, _, path = bare.partition("/")
    keys = {f"i:{bare}"}
    keys.update(f"n:{port}" for port in re.findall(r":(\d+)$", host))
    if path:
        keys.add(f"f:{path.rsplit('/', 1)[-1]}")
    return Fact("identifier", written, frozenset(keys))


def _number(match: re.Match[str]) -> Fact:
    digits = re.search(NUMBER, match[0])
    written = digits[0] if digits else match[0]
    # `3.12.1` and `127.0.0.1` are a version and a host; `1.234.567` is a number with groups of
    # three.
    if written.count(".") > 1 and not re.fullmatch(r"\d+(?:\.\d{3})+", written):
        if re.fullmatch(r"\d+(?:\.\d+){2,}", written):
            return _identifier(written)
    keys = number_keys(written, match["scale"] or "", percent=match["percent"] is not None)
    start, end = match.span()
    if digits is not None:
        end = start + digits.end() + len(match["scale"] or "")
        start += digits.start()
    before, after = match.string[max(0, start - 4) : start], match.string[end : end + 20]
    more: set[str] = set()
    # In 31 %, the 31 is measured, not its other form 0.31.
    for key in number_keys(written, match["scale"] or ""):
        value = float(key[2:])
        sizes = measures(value, before, after)
        for dimension, size in sizes:
            more.add(measure_key(dimension, size))
            if dimension == "share":
                more |= {*share_keys(size), f"n:{size:.4g}"}
        if not sizes and 0 < value < 1:
            more |= share_keys(value)
        # "50 cents" are 0.50 EUR or USD. "1.5m rows" are 1,500,000, and "1.5m" can also be metres.
        if _CENTS.match(after) is not None:
            more.add(_key(Decimal(key[2:]) / 100))
        elif after[:1] == "m" and not after[1:2].isalpha():
            more.add(_key(Decimal(key[2:]) * 10**6))
    more.update(unmarked_keys(written, after))
    return Fact("number", match[0].strip(), keys | more)


# `50 cents`, `50p`: the amount is a hundredth, as `0.50`. `50 people` is not.
_CENTS = regex(r" ?(?:cents?|ct|centimes|pence|p)\b", re.IGNORECASE)


def _path(written: str) -> Fact:
    """Return a path as a fact, identified by its last part, or by a file's stem if it is a word."""
    last = re.split(r"[\\/]", written.rstrip("\\/"))[-1].casefold()
    keys = {f"f:{last}"}
    bare = last.rsplit(".", 1)[0]
    stems = [stem for stem in _stems(bare) if stem == _stem(bare)]
    # "The client" can mean `client.py`. With 3 letters or fewer (`a.md`, `app.py`), the word is too
    # common to mean the file.
    if len(bare) > 3:
        keys.update(f"w:{stem}" for stem in stems)
    return Fact("path", written, frozenset(keys))


def is_spelled_in(name: str, text: str) -> bool:
    """Return whether an identifier or address is in a text, with other marks or in part.

    `LX1634` as `LX 1634`, `INV-2024-118` as `INV 2024 118`, `https://www.example.org/pay` as
    `example.org/pay`, a commit by its first seven characters or more, `B1-niveau` as `niveau B1`.
    """
    bare = re.sub(r"[^a-z0-9]", "", _SCHEME.sub("", name.casefold()))
    folded = text.casefold()
    if len(bare) >= _LONG_NAME and bare in re.sub(r"[^a-z0-9]", "", folded):
        return True
    if any(bare.startswith(part) and part != bare for part in _HASH.findall(folded)):
        return True
    # A code and a word, which many languages join: "A4-Blatt" is "Blatt A4", "T3-line" "line: T3".
    if compound := _COMPOUND.fullmatch(name.casefold()):
        if f" {compound['word']} {compound['code']} " in re.sub(r"\W+", " ", f" {folded} "):
            return True
    parts = re.findall(r"[a-z]+|\d+", bare)
    if not parts or not all(part in folded for part in parts):
        return False
    pattern = r"[\W_]{0,2}".join(parts)
    return re.search(rf"(?<![^\W_]){pattern}(?![^\W_])", folded) is not None


# `A320-family` is `A320` as well; `co-pilot` and `2024-05` are not compounds of this sort.
_COMPOUND = regex(r"(?<![^\W_])(?P<code>[^\W\d_]*+\d[^\W_]*+)-(?P<word>[^\W\d_]{3,})")
# `https://www.acme.example` and `acme.example` are one address.
_SCHEME = regex(r"^\w+://(?:www\.)?")
# Shorter ones occur in other words by chance: `a1` in "schema 12".
_LONG_NAME = 8
# Short and long forms of a commit are the same: `9f86d08`. Words of these letters (`defaced`) have
# no digit.
_HASH = regex(r"\b(?=\w*\d)[0-9a-f]{7,}\b")


_QUARTERS = frozenset({"q1", "q2", "q3", "q4"})
# `v3.12` is `3.12`.
_VERSION = regex(r"[vV]?(\d+(?:\.\d+)*)")


def _identifier(written: str) -> Fact:
    forms = [written]
    # `UserService.get_user` is usually referred to by its last part: "Let get_user() return None".
    last = written.rpartition(".")[2]
    if last != written and "@" not in written and _is_identifier(last):
        forms.append(last)
    # `A-100`, `a100` and `A_100` are the same order number, typed by different people.
    squashed = [re.sub(r"[-_.:#@/\s]", "", form.casefold()) for form in forms]
    keys = {f"i:{form}" for form in squashed}
    # `v2.14.3` is `2.14.3`, and `1.2.0` is `1.2`.
    version = _VERSION.fullmatch(written)
    if version is not None:
        keys.add(f"i:{version[1].replace('.', '')}")
        if version[1].count(".") > 1 and version[1].endswith(".0"):
            keys.add(_key(Decimal(".".join(version[1].split(".")[:2]))))
    # `Q3` is the third quarter, which other texts give by its months.
    keys |= {f"qu:{form[1]}" for form in squashed if form in _QUARTERS}
    return Fact("identifier", written, frozenset(keys))


@lru_cache(maxsize=8192)
def _named(written: str) -> tuple[Fact, ...]:
    return tuple(_name(written))


def _name(written: str) -> Iterator[Fact]:
    if _is_identifier(written):
        yield _identifier(written)
        return
    if re.fullmatch(r"\d+-\d+", written):
        # An invoice `20-118`, or the pages `12-15`, which can also be "pages 12 to 15".
        digits = written.replace("-", "")
        keys = {f"i:{digits}", f"n:{digits}", f"r:{written}"}
        # `2026-03` can be March 2026.
        if (month := re.fullmatch(r"(20\d\d)-(0[1-9]|1[0-2])", written)) is not None:
            keys.add(f"mo:{month[1]}-{int(month[2])}")
        yield Fact("identifier", written, frozenset(keys))
        return
    if re.fullmatch(r"\d+(?:-\d+){2,}", written):
        # An account `0044-918-2`, which another text has as 00449182 or 0044 918 2.
        digits = written.replace("-", "")
        keys = {f"i:{digits}", f"n:{digits.lstrip('0')}"}
        yield Fact("identifier", written, frozenset(keys))
        return
    for number in re.findall(r"^\d+(?=-)", written):
        yield Fact("number", number, number_keys(number))
    for part in re.split(r"[-._:\d]+", written):
        value = word_key(part.casefold())
        if value is not None:
            yield Fact("number", part, frozenset({value}))
            continue
        for stem in _stems(part):
            shown = part if len(stem) > 2 else stem
            yield Fact("word", shown, frozenset({f"w:{stem}"}))


def _is_identifier(written: str) -> bool:
    """Return whether it is an identifier: letters with digits, snake_case, camelCase, dotted."""
    # `m2` is a unit.
    if re.fullmatch(r"[ckm]?m[23²³]", written):
        return False
    letters = any(c.isalpha() for c in written)
    # `R-77` and `q3` are names. `1st`, `2e` and `72-hour` are numbers with a word around them.
    if letters and any(c.isdigit() for c in written):
        return not re.fullmatch(r"\d+(?:st|nd|rd|th|e|er)|\d+(?:-[^\W\d]{2,})+", written)
    # `max_attempts` and `getUser`. Two lower-case letters are required before the capital, so
    # `iPhone` and `McKay` stay words.
    if re.search(r"[^\W\d]_[^\W\d]", written) or re.search(r"[a-z]{2}[A-Z]", written):
        return True
    # `PDFReader` and `HTTPError`, but not the plural `PDFs`; and dotted names like `orders.refund`,
    # where a single letter on either side (`e.g`) is an abbreviation.
    return re.search(r"[A-Z]{2}[a-z]{2}", written) is not None or (
        re.fullmatch(r"[a-z_]{2,}(?:\.[a-z_]{2,})+", written) is not None
    )


@lru_cache(maxsize=8192)
def _stems(word: str) -> tuple[str, ...]:
    """Return the stem of a meaningful word, or pairs of letters in a script without spaces."""
    folded = word.casefold()
    if folded in COMMON or not folded.isalpha():
        return ()
    # Chinese, Japanese and Korean letters start at U+2E80. Their words have no blanks in between,
    # and most words have two letters, so pairs of letters stand for words.
    if ord(folded[0]) >= 0x2E80:
        return tuple(folded[i : i + 2] for i in range(max(1, len(folded) - 1)))
    # Words of one or two letters that are not in the list of common words are mostly abbreviations.
    return (_stem(folded),) if len(folded) > 2 else ()


def _stem(folded: str) -> str:
    """Remove the inflectional endings of English, German, French and Spanish words."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    # Only what is needed for plurals and past forms: "parcels" and "parcel", "compiles" and
    # "compiled". A real stemmer merges more words (`universe` and `university`), and a wrong match
    # here hides a fault or invents one.
    for ending, instead in (
        ("ies", "y"),
        ("sses", "ss"),
        ("ing", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
    ):
        if bare.endswith(ending) and not bare.endswith("ss") and len(bare) - len(ending) >= 3:
            bare = bare.removesuffix(ending) + instead
            break
    # "stopped" without "ed" ends in a doubled letter; "stop" has one.
    bare = re.sub(r"([b-df-hj-np-tv-z])\1$", r"\1", bare)
    return bare.removesuffix("e") if len(bare) > 4 else bare


@lru_cache(maxsize=8192)
def name_parts(text: str) -> tuple[str, ...]:
    """Return the stems of the words in a name or phrase."""
    return tuple(stem for part in _PART.findall(text) for stem in _stems(part))


@lru_cache(maxsize=4096)
def language(text: str) -> str | None:
    """Guess the language of a text by its common words, or name its script. ``None`` if unsure."""
    letters = [c for c in text[:_SAMPLE] if c.isalpha()]
    foreign = [c for c in letters if ord(c) > 0x24F]
    # U+0250 and above is outside the Latin alphabet. The name of the script then replaces the
    # language, because there are no lists of common words for these: Unicode calls 京 a `CJK
    # UNIFIED IDEOGRAPH`.
    if 2 * len(foreign) > len(letters):
        return unicodedata.name(foreign[0], "other").split()[0].casefold()
    words = [word.casefold() for word in _WORD.findall(text[:_SAMPLE])]
    counts = {name: sum(word in common for word in words) for name, common in LANGUAGES.items()}
    best, second = sorted(counts.values(), reverse=True)[:2]
    # One common word proves little (`in` is English and German, `de` French and Spanish), and a
    # text of names like "Lumora, Brightleaf" has none. If unsure, languages do not count as
    # different.
    if best < 2 or best == second:
        return None
    return max(counts, key=lambda name: counts[name])


def weight(facts: Iterable[Fact]) -> int:
    """Add up the weights of facts."""
    return sum(fact.weight for fact in facts)
