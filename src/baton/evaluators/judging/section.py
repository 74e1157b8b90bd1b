"""What a judge is shown, input by input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .texts import Piece


class Section(NamedTuple):
    """One input as the judge sees it: its name, heading and text; or why it is not known.

    What is ``whole`` is never cut.
    """

    name: str
    title: str
    text: str
    pieces: Sequence[Piece] = ()
    missing: bool = False
    whole: bool = False
