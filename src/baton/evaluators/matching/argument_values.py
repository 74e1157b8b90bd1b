"""Decides whether two argument values count as the same. Values are JSON, or `ABSENT`."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import msgspec

from baton.formats.patterns import compiled
from baton.model.score import passes

Word = tuple[str, int]
"""A word, and the number of its occurrences so far, including this one."""

ABSENT = msgspec.UNSET
"""The value of an argument that a call does not have."""

# `"42"` equals 42 in a tolerant comparison. `"007"` and `"+49"` are identifiers and telephone
# numbers, so a text that JSON would not write as a number is not a number.
_JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?", re.ASCII)
_WORD = re.compile(r"\w+")
# Short texts repeat ("EUR", an order number), so their words are cached. Long ones are mostly
# unique, and would take the memory.
_SHORT_TEXT = 400
# A number beyond these limits is of no use, and Python refuses to convert it.
_LONGEST_NUMBER = 300
_LARGEST_FLOAT = 1e300


def identity(value: Any, *, flags_apart: bool = True) -> Hashable:
    """Return a key that is equal for two JSON values exactly if the values are equal.

    Whole numbers equal the same floats (``1 == 1.0``). ``flags_apart`` keeps true and false
    distinct from 1 and 0. Without it, values compare as in Python. Lists and flags carry a tag,
    because a bare tuple could be either.
    """
    if isinstance(value, dict):
        return frozenset(
            (key, identity(each, flags_apart=flags_apart)) for key, each in value.items()
        )
    if isinstance(value, list | tuple):
        return ("list", *(identity(each, flags_apart=flags_apart) for each in value))
    if flags_apart and isinstance(value, bool):
        return ("flag", str(value))
    return value  # type: ignore[no-any-return]


def equal(expected: Any, actual: Any) -> bool:
    """Compare as JSON: ``1 == 1.0``, but neither is ``true``."""
    return bool(expected == actual) and _flags_agree(expected, actual)


_NESTED = frozenset({dict, list, tuple})


def _flags_agree(one: Any, other: Any) -> bool:
    """Return whether equal values have flags in the same places: in Python, true equals 1."""
    if isinstance(one, dict):
        for key, value in one.items():
            kind = type(value)
            if kind in _NESTED:
                if not _flags_agree(value, other[key]):
                    return False
            elif kind is not str and (kind is bool) != (type(other[key]) is bool):
                return False
        return True
    if isinstance(one, list | tuple):
        return all(map(_flags_agree, one, other))
    return (type(one) is bool) == (type(other) is bool)


def tolerant(expected: Any, actual: Any) -> bool:
    """Compare meaning, not notation.

    Texts compare without regard to case, white space and character form (NFKC). A number written
    as text equals the number. Numbers with a fraction compare to 1e-6 relative, whole numbers
    exactly. Lists compare item by item. An absent key equals null.
    """
    expected, actual = _null_for_absent(expected), _null_for_absent(actual)
    if isinstance(expected, dict) and isinstance(actual, dict):
        keys = {**expected, **actual}
        return all(tolerant(expected.get(key), actual.get(key)) for key in keys)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(tolerant, expected, actual))
    if isinstance(expected, str) and isinstance(actual, str):
        return folded(expected) == folded(actual)
    one, other = number(expected), number(actual)
    if one is None or other is None:
        return type(expected) is type(actual) and bool(expected == actual)
    whole = isinstance(one, int) and isinstance(other, int)
    if whole or abs(one) > _LARGEST_FLOAT or abs(other) > _LARGEST_FLOAT:
        return one == other
    return math.isclose(one, other, rel_tol=1e-6)


def contains(part: Any, whole: Any) -> bool:
    """Return whether ``whole`` contains the mappings of ``part``, including nested ones."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and contains(each, whole[key]) for key, each in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(contains, part, whole))
    return equal(part, whole)


def matches(expected: Any, actual: Any) -> bool:
    """Search actual texts for expected texts as patterns. Compare the rest by :func:`contains`."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(key in actual and matches(each, actual[key]) for key, each in expected.items())
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(matches, expected, actual))
    if isinstance(expected, str):
        return isinstance(actual, str) and compiled(expected).search(actual) is not None
    return equal(expected, actual)


def similar(expected: Any, actual: Any, least: float) -> bool:
    """Compare texts by :func:`text_similarity`, at least ``least``, and the rest tolerantly.

    In a mapping, only the expected keys are compared.
    """
    if isinstance(expected, str) and isinstance(actual, str):
        return passes(text_similarity(expected, actual), least)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(similar(each, actual.get(key), least) for key, each in expected.items())
    if isinstance(expected, list) and isinstance(actual, list):
        pairs = zip(expected, actual, strict=False)
        return len(expected) == len(actual) and all(similar(e, a, least) for e, a in pairs)
    return tolerant(expected, actual)


def text_similarity(one: str, other: str) -> float:
    """Return the share of common words: 2 * shared / (words of one + words of the other).

    This is the Dice coefficient over the words of the folded texts, with repeats, from 0 to 1.
    """
    left, right = words(one), words(other)
    if not left and not right:
        return float(folded(one) == folded(other))
    return 2 * len(left & right) / (len(left) + len(right))


def words(text: str) -> frozenset[Word]:
    """Return the words of a text (letters, digits, underscores), folded, repeats numbered."""
    return _words_once(text) if len(text) <= _SHORT_TEXT else _words(text)


def _words(text: str) -> frozenset[Word]:
    counts: Counter[str] = Counter()
    parts = []
    for word in _WORD.findall(folded(text)):
        counts[word] += 1
        parts.append((word, counts[word]))
    return frozenset(parts)


# Cached because a text is compared with many others. Long texts are not cached.
_words_once = lru_cache(maxsize=16384)(_words)


def folded(text: str) -> str:
    """Remove differences in case, white space and character form."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def number(value: Any) -> int | float | None:
    """Return a number, also from text in JSON notation, or ``None``. Whole numbers are int."""
    if isinstance(value, str):
        text = folded(value)
        if len(text) > _LONGEST_NUMBER or not _JSON_NUMBER.fullmatch(text):
            return None
        value = float(text) if "." in text or "e" in text else int(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() else value
    return value


def _null_for_absent(value: Any) -> Any:
    return None if value is ABSENT else value
