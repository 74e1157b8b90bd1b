"""Short notations of quantities and dates, written out: ``1h30``, ``1e6``, ``4-Mar-26``, ``CW12``.

``normalise_values.py`` and ``facts.py`` read the output like any other text. Each rule covers one
convention of writing, with an example, and does not change its own output.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from .lazy_patterns import regex
from .words import MONTH_NAMES

_NAMES = (
    "",
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_CURRENCY = r"EUR|USD|GBP|CHF|NOK|SEK|DKK|JPY|INR|euros?|dollars?|pounds?|francs|kron\w+|€|\$|£"
# `1,204.50`, `1204` and `3,5`.
_AMOUNT = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?)"
_TIMES = {"m": 10**6, "mn": 10**6, "mln": 10**6, "bn": 10**9, "b": 10**9, "tn": 10**12}
_INDIAN = {"lakh": 10**5, "lakhs": 10**5, "crore": 10**7, "crores": 10**7}
_SMALL = {
    word: value
    for value, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve".split(),  # noqa: SIM905
        1,
    )
}
_SLANG = {"quid": "GBP", "bucks": "USD", "buck": "USD"}


def _year(written: str) -> str:
    return written if len(written) == 4 else f"20{written}"


def _times(written: str, factor: int) -> str:
    """Multiply an amount: `1,5` million is 1.5 million, and `1,500` million 1500 million."""
    grouped = re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", written) is not None
    return f"{float(written.replace(',', '' if grouped else '.')) * factor:.10g}"


def _power(match: re.Match[str]) -> str:
    exponent = int(match[2])
    # Above this, the digits would fill a line. Such numbers do not occur as counts.
    return f"{float(match[1]) * 10**exponent:.0f}" if exponent <= 15 else match[0]


def _power_of_ten(match: re.Match[str]) -> str:
    exponent = int(match[2])
    return str(10**exponent) if exponent <= 15 else match[0]


# Before noon, after noon, in the morning and in the evening.
_FORENOON = "午前|上午|早上|凌晨|清晨|朝|오전|아침|새벽"
_AFTERNOON = "午後|下午|晚上|傍晚|夕方|夜|오후|저녁"


def _day_of_month(match: re.Match[str]) -> str:
    year = f" {match[1]}" if match[1] else ""
    return f" {int(match[3])} {_NAMES[int(match[2])]}{year} "


def _time_of_day(match: re.Match[str]) -> str:
    hour = int(match[2])
    if match[1] and re.fullmatch(_AFTERNOON, match[1]) and hour < 12:
        hour += 12
    return f" {hour}:{int(match[3] or 0):02} "


def _minutes(match: re.Match[str]) -> str:
    return f"{60 * int(match[1]) + int(match[2])} minutes"


def _feet(feet: str, inches: str) -> str:
    """Write feet and inches in inches: `7'4"` is 88 inches."""
    return f"{12 * int(feet) + int(inches)} inches"


def _fiscal(match: re.Match[str]) -> str:
    until = "" if match[2] is None else f" to {_year(match[2][-2:])}"
    return f"fiscal year {_year(match[1])}{until}"


def _season(match: re.Match[str]) -> str:
    """Write `2024/25` in full if the second year is the next one. `2024/11` is not a season."""
    return f"{match[1]} to 20{match[3]}" if int(match[3]) == int(match[2]) + 1 else match[0]


class _Rule(NamedTuple):
    """One convention. A text has to contain one of ``marks``, so most texts skip most rules.

    In a mark ``#`` is any digit.
    """

    marks: tuple[str, ...]
    pattern: re.Pattern[str]
    instead: str | Callable[[re.Match[str]], str]


def _rule(marks: str, pattern: str, instead: str | Callable[[re.Match[str]], str]) -> _Rule:
    return _Rule(tuple(marks.split("|")), regex(pattern, re.IGNORECASE), instead)


_WITH_DIGITS = (
    # 2025-03-04T14:00:00Z. An offset is left out, as the hour in other time zones does not matter.
    _rule(
        "t0|t1|t2",
        r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:(Z\b)|[+-]\d\d:?\d\d)?",
        lambda m: f"{m[1]} {m[2]}" + (" UTC" if m[3] else ""),
    ),
    _rule("#z", r"\b(\d\d:\d\d)Z\b", r"\1 UTC"),
    # 2026/03/04
    _rule("#/", r"(?<![\w/.])(20\d\d)/(\d\d)/(\d\d)(?![\w/])", r"\1-\2-\3"),
    # 4-Mar-2026, 04-Mar-26
    _rule(
        "#-",
        rf"(?<![\w-])(\d{{1,2}})-({MONTH_NAMES})-(\d{{4}}|\d\d)(?![\w-])",
        lambda m: f"{int(m[1])} {m[2]} {_year(m[3])}",
    ),
    # 4 March '26
    _rule("'|’", rf"\b({MONTH_NAMES})\.?,? ?['’](\d\d)(?!\w)", r"\1 20\2"),
    # 03/2026
    _rule(
        "#/",
        r"(?<![\w./-])(0?[1-9]|1[0-2])/(20\d\d)(?![\w/])",
        lambda m: f"{_NAMES[int(m[1])]} {m[2]}",
    ),
    # FY25, FY2024/25
    _rule("fy", r"\bFY ?['’]?(20\d\d|\d\d)(?:[/-](\d{4}|\d\d))?(?!\w)", _fiscal),
    # 2024/25
    _rule("#/|#-|#–", r"(?<![\w./-])(20(\d\d))[/–-](\d\d)(?![\w/-])", _season),
    # between 2 and 8 June
    _rule(
        "between|zwischen|entre",
        rf"\b(?:between|zwischen|entre)(?: (?:the|dem|le|el))? (\d{{1,2}})(?:st|nd|rd|th|\.)?"
        rf" (?:and|und|et|y)(?: (?:the|dem|le|el))? (\d{{1,2}})(?=(?:st|nd|rd|th|\.)?"
        rf" (?:of |de )?(?:{MONTH_NAMES})\b)",
        r"\1-\2",
    ),
    # 2026-W12
    _rule("-w", r"\b(20\d\d)-?W(\d\d)(?!\w)", r"week \2 of \1"),
    # CW12, KW 12
    _rule(
        "cw|kw|wk|week|no",
        r"\b(?:CW|KW|wk\.?|calendar week|week no\.?) ?(\d{1,2})(?!\w)",
        r"week \1",
    ),
    # H1 2025
    _rule("h1|h2", r"\bH1(?= ?(?:20\d\d|['’]\d\d))", "first half of"),
    _rule("h1|h2", r"\bH2(?= ?(?:20\d\d|['’]\d\d))", "second half of"),
    # 1 h 30 min, 1 hour and 30 minutes
    _rule(
        "#h|# h",
        r"(?<![\w.,:])(\d{1,3}) ?(?:hours?|hrs?|h) ?(?:and |, )?([0-5]?\d) "
        r"?(?:minutes?|mins?|m)(?!\w)",
        _minutes,
    ),
    # 1:30 hours
    _rule(":", r"(?<![\w.,:])(\d{1,3}):([0-5]\d) ?(?:hours|hrs|h)(?!\w)", _minutes),
    # 10^6, 10**6, 2.4e6
    _rule("^|**", r"(?<![\w.])(10)(?:\^|\*\*)(\d{1,2})(?!\w)", _power_of_ten),
    _rule("#e", r"(?<![\w.-])(\d+(?:\.\d+)?)e\+?(\d{1,2})(?![\w-])", _power),
    # 1_000_000
    _rule("_", r"(?<!\w)\d{1,3}(?:_\d{3})+(?!\w)", lambda m: m[0].replace("_", "")),
    # 2 lakh
    _rule(
        "lakh|crore",
        rf"(?<![\w.])({_AMOUNT}) (lakhs?|crores?)\b",
        lambda m: _times(m[1], _INDIAN[m[2].lower()]),
    ),
    # 2.5m EUR, 3bn euros
    _rule(
        "#m|# m|#b|# b|#t|# t",
        rf"(?<![\w.,])({_AMOUNT}) ?(m|mn|mln|bn|b|tn)(?= ?(?:{_CURRENCY})(?!\w))",
        lambda m: _times(m[1], _TIMES[m[2].lower()]),
    ),
    # €3bn, EUR 2.5m
    _rule(
        "#m|# m|#b|# b|#t|# t",
        rf"(?<=[€$£])({_AMOUNT}) ?(m|mn|mln|bn|b|tn)(?!\w)",
        lambda m: _times(m[1], _TIMES[m[2].lower()]),
    ),
    _rule(
        "#b|# b|#m|# m|#t|# t",
        rf"(?<![\w.,])({_AMOUNT}) ?(mn|mln|bn|tn)(?!\w)",
        lambda m: _times(m[1], _TIMES[m[2].lower()]),
    ),
    # 6'2". Twelve inches are a foot, so 3'45" is a time. 4'10"/km is a time too.
    _rule(
        "#'|#’|#′",
        r"(?<![\w.°])(?<!° )(\d{1,3})['’′] ?(1[01]|\d)(?:\"|''|”|″)(?! ?/|\d)",
        lambda m: _feet(m[1], m[2]),
    ),
    # 52 ft 6 in
    _rule(
        "ft|feet|foot",
        r"(?<![\w.,])(\d{1,3}) ?(?:ft|feet|foot) ?(?:and )?(1[01]|\d) ?(?:in|inch|inches)(?!\w)",
        lambda m: _feet(m[1], m[2]),
    ),
    # 4x6
    _rule(
        "#x|# x|×",
        r"(?<![\w.,])(\d+(?:[.,]\d+)?) ?[x×] ?(?=\d+(?:[.,]\d+)?(?: ?[a-z]{1,3}\b|\W|$))",
        r"\1 x ",
    ),
    # 3万2000, 1亿2000万
    _rule(
        "万",
        r"(?<![\d.,])(?:(\d{1,4})[億亿])?(\d{1,4})万(\d{1,4})?(?!\d)",
        lambda m: str(10**8 * int(m[1] or 0) + 10**4 * int(m[2]) + int(m[3] or 0)),
    ),
    # 8.6万, 3億
    _rule(
        "万|億|亿",
        r"(?<![\d.,])(\d+(?:\.\d+)?) ?([万億亿])(?!\d)",
        lambda m: f"{float(m[1]) * (10**4 if m[2] == '万' else 10**8):.10g}",
    ),
    # 2026年3月20日, 3월 20일
    _rule(
        "月|월",
        r"(?:(\d{4}) ?[年년] ?)?(?<!\d)(1[0-2]|0?[1-9]) ?[月월]"
        r" ?([12]\d|3[01]|0?[1-9]) ?[日号號일]",
        _day_of_month,
    ),
    # 14時30分, 下午3点; 3点 alone may be three points.
    _rule(
        "時|时|点|點|시",
        rf"({_FORENOON}|{_AFTERNOON})? ?(?<!\d)(1\d|2[0-3]|0?\d) ?[時时点點시] ?([0-5]?\d) ?[分분]",
        _time_of_day,
    ),
    _rule(
        "|".join((_FORENOON, _AFTERNOON)),
        rf"({_FORENOON}|{_AFTERNOON}) ?(1[0-2]|0?\d) ?[時时点點시](?![間间半\d])()",
        _time_of_day,
    ),
    # 16,500円, 3人: there is no blank before a counter.
    _rule("円|元|人|日|時|分|泊|月|年|名|個|원", r"(?<=\d)(?=[円元人日時分泊月年名個원])", " "),
    # 250 basis points
    _rule("basis|bp", r"(?<=\d) ?(?:basis points?|bps?)\b", " bp"),
    # (555) 123-4567, 555.123.4567 and +1-555-123-4567
    _rule(
        "#)|.|-|+1",
        r"(?<![\w.+-])(?:\+?1[-. ]?)?(?:\((\d{3})\) ?|(\d{3})[-.])(\d{3})"
        r"[-. ](\d{4})(?![\w-]|\.\d)",
        lambda m: f"+1 {m[1] or m[2]} {m[3]} {m[4]}",
    ),
    # +49 (0)30
    _rule("(0)", r"(?<=\d) ?\(0\) ?(?=\d)", " "),
    # ****4471
    _rule("**|xx|••", r"(?:\*{2,}|x{4,}|•{2,})[ -]?(?=\d{3,4}\b)", " "),
)


_DIGIT = regex(r"\d")
_IN_WORDS = (
    _rule("quarters of", r"\bthree[ -]quarters of an hour\b", "45 minutes"),
    _rule("decade", r"\b(?:a|one) decade\b", "10 years"),
    # 18 months
    _rule("and a half", r"\bone and a half(?= \w)", "1.5"),
    _rule(
        "clock|night|hours",
        r"\b(?:a|r)ound[ -]the[ -]clock\b|\b(?:day and night)\b"
        r"|\b24 hours a day(?:,? (?:7|seven) days a week)?",
        "24/7",
    ),
    # five grand
    _rule(
        "grand",
        r"\b(\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|fifty)"
        r" grand\b",
        r"\1 thousand dollars",
    ),
    _rule("score", r"\ba score of\b", "20"),
    # seven foot four
    _rule(
        "foot|feet",
        rf"\b({'|'.join(_SMALL)}) (?:foot|feet) ({'|'.join(_SMALL)})(?: inch(?:es)?)?(?!\w)",
        lambda m: _feet(str(_SMALL[m[1].lower()]), str(_SMALL[m[2].lower()])),
    ),
    _rule("quid|buck", r"\b(quid|bucks?)\b", lambda m: _SLANG[m[1].lower()]),
)


# Chinese, Japanese and Korean have no blank between words and a number or code: "预算32000元".
_WITHOUT_BLANKS = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOUCHING = regex(
    rf"(?<=[{_WITHOUT_BLANKS}])(?=[A-Za-z0-9€$£¥#])|(?<=[A-Za-z0-9%])(?=[{_WITHOUT_BLANKS}])"
)


_ANY_DIGIT = str.maketrans("0123456789", "##########")


def written_out(text: str) -> str:
    """Expand short notations of quantities and dates."""
    folded = text.casefold()
    rules: tuple[_Rule, ...] = _IN_WORDS
    if _DIGIT.search(text) is not None:
        rules = (*_IN_WORDS, *_WITH_DIGITS)
        folded = f"{folded}\n{folded.translate(_ANY_DIGIT)}"
    for rule in rules:
        if any(map(folded.__contains__, rule.marks)):
            text = rule.pattern.sub(rule.instead, text)
    return text if text.isascii() else _TOUCHING.sub(" ", text)
