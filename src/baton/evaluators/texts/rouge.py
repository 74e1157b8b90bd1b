"""ROUGE-1 as Google ADK 2.13 reckons it: words of any script, English ones stemmed.

ROUGE is from Lin, "ROUGE: A Package for Automatic Evaluation of Summaries" (2004). Tokens of
English words are those of the ``rouge-score`` library, which takes Porter's stemmer from nltk.
"""

from __future__ import annotations

import importlib.util
import unicodedata
from collections import Counter
from functools import cache, lru_cache
from typing import Any, NamedTuple

from baton.model import InputError

from .words import words


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
