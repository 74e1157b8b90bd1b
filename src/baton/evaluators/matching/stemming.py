"""English words without their endings, so that `refunds` and `refunded` count as one word.

The algorithm of M. F. Porter, "An algorithm for suffix stripping", Program 14 (1980), with the
changes that he published later and those of NLTK (``PorterStemmer``), as the library that Google
ADK measures ROUGE with stems like this. ``tests`` hold the two against each other.

A word is taken for its form: ``c`` for a consonant, ``v`` for a vowel; `toy` is ``cvc``, `syzygy`
is ``cvcvcv``. Its measure is how often a consonant follows a vowel (``vc``): `tree` 0, `trees` 1,
`private` 2. Most endings go only where the measure of what is left is large enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

_LETTERS = str.maketrans(
    {chr(code): "v" if chr(code) in "aeiou" else "c" for code in range(128) if code != ord("y")}
)
_IRREGULAR = {
    "sky": "sky", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "news": "news",
    "inning": "inning", "innings": "inning", "outing": "outing", "outings": "outing",
    "canning": "canning", "cannings": "canning", "howe": "howe", "proceed": "proceed",
    "exceed": "exceed", "succeed": "succeed",
}  # fmt: skip
_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize",
    "bli": "ble", "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize",
    "ation": "ate", "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful",
    "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "fulli": "ful",
    "logi": "log",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4 = dict.fromkeys(
    (
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion",
        "tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize",
    ),
    "",
)  # fmt: skip
_ENDINGS_2, _ENDINGS_3, _ENDINGS_4 = tuple(_STEP_2), tuple(_STEP_3), tuple(_STEP_4)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of a word of ASCII letters and digits in lower case.

    Words of up to three letters stay as they are: that is ROUGE's rule. Stems are kept, as words
    repeat.
    """
    if len(word) <= 3:
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    word = _without_participle(_without_plural(word))
    # `happy` and `happily` meet in `happi`; `say` and `by` keep their y.
    if word[-1] == "y" and len(word) > 2 and _form(word[:-1])[-1] == "c":
        word = word[:-1] + "i"
    word = _derived(word)
    ending = _ending(word, _STEP_3, _ENDINGS_3)
    if ending and _measure(word[: -len(ending)]) > 0:
        word = word[: -len(ending)] + _STEP_3[ending]
    ending = _ending(word, _STEP_4, _ENDINGS_4)
    if ending:
        # Of `adoption` and `decision` goes `ion`, and what was before it stays.
        kept = word[: 1 - len(ending)] if ending in ("sion", "tion") else word[: -len(ending)]
        word = kept if _measure(kept) > 1 else word
    if word[-1] == "e":
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _ends_short(rest)):
            word = rest
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word


def _without_plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]  # `ties`, and `flies`
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word[-1] == "s" and not word.endswith("ss") else word


def _without_participle(word: str) -> str:
    """Take `ed` and `ing` off, and mend what is left: `hopping` is `hop`, `filing` is `file`."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]  # `died`, and `spied`
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    if word.endswith("ed"):
        rest = word[:-2]
    elif word.endswith("ing"):
        rest = word[:-3]
    else:
        return word
    form = _form(rest)
    if "v" not in form:
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if len(rest) > 1 and rest[-1] == rest[-2] and form[-1] == "c":
        return rest if rest[-1] in "lsz" else rest[:-1]
    return rest + "e" if form.count("vc") == 1 and _ends_short(rest) else rest


def _derived(word: str) -> str:
    """Replace an ending that makes another kind of word: `relational` is `relate`."""
    while True:
        ending = _ending(word, _STEP_2, _ENDINGS_2)
        if not ending:
            return word
        # The l of `logi` counts for the measure: `analogi` is shortened, `apologi` as well.
        rest = word[: -len(ending)]
        if _measure(rest + "l" if ending == "logi" else rest) == 0:
            return word
        word = rest + _STEP_2[ending]
        if ending != "alli":  # behind it, one more may go: `operationalli`
            return word


def _ending(word: str, endings: Mapping[str, str], all_of_them: tuple[str, ...]) -> str:
    """Return the longest of some endings (of 2 to 7 letters) that a word has; empty for none."""
    if word.endswith(all_of_them):  # most have none, which this tells at once
        for length in range(min(7, len(word)), 1, -1):
            if word[-length:] in endings:
                return word[-length:]
    return ""


def _form(word: str) -> str:
    form = word.translate(_LETTERS)
    if "y" in form:
        # A y is a consonant at the start and after a vowel: both in `yoyo`, and not in `sky`.
        letters: list[str] = []
        for letter in form:
            if letter == "y":
                letter = "v" if letters and letters[-1] == "c" else "c"  # noqa: PLW2901
            letters.append(letter)
        form = "".join(letters)
    return form


def _measure(word: str) -> int:
    return _form(word).count("vc")


def _ends_short(word: str) -> bool:
    """Tell what ends like `hop` (not in w, x or y), or is like `us`: an e may have been there."""
    form = _form(word)
    return form == "vc" or (form.endswith("cvc") and word[-1] not in "wxy")
