"""Numbers in words, written in digits: ``thirty-six``, ``half a dozen``, ``zweihundertfünfzig``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from .lazy_patterns import regex
from .words import Spelled

WORD = regex(r"\w+")


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in lower case.

    Most texts have none of the words that most patterns here start or end with. Looking for these
    words in a set takes a tenth of the time of trying all patterns at each place.
    """
    return frozenset(WORD.findall(text.casefold()))


def folded(words: Iterable[str]) -> frozenset[str]:
    """Return words as ``words_of`` does."""
    return frozenset(word.casefold() for word in words)


ONES = Spelled({
    word: value
    for value, words in enumerate(
        (
            "one ein eine eins un une uno una", "two zwei deux dos", "three drei trois tres",
            "four vier quatre cuatro", "five fünf cinq cinco", "six sechs",
            "seven sieben sept siete",
            "eight acht huit ocho", "nine neun neuf nueve", "ten zehn dix diez",
            "eleven elf onze once",
            "twelve zwölf douze doce", "thirteen dreizehn treize trece",
            "fourteen vierzehn quatorze catorce", "fifteen fünfzehn quinze quince",
            "sixteen sechzehn seize", "seventeen siebzehn",
            "eighteen achtzehn", "nineteen neunzehn",
        ),
        1,
    )
    for word in words.split()
})  # fmt: skip


TENS = Spelled({
    word: 10 * value
    for value, words in enumerate(
        (
            "twenty zwanzig vingt veinte", "thirty dreißig trente treinta",
            "forty vierzig quarante cuarenta", "fifty fünfzig cinquante cincuenta",
            "sixty sechzig soixante sesenta", "seventy siebzig setenta", "eighty achtzig ochenta",
            "ninety neunzig noventa",
        ),
        2,
    )
    for word in words.split()
})  # fmt: skip


_LARGE = Spelled({"hundred": 100, "hundert": 100, "thousand": 1000, "tausend": 1000})


def any_of(words: Mapping[str, object]) -> str:
    """Return a pattern for any of the words, the longest first."""
    return "|".join(sorted(words, key=len, reverse=True))


# Numbers of several words: "thirty-six", "fifteen hundred", "sechsunddreißig". Single words ("two
# seats") and other pairs ("one day") stay.
_WORD_NUMBER = regex(
    rf"""(?<![\w-])(?:
        (?:(?:{any_of(ONES | TENS)}|{any_of(_LARGE)}|an?(?=\ (?:hundred|thousand)))
            (?:[\ -](?:and\ |und\ )?(?:{any_of(ONES | TENS)}|{any_of(_LARGE)}))+)
        | (?:{any_of(ONES)})und(?:{any_of(TENS)})
    )(?![\w-])""",
    re.VERBOSE | re.IGNORECASE,
)


_GERMAN_PAIR = regex(rf"({any_of(ONES)})und({any_of(TENS)})", re.IGNORECASE)


# "zweihundertfünfzig", "hundertzwanzig"
_GERMAN_HUNDREDS = regex(
    rf"\b(?P<hundreds>{any_of(ONES)})?hundert(?:und)?(?:(?P<one>{any_of(ONES)})und"
    rf"(?P<ten>{any_of(TENS)})|(?P<rest>{any_of(TENS | ONES)}))?\b",
    re.IGNORECASE,
)


def _german_hundreds(match: re.Match[str]) -> str:
    total = 100 * (ONES[match["hundreds"].lower()] if match["hundreds"] else 1)
    if match["one"]:
        total += ONES[match["one"].lower()] + TENS[match["ten"].lower()]
    elif match["rest"]:
        rest = match["rest"].lower()
        total += TENS[rest] if rest in TENS else ONES[rest]
    return str(total)


def _in_words(match: re.Match[str]) -> str:
    """Write `thirty-six`, `one thousand five hundred` and `fifteen hundred` in digits.

    Number words that merely follow one another stay: `nineteen ninety` is a price or a year.
    """
    pair = _GERMAN_PAIR.fullmatch(match[0])
    if pair is not None:
        return str(ONES[pair[1].lower()] + TENS[pair[2].lower()])
    total = part = 0
    last = "start"
    for word in re.split(r"[ -]", match[0].lower()):
        if word in ("and", "und"):
            continue
        if word in _LARGE:
            size = _LARGE[word]
            part = max(part, 1) * size
            if size >= 1000:
                total, part = total + part, 0
            last = "large"
        elif word in TENS and last in ("start", "large"):
            part, last = part + TENS[word], "tens"
        elif word in ONES and (last in ("start", "large") or (last == "tens" and ONES[word] < 10)):
            part, last = part + ONES[word], "ones"
        elif word in ("a", "an"):
            part, last = 1, "ones"
        else:
            return match[0]
    return str(total + part)


SMALL = any_of({word: value for word, value in ONES.items() if value < 13})


