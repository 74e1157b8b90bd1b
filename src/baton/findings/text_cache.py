"""A cache for results computed from texts, bounded by the number of characters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")
# Characters of text from which a cache makes room: the facts of a text take up to fifty times its
# size, here 25 MB, and up to twice that.
KEPT_CHARACTERS = 500_000
_EACH = 200
"""The minimum that a text counts as, in characters: even the result for `ok` takes memory."""


def kept_size(text: str) -> int:
    """Return how many characters a text counts as."""
    return max(_EACH, len(text))


def text_cached(
    make: Callable[[str], Made], characters: int = KEPT_CHARACTERS
) -> Callable[[str], Made]:
    """Return ``make`` with a cache of the last texts.

    The cache holds one to two times this many characters. A limit on the number of texts would be
    no bound: the facts of a text take up to fifty times its size, and a server that scores
    conversations for weeks would keep the long ones.
    """
    new: dict[str, Made] = {}
    old: dict[str, Made] = {}
    room = characters

    def made_of(text: str) -> Made:
        nonlocal new, old, room
        value = new.get(text)
        if value is not None:
            return value
        value = old.get(text)
        if value is None:
            value = make(text)
        if room <= 0:
            new, old, room = {}, new, characters
        new[text] = value
        room -= kept_size(text)
        return value

    return made_of
