"""Shortens texts for prompts, and shares a limit between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NOTE = 64
"""The most characters of a note, with its line ends and indents: shortening a shorter text is
useless, as `⟨... 12345678 characters left out here ...⟩` is no shorter.
"""


class Clipped(NamedTuple):
    """A text, and how many characters of it were left out."""

    text: str
    cut: int = 0


def clip(text: str, keep: int, indent: str = "\n") -> Clipped:
    """Shorten a text to ``keep`` characters, without the note.

    The note is surrounded by ``indent``, so that neither it nor the following text looks like part
    of the line above: a line end and the indent of the text, or a space within a line. Its brackets
    are those of Baton's marks (``fence``), which no material can contain.
    """
    if len(text) <= keep:
        return Clipped(text)
    # Two thirds from the start and one third from the end: requests start with what is wanted, and
    # answers and errors often end with what counts.
    head = keep - keep // 3
    tail = keep - head
    cut = len(text) - keep
    note = f"{indent}⟨... {cut} characters left out here ...⟩{indent}"
    return Clipped(text[:head] + note + (text[-tail:] if tail else ""), cut)


def shares(wanted: Sequence[int], limit: int) -> list[int]:
    """Share a limit: small requests are met in full, the others get equal shares."""
    most, left = max(wanted, default=0), max(0, limit)
    for place, length in enumerate(sorted(wanted)):
        share = left // (len(wanted) - place)
        if length > share:
            most = share
            break
        left -= length
    return [min(length, most) for length in wanted]