_REWRITTEN: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (regex(pattern, re.IGNORECASE), instead)
    for pattern, instead in (
        # These come first, as they contain words that mean something else by themselves.
        (r"\bhalf a dozen\b|\bein halbes dutzend\b", "6"),
        (r"\b(?:two|2) dozen\b", "24"), (r"\b(?:three|3) dozen\b", "36"),
        (r"\b(?:a|one|ein) (?:dozen|dutzend)\b", "12"),
        (r"\b(?:a|one) (day|week|month|year|hour|minute|mile) and a half\b", r"1.5 \1s"),
        (r"\ban hour and a half\b", "1.5 hours"),
        (r"\b(?:one and a half|anderthalb|eineinhalb)\b", "1.5"),
        (r"\bhalf an? (hour|day|year|minute|mile)\b", r"0.5 \1s"),
        (r"\bhalf[- ]hour\b", "0.5 hours"),
        (r"\bhalf a (percent|per cent)\b", "0.5 %"),
        (r"\b(?:a|one) fortnight\b", "2 weeks"),
        (r"\b(?:square|sq\.?) ?(?:meters?|metres?|m)\b|\bquadratmetern?\b", "m²"),
        (r"\bmètres? carrés?\b|\bmetros? cuadrados?\b", "m²"),
        (r"\bcubic (?:meters?|metres?)\b|\bkubikmetern?\b|\bmètres? cubes?\b", "m³"),
        (r"\b(?:an? |one )?quarter of an hour\b", "15 minutes"),
        (r"(\d)\s?½", r"\1.5"),
        (r"½", "1/2"), (r"¼", "1/4"), (r"¾", "3/4"), (r"⅓", "1/3"), (r"⅔", "2/3"),
        (r"\bthree[- ]quarters\b|\bdrei viertel\b", "3/4"),
        (r"\btwo[- ]thirds\b|\bzwei drittel\b", "2/3"),
        (r"\b(?:a|one)[- ]fifth\b", "1/5"), (r"\b(?:a|one)[- ]sixth\b", "1/6"),
        (r"\b(?:a|one)[- ]eighth\b", "1/8"), (r"\b(?:a|one)[- ]tenth\b", "10 %"),
        (r"\b(?:a|one)[- ](?:third)\b|\bein(?:em|es)? drittel\b", "1/3"),
        (r"\b(?:a|one)[- ]half\b", "1/2"),
        (r"\b(?:first|erste[ns]?) (?:quarter|quartal)\b", "Q1"),
        (r"\b(?:second|zweite[ns]?) (?:quarter|quartal)\b", "Q2"),
        (r"\b(?:third|dritte[ns]?) (?:quarter|quartal)\b", "Q3"),
        (r"\b(?:fourth|last|vierte[ns]?) (?:quarter|quartal)\b", "Q4"),
        (r"\bminus (?=\d)|(?<![\w.)-])[−–](?=\d)", "-"),
        (r"\b(\d+) degrees below zero\b", r"-\1 degrees"),
    )
)  # fmt: skip


_ORDINALS = Spelled(
    {
        "first": 1,
        "third": 3,
        "fourth": 4,
        "fifth": 5,
        "sixth": 6,
        "seventh": 7,
        "eighth": 8,
        "ninth": 9,
    }
)


# "The twenty-first" is the 21st, but a thirty-second clip is not the 32nd one.
_IN_THE_TWENTIES = regex(rf"\b(twenty|thirty)[- ]({'|'.join(_ORDINALS)})\b", re.IGNORECASE)


# "Two and a half" is 2.5; "a day and a half" is in the list above.
_AND_A_HALF = regex(rf"\b({SMALL}|\d+)[ -]and[ -]a[ -]half\b", re.IGNORECASE)


# Parts of all words that the patterns above begin or end with. It is tried on each word, so that a
# text without numbers in words skips all of them; a word too many only costs time.
_MAY_BE_NUMBER = regex(
    "hundred|hundert|thousand|tausend|dozen|dutzend|half|halb|fortnight|quarter|viertel|third|"
    "drittel|quartal|fifth|sixth|eighth|tenth|minus|"
    "square|sq\\b|quadrat|carr|cuadrad|cubi|kubik|cube|teen|ty\\b|"
    "zig|ßig|twelve|vingt|trent|ante\\b|enta\\b|einte",
    re.IGNORECASE,
)


# Signs that need rewriting in a text without number words.
_MARKS = regex("[½¼¾⅓⅔−–]|below zero", re.IGNORECASE)


@lru_cache(maxsize=8192)
def _may_be_number(word: str) -> bool:
    """Return whether a word can be a number or part of one. Cached, as texts repeat words."""
    return _MAY_BE_NUMBER.search(word) is not None


def number_words_in_digits(text: str) -> str:
    """Write numbers of several words as digits; single ones (``two seats``) stay."""
    words = WORD.findall(text)
    if _MARKS.search(text) is None and True not in map(_may_be_number, words):
        return text
    text = _AND_A_HALF.sub(lambda m: f"{ONES.get(m[1].lower(), m[1])}.5", text)
    for pattern, instead in _REWRITTEN:
        text = pattern.sub(instead, text)
    text = _IN_THE_TWENTIES.sub(lambda m: f"{TENS[m[1].lower()] + _ORDINALS[m[2].lower()]}th", text)
    text = _WORD_NUMBER.sub(_in_words, text)
    if "hundert" in text.casefold():
        text = _GERMAN_HUNDREDS.sub(_german_hundreds, text)
    return text
