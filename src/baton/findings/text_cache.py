"""A cache of what is made of texts, whose memory is bounded by characters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")
_EACH = 200
"""Characters that a text counts at least: what is made of `ok` takes some memory, too."""


def text_cached(make: Callable[[str], Made], characters: int = 500_000) -> Callable[[str], Made]:
    """Return ``make`` with a cache of the last texts, once to twice so many characters of them.

    A number of texts would be no bound: the facts of a text take up to fifty times its size, and a
    server that scores conversations for weeks would keep the long ones.
    """
    new: dict[str, Made] = {}
    old: dict[str, Made] = {}
    room = characters

    def made_of(text: str) -> Made:
        nonlocal new, old, room
        found = new.get(text)
        if found is not None:
            return found
        found = old.get(text)
        if found is None:
            found = make(text)
        if room <= 0:
            new, old, room = {}, new, characters
        new[text] = found
        room -= max(_EACH, len(text))
        return found

    return made_of
