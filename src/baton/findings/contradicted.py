"""Values of a result that the final answer gives otherwise, under the same label."""

from __future__ import annotations

import re
from typing import NamedTuple

from baton.model import Said, Turn
from baton.model.views import RoundTrip

from .common_words import COMMON, UNITS
from .facts import plain_text, read
from .numbers import NUMBER, number_keys

_STATED = re.compile(
    rf"(?<![\w-])(?P<label>[^\W\d][\w-]{{0,60}})\s?(?:\(\))?\s?(?::|=|\bis\b|\bare\b|\bwas\b|\bwere\b|\bcosts?\b|"
    rf"\bist\b|\bkostet\b|\best\b|\bcoûte\b|\bes\b|\bcuesta\b)\s?(?:now\s|only\s|still\s)?"
    rf"(?P<sign>[$€£¥]?)\s?(?P<value>{NUMBER})(?![\w:/-])(?P<unit>\s?%|\s?[^\W\d]+)?"
)


class Contradiction(NamedTuple):
    """What is said against what, and the answer's words."""

    says: str
    quote: str


def contradictions(trip: RoundTrip, result: str, turn: Turn) -> list[Contradiction]:
    """Compare ``label: number`` statements of a result with those of the turn's answer.

    Only where the caller did nothing in between that may have changed the value, and the
    answer does not give the result's value as well.
    """
    if turn.output is None or any(not isinstance(step, Said) for step in trip.after):
        return []
    answer = plain_text(turn.output)
    numbers = read(answer).keys
    stated = _statements(answer)
    found = []
    for (label, unit), value in _statements(result).items():
        other = stated.get((label, unit))
        if other is not None and not number_keys(value) & numbers:
            says = f"the result says {label} {value}, the answer {other}"
            found.append(Contradiction(says, answer[:120]))
    return found


def _statements(text: str) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for match in _STATED.finditer(text):
        label = match["label"].casefold()
        if label not in COMMON:
            after = (match["unit"] or "").strip().casefold()
            unit = match["sign"] or (after if after in UNITS or after == "%" else "")
            found.setdefault((label, unit), match["value"])
    return found
