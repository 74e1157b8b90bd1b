"""What values have to share to be the same, as tokens for an index.

For each way to compare: ``held`` gives the tokens of an actual argument, ``needed`` groups of
tokens of an expected one. A value that is the same holds at least one token of every group;
that it does is no proof yet.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any

from .values import folded, identity, number, words

Token = tuple[Hashable, ...]
Path = tuple[str | int, ...]
Group = list[Token]

_AS_JSON = frozenset({"exact", "subset", "superset", "equal"})
INDEXED = _AS_JSON | {"tolerant", "similar", "regex"}
"""The ways to compare that tokens are known for."""

_BUCKET = 4e-6
_LEAST = 1e-6
_PATTERN_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[^}]*\}|\(\?:|\(\?|.", re.DOTALL)


def held(way: str, argument: str, value: Any) -> Iterator[Token]:
    """Yield the tokens of an actual value."""
    for path, leaf in _leaves(value, (argument,)):
        if way in _AS_JSON or (way == "regex" and not isinstance(leaf, str)):
            yield (path, identity(leaf))
        elif way == "regex":
            yield from ((path, each) for each in _trigrams(leaf))
        else:
            yield from _meaning(path, leaf, spread=0)
            if way == "similar" and isinstance(leaf, str):
                found = words(leaf)
                yield from ((path, "word", len(found), *word) for word in found)


def needed(
    way: str, argument: str, value: Any, similarity: float, count: Callable[[Token], int]
) -> Iterator[Group]:
    """Yield groups of tokens of an expected value; ``count`` says how many hold a token."""
    for path, leaf in _leaves(value, (argument,)):
        if way in _AS_JSON or (way == "regex" and not isinstance(leaf, str)):
            yield [(path, identity(leaf))]
        elif way == "regex":
            for each in _trigrams(required_text(leaf)):
                yield [(path, each)]
        elif way == "similar" and isinstance(leaf, str):
            # From 0 on, texts that share no word are similar as well.
            if similarity > _LEAST:
                rare = _rare_words(path, leaf, similarity, count)
                yield [*_meaning(path, leaf, spread=1), *rare]
        elif leaf is not None:
            yield list(_meaning(path, leaf, spread=1))


def required_text(pattern: str) -> str:
    """Return a text that all matches of a pattern hold, a long one; empty when unclear.

    Alternatives, flags and assertions make it unclear. What may be repeated no time at all is
    left out, a group as a whole.
    """
    runs = [""]
    groups: list[int] = []
    closed: int | None = None
    for part in _PATTERN_PART.findall(pattern):
        if part in ("|", "(?"):
            return ""
        if part[0] in "*?{":
            runs[-1] = runs[-1][:-1]
            runs = [*(runs if closed is None else runs[:closed]), ""]
        elif part[0] == "(":
            groups.append(len(runs))
            runs.append("")
        elif part[0] in ")[.^$+" or (part[0] == "\\" and part[1].isalnum()):
            runs.append("")
        else:
            runs[-1] += part[-1]
        closed = groups.pop() if part == ")" and groups else None
    return max(runs, key=len)


def _rare_words(
    path: Path, text: str, least: float, count: Callable[[Token], int]
) -> Iterator[Token]:
    """Yield, for each number of words, the rarest that a similar text has at least one of.

    Texts of m and n words whose Dice coefficient is at least s share s * (m + n) / 2 words
    (prefix filter of set-similarity joins: S. Chaudhuri et al., ICDE 2006).
    """
    own = words(text)
    for length in range(math.ceil(len(own) * least / (2 - least) - _LEAST), _longest(own, least)):
        shared = max(1, math.ceil(least * (len(own) + length) / 2 - _LEAST))
        sized: Group = [(path, "word", length, *word) for word in own]
        sized.sort(key=lambda token: (count(token), token))
        yield from sized[: len(own) - shared + 1]


def _longest(own: Collection[Any], least: float) -> int:
    """Return how many words a similar text stays below."""
    return math.floor(len(own) * (2 - least) / least + _LEAST) + 1


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _leaves(each, (*path, place))
    else:
        yield path, value


def _meaning(path: Path, leaf: Any, spread: int) -> Iterator[Token]:
    """Yield tokens of a value compared tolerantly: numbers by nearby orders of magnitude."""
    size = number(leaf)
    if size is not None:
        bucket = math.floor(math.log(abs(size)) / _BUCKET) if size else 0
        sign = (size > 0) - (size < 0)
        yield from ((path, "number", sign, bucket + step) for step in range(-spread, spread + 1))
    elif isinstance(leaf, str):
        yield (path, "text", folded(leaf))
    elif leaf is not None:
        yield (path, identity(leaf))


def _trigrams(text: str) -> Collection[str]:
    return dict.fromkeys(text[place : place + 3] for place in range(len(text) - 2))
