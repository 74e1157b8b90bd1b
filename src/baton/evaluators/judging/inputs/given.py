"""An input of a rubric, and what it is answered with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from baton.evaluators.judging.subject import Subject
from baton.evaluators.judging.texts import Piece
from baton.model import Unit


class Given(NamedTuple):
    """What is known, piece by piece; none says that there is nothing."""

    pieces: Sequence[Piece]


class Missing(NamedTuple):
    """Why it is not known, and what would supply it; ``unstated``: a case may leave it out."""

    says: str
    unstated: bool = False


class Input(NamedTuple):
    """An input: its heading for the judge, the units that have it, and where it comes from.

    ``none`` is what the judge is told where there is nothing; without it such a subject cannot
    be judged.
    """

    title: str
    units: tuple[Unit, ...]
    find: Callable[[Subject], Given | Missing]
    summary: str
    none: str | None = None


def given(*pieces: Piece) -> Given:
    """Give the pieces that hold a text."""
    return Given([piece for piece in pieces if piece.text.strip()])
