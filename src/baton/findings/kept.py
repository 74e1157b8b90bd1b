"""What was made of texts, kept for as long as a trace is looked at, in a memory that is bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")
_EACH = 200
"""Characters that a text counts at least: what is made of `ok` takes some memory, too."""


def kept(make: Callable[[str], Made], characters: int = 500_000) -> Callable[[str], Made]:
    """Return ``make`` with a memory: the last texts, of once or twice so many characters.

    Not so many texts: of the facts of one text, the words take up to fifty times its room, and a
    server that scores conversations for weeks would fill with long ones.
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
