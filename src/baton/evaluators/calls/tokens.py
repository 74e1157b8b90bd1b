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
                yield from ((path, "word", each) for each in words(leaf))


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
            tokens: Group = [(path, "word", each) for each in words(leaf).elements()]
            # From 0 on, texts that share no word are similar as well.
            if similarity > 1e-6:
                yield [*_meaning(path, leaf, spread=1), *_rarest(tokens, similarity, count)]
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


def _rarest(tokens: Group, similarity: float, count: Callable[[Token], int]) -> Collection[Token]:
    """Return so many of the rarest words that a text without any of them is not similar.

    Shared words are at least ``s / (2 - s)`` of the expected ones for a Dice coefficient of
    ``s`` (prefix filter of set-similarity joins: S. Chaudhuri et al., ICDE 2006).
    """
    shared = math.ceil(similarity / (2 - similarity) * len(tokens) - 1e-6)
    rarest = sorted(tokens, key=lambda token: (count(token), token))
    return dict.fromkeys(rarest[: len(tokens) - max(shared, 1) + 1])


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
