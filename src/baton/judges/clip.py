"""Long material, cut in the middle.

The rule: of a text longer than its limit (in characters), the first two thirds of the limit and
the last third stay, and a note between them says how many characters are left out. Where several
texts share one limit, the short ones stay whole and the long ones are cut to the same length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Clipped(NamedTuple):
    """A text, and how many characters of it were left out."""

    text: str
    cut: int = 0


def clip(text: str, limit: int) -> Clipped:
    """Cut a text to ``limit`` characters, the note apart."""
    if len(text) <= limit:
        return Clipped(text)
    head = limit - limit // 3
    tail = limit - head
    cut = len(text) - limit
    note = f"\n[... {cut} characters left out here ...]\n"
    return Clipped(text[:head] + note + (text[-tail:] if tail else ""), cut)


def clip_all(texts: Sequence[str], limit: int) -> list[Clipped]:
    """Cut texts so that together they have ``limit`` characters, the notes apart."""
    most = _most(sorted(map(len, texts)), limit)
    return [clip(text, most) for text in texts]


def _most(lengths: Sequence[int], limit: int) -> int:
    """Return the length to which texts may go, given theirs from the shortest on."""
    left = limit
    for place, length in enumerate(lengths):
        share = max(0, left) // (len(lengths) - place)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)
