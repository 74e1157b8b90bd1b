"""ROUGE-1: how many words two texts share, by their stems; and what counts as a word.

It gives the values of the package ``rouge-score``, whose stemmer it uses, for ASCII texts. Words of
other scripts count as well, which that package drops.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

from baton.model import InputError
from baton.plugins.origin import install, requirement

# Scripts without spaces in which each character is a word: kana, CJK ideographs, Hangul syllables.
_WORD_EACH = ((0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF))
# Scripts without spaces whose marks belong to the letter before: Thai, Lao, Myanmar, Khmer.
_UNSPACED = ((0x0E00, 0x0E7F), (0x0E80, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))


class _Spacing(dict[int, str]):
    """The replacement for a character (by code point) that puts white space between words."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        mark = unicodedata.category(char).startswith("M")
        if any(first <= code <= last for first, last in _WORD_EACH):
            char = f" {char} "
        elif not mark and any(first <= code <= last for first, last in _UNSPACED):
            char = f" {char}"
        elif not mark and not char.isalnum():
            char = " "
        self[code] = char
        return char


_SPACING = _Spacing()


def words(text: str) -> list[str]:
    """Return the words of a text in order, with their case. Other characters only separate them.

    A word is a run of letters, digits and combining marks. Each CJK ideograph, kana or Hangul
    syllable is a word. A Thai, Lao, Khmer or Myanmar letter starts a new word.
    """
    return text.translate(_SPACING).split()


class Rouge(NamedTuple):
    """Precision, recall and F-measure, each 0 to 1."""

    precision: float
    recall: float
    fmeasure: float


def require_rouge() -> None:
    """Raise InputError if the library that stems words is not installed."""
    if importlib.util.find_spec("rouge_score") is None:
        raise InputError(f"ROUGE needs rouge-score: {install(requirement('text'))}")


def rouge1(expected: str, actual: str) -> Rouge:
    """Compare the tokens of two texts, in any order.

    A token counts as often as it occurs in both. Precision is the share of the actual tokens that
    are in both, recall the share of the expected tokens, and F their harmonic mean. All are 0 if
    either text, or both, has no tokens.
    """
    expected_words, actual_words = _folded_words(expected), _folded_words(actual)
    wanted, made = Counter(expected_words), Counter(actual_words)
    # Each word is one token, and equal words have equal stems. Only words in just one of the texts
    # ("refund", "refunds") have to be stemmed, which is slow.
    wanted_of, made_of = wanted.get, made.get
    missing = {word: left for word, n in wanted.items() if (left := n - made_of(word, 0)) > 0}
    extra = {word: left for word, n in made.items() if (left := n - wanted_of(word, 0)) > 0}
    overlap = len(expected_words) - sum(missing.values())
    both_begin = set(map(_beginning, missing)) & set(map(_beginning, extra))
    if both_begin:
        overlap += (_stems(missing, both_begin) & _stems(extra, both_begin)).total()
    precision = overlap / max(len(actual_words), 1)
    recall = overlap / max(len(expected_words), 1)
    both = precision + recall
    return Rouge(precision, recall, 2 * precision * recall / both if both > 0 else 0.0)


def _folded_words(text: str) -> list[str]:
    return words((text if text.isascii() else unicodedata.normalize("NFKC", text)).lower())


@lru_cache(maxsize=1 << 16)
def _beginning(word: str) -> str:
    """Return the beginning of a word: only words that begin alike can have the same stem.

    It is two letters, since every stem keeps at least two, apart from `i` for `y` ("dying" and
    "dies" have the stem `die`). Only a few strings that are not words, such as "oing", keep one.
    """
    return word[0] if _LEAVES_ONE(word) else word[:2].replace("y", "i")


_LEAVES_ONE = re.compile(r"[aeiou](?:ings?|eds)\Z").match


def _stems(counts: dict[str, int], beginnings: Set[str]) -> Counter[str]:
    """Count the stems of counted words with certain beginnings."""
    stems: Counter[str] = Counter()
    for word, count in counts.items():
        if _beginning(word) in beginnings:
            stems[_stem(word)] += count
    return stems


# Every rule of the stemmer removes one of these endings (`relational` ends in `al`, `hopefulness`
# in `s`, `fluenci` in `ci`). A word with none of them ("refund", "book", "taxi") is its own stem,
# and needs no stemmer.
_HAS_ENDING = re.compile(
    r"(?:[eys]|[cglt]i|al|ant|ator|ed|ent|er|ful|ic|ing|ion|ism|ll|ou)\Z"
).search


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    """Stem a word of ASCII letters and digits, and leave others unchanged. Cached: words repeat."""
    if _HAS_ENDING(word) is None or not word.isascii():
        return word
    return str(_tokenizer().tokenize(word)[0])


@cache
def _tokenizer() -> Any:
    with _without_init("nltk", "nltk.stem"):
        from rouge_score.tokenizers import DefaultTokenizer

    return DefaultTokenizer(use_stemmer=True)


@contextmanager
def _without_init(*packages: str) -> Iterator[None]:
    """Import modules of packages without running the packages' own imports.

    ``import nltk`` imports SciPy's statistics, which takes over a second and 100 MiB. The stemmer
    is a module that needs none of that. Afterwards the packages count as not imported, so a program
    that imports them gets them in full. Packages that were imported before are used as they are.
    """
    if any(name in sys.modules for name in packages):
        yield
        return
    path: Sequence[str] | None = None
    for name in packages:
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            break  # the import reports what is missing
        sys.modules[name] = package = importlib.util.module_from_spec(spec)
        path = package.__path__
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == packages[0]]:
            del sys.modules[name]
