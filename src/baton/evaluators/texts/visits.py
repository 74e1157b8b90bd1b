"""Which runs of an agent had the says that are expected of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

Fits = Callable[[Sequence[str], Sequence[str]], bool]


class _Stretch(NamedTuple):
    """Texts of one run, ``start`` texts (of all runs) before them; ``whole``: all it said."""

    run: int
    start: int
    texts: Sequence[str]
    whole: bool


class _Found(NamedTuple):
    """How many visits are met, the run that the last one was given, and what came before."""

    met: int
    run: int | None = None
    before: _Found | None = None


def assign(
    visits: Sequence[Sequence[str]], runs: Sequence[Sequence[str]], fits: Fits
) -> list[int | None]:
    """Give each visit of one agent a run that met it, in order; ``None`` where none is left.

    ``visits`` holds the texts expected of each, ``runs`` those that each run said, and ``fits``
    tells whether the latter meet the former. As many visits as can be are met. A visit has a
    run to itself, or one text of a run, so that a run which spoke twice can meet two visits;
    one that expects no text needs a run to itself. Takes O(visits * texts).
    """
    ends = _stretches(runs)
    row = [_Found(0)] * len(ends)
    for visit in visits:
        above, row = row, []
        for end, stretches in enumerate(ends):
            options = [_Found(above[end].met, None, above[end])]
            options += row[-1:]
            options += [
                _Found(above[s.start].met + 1, s.run, above[s.start])
                for s in stretches
                if (visit or s.whole) and fits(visit, s.texts)
            ]
            row.append(max(options, key=lambda found: found.met))
    return _unwound(row[-1])


def _unwound(found: _Found) -> list[int | None]:
    given: list[int | None] = []
    while found.before is not None:
        given.append(found.run)
        found = found.before
    return given[::-1]


def _stretches(runs: Sequence[Sequence[str]]) -> list[list[_Stretch]]:
    """Return, for each number of texts from 0 on, what a visit that ends there may stand for."""
    ends: list[list[_Stretch]] = [[]]
    for number, texts in enumerate(runs):
        first = len(ends) - 1
        for place, text in enumerate(texts or [""]):
            ends.append([_Stretch(number, first + place, [text], False)])
        ends[-1].append(_Stretch(number, first, texts, True))
    return ends
