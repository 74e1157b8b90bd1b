"""Long texts, shortened in the middle, and how much of a limit each of several may take.

Of a text that is too long the first two thirds of what may stay are kept and the last third, and a
note between them says how many characters are left out. Where several texts share a limit, the
short ones stay whole and the long ones are shortened to the same length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NOTE = 64
"""Characters that a note takes at most, with its line ends and indents: no shorter text is worth
shortening, as `⟨... 12345678 characters left out here ...⟩` is no shorter."""


class Clipped(NamedTuple):
    """A text, and how many characters of it were left out."""

    text: str
    cut: int = 0


def clip(text: str, keep: int, indent: str = "\n") -> Clipped:
    """Shorten a text to ``keep`` characters, the note apart.

    The note stands between ``indent``, so that neither it nor what follows can pass for a line
    above it: a line end and the indent of the text, or a space within a line. Its brackets are
    those of marks of ours (``fence``), which no material can hold.
    """
    if len(text) <= keep:
        return Clipped(text)
    head = keep - keep // 3
    tail = keep - head
    cut = len(text) - keep
    note = f"{indent}⟨... {cut} characters left out here ...⟩{indent}"
    return Clipped(text[:head] + note + (text[-tail:] if tail else ""), cut)


def shares(wanted: Sequence[int], limit: int) -> list[int]:
    """Share a limit: who wants little gets it, the others get as much as one another."""
    most, left = max(wanted, default=0), max(0, limit)
    for place, length in enumerate(sorted(wanted)):
        share = left // (len(wanted) - place)
        if length > share:
            most = share
            break
        left -= length
    return [min(length, most) for length in wanted]
