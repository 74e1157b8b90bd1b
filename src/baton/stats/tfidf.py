"""Represent texts as TF-IDF vectors of their words, to compare them and find their main words.

``weight = (1 + ln tf) * (ln((1 + n) / (1 + df)) + 1)``, each vector with the length 1: G. Salton
and C. Buckley, "Term-weighting approaches in automatic text retrieval", Information Processing &
Management 24 (1988), with the smoothed IDF and the sublinear TF of scikit-learn. The product of
two vectors is the cosine between them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

Vector = dict[int, float]
"""The weight of each word, by the number of the word; weights of 0 are left out."""

# Words of two letters or more: single letters, numbers and signs are in nearly all texts and do not
# distinguish them. Chinese, Japanese and Thai have no spaces between words: there, two neighbouring
# letters are used as a word, as usual in retrieval.
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]{{2,}}|(?:(?![{_UNSPACED}])[^\W\d_]){{2,}}")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_ENDINGS = ("edly", "ing", "ies", "ed", "es", "ly", "s")
_LONGEST = 60
"""The maximum letters of a word; longer strings, such as base64, are ignored."""


def words(text: str, stop: Collection[str] = ()) -> list[str]:
    """Return the words of a text in lower case and without the most common endings.

    ``stop`` are words to leave out, in the form before endings are removed.
    """
    terms: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if _IS_UNSPACED.match(word):
            terms += [word[at : at + 2] for at in range(len(word) - 1)]
        elif word not in stop and len(word) <= _LONGEST:
            terms.append(stem(word))
    return terms


def stem(word: str) -> str:
    """Remove the most common endings: `refunded` and `refunds` become `refund`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


class TfIdf(msgspec.Struct, frozen=True, kw_only=True):
    """The words of some texts, numbered, with the weight of each: plain data."""

    number: dict[str, int]
    idf: list[float]

    def vector(self, terms: Iterable[str]) -> Vector:
        """Return the vector of a text from its words; unknown words are ignored."""
        counts = Counter(number for term in terms if (number := self.number.get(term)) is not None)
        raw = {number: (1 + math.log(n)) * self.idf[number] for number, n in counts.items()}
        length = math.sqrt(math.fsum(weight * weight for weight in raw.values()))
        return {number: weight / length for number, weight in raw.items()} if length else {}


def fit(texts: Sequence[Sequence[str]], *, least: int = 1, most: int | None = None) -> TfIdf:
    """Compute the weights of the words of some texts.

    Args:
        texts: the words of each text.
        least: leave out words that occur in fewer texts.
        most: keep only this number of words, those that occur in the most texts.
    """
    among = Counter(term for text in texts for term in set(text))
    kept = [term for term, df in among.items() if df >= least]
    if most is not None and len(kept) > most:
        kept = sorted(kept, key=lambda term: (-among[term], term))[:most]
    n = len(texts)
    terms = sorted(kept)
    return TfIdf(
        number={term: number for number, term in enumerate(terms)},
        idf=[math.log((1 + n) / (1 + among[term])) + 1 for term in terms],
    )


def cosine(first: Mapping[int, float], second: Mapping[int, float]) -> float:
    """Return the similarity of two vectors: 1 for equal word frequencies, 0 for no common word."""
    if len(first) > len(second):
        first, second = second, first
    return math.fsum(weight * second[n] for n, weight in first.items() if n in second)
