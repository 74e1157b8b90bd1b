"""ROUGE-1 as Google ADK 2.13 computes it: words of any script, English ones stemmed."""

from __future__ import annotations

import importlib.util
import unicodedata
from collections import Counter
from functools import cache, lru_cache
from typing import Any, NamedTuple

from baton.model import InputError

# Written without spaces, and each character a word: kana, CJK ideographs, Hangul syllables.
_WORD_EACH = ((0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF))
# Written without spaces, with marks that belong to the letter before: Thai, Lao, Myanmar, Khmer.
_UNSPACED = ((0x0E00, 0x0E7F), (0x0E80, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))


class _Spacing(dict[int, str]):
    """What to write for a character (by code point) so that white space parts the words."""

    def __missing__(self, code: int) -> str:
        made = self[code] = _spaced(chr(code))
        return made


def _spaced(char: str) -> str:
    code = ord(char)
    if any(first <= code <= last for first, last in _WORD_EACH):
        return f" {char} "
    mark = unicodedata.category(char).startswith("M")
    if not mark and any(first <= code <= last for first, last in _UNSPACED):
        return f" {char}"
    return char if mark or char.isalnum() else " "


_SPACING = _Spacing()


def words(text: str) -> list[str]:
    """Return the words of a text in order, their case as it is; all else only parts them.

    A word is a run of letters, digits and combining marks. A CJK ideograph, kana or Hangul
    syllable is a word each; a Thai, Lao, Khmer or Myanmar letter starts one.
    """
    return text.translate(_SPACING).split()


class Rouge(NamedTuple):
    """Precision, recall and F-measure, each 0 to 1."""

    precision: float
    recall: float
    fmeasure: float


def require_rouge() -> None:
    """Raise InputError when the library that stems words is not installed."""
    if importlib.util.find_spec("rouge_score") is None:
        raise InputError("ROUGE needs rouge-score: pip install 'baton-evals[text]'")


def rouge_tokens(text: str) -> list[str]:
    """Return the tokens of a text: NFKC, lower case, words of ASCII letters stemmed."""
    return [token for word in _folded_words(text) for token in _stemmed(word)]


def rouge1(expected: str, actual: str) -> Rouge:
    """Compare the tokens of two texts, in any order.

    A token counts as often as it stands in both. Precision is the share of the actual tokens
    that were found, recall that of the expected ones, F their harmonic mean; 0 when either
    text has no tokens, also when both have none.
    """
    wanted, found = _counts(expected), _counts(actual)
    overlap = sum(min(count, found[token]) for token, count in wanted.items() if token in found)
    precision = overlap / max(found.total(), 1)
    recall = overlap / max(wanted.total(), 1)
    both = precision + recall
    return Rouge(precision, recall, 2 * precision * recall / both if both > 0 else 0.0)


def _counts(text: str) -> Counter[str]:
    """Count the tokens of a text; each word is looked up once, however often it stands there."""
    counts: Counter[str] = Counter()
    for word, count in Counter(_folded_words(text)).items():
        for token in _stemmed(word):
            counts[token] += count
    return counts


def _folded_words(text: str) -> list[str]:
    return words(unicodedata.normalize("NFKC", text).lower())


@lru_cache(maxsize=1 << 16)
def _stemmed(word: str) -> tuple[str, ...]:
    """Stem a word of ASCII letters and digits; leave others alone. Words repeat, so keep them."""
    return tuple(_tokenizer().tokenize(word)) if word.isascii() else (word,)


@cache
def _tokenizer() -> Any:
    from rouge_score.tokenizers import DefaultTokenizer

    return DefaultTokenizer(use_stemmer=True)
