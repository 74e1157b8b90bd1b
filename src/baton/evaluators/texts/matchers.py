"""Ways in which one text may match another, each a score from 0 to 1."""

from __future__ import annotations

import unicodedata
from typing import Literal

import msgspec

from baton.formats.patterns import BadPatternError, Pattern, compiled
from baton.model import InputError, Problem

from .rouge import rouge1
from .words import words

Match = Literal["equals", "contains", "regex", "jaccard", "recall", "rouge1"]


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What about a text does not matter; the options that all matchers share."""

    case_sensitive: bool = False
    normalize_whitespace: bool = True

    def fold(self, text: str) -> str:
        """Return what matters of a text; letters with accents are composed (NFC)."""
        text = unicodedata.normalize("NFC", text)
        if not self.case_sensitive:
            text = text.casefold()
        return " ".join(text.split()) if self.normalize_whitespace else text

    def pattern(self, regex: str, path: str = "") -> Pattern:
        """Compile a pattern; raises InputError that names ``path`` when it is none."""
        try:
            return compiled(regex, ignore_case=not self.case_sensitive)
        except BadPatternError as error:
            raise InputError(Problem(path=path, message=f"{regex!r} {error.why}")) from None

    def found_in(self, wanted: str, text: str) -> bool:
        """Tell whether a text holds another; an empty one is found in nothing but itself."""
        wanted, text = self.fold(wanted), self.fold(text)
        return wanted in text if wanted else not text


def match_score(match: Match, expected: str, actual: str, reading: Reading) -> float:
    """Score ``actual`` against ``expected``, 0 to 1.

    ``equals`` and ``contains`` (``actual`` holds ``expected``): 1 or 0. ``regex``: 1 if
    ``expected``, as a pattern, is found anywhere in ``actual`` as it stands. ``jaccard``: words
    in both divided by words in either, as sets. ``recall``: share of the expected words, as a
    set, that are there. ``rouge1``: the F-measure of :func:`~.rouge.rouge1`, which goes by its
    own folding. Where either text is empty, or ``expected`` has no words, only equality counts.

    Raises:
        InputError: ``expected`` is to be a pattern and is none.
    """
    if match == "regex":
        return float(reading.pattern(expected).search(actual) is not None)
    folded, text = reading.fold(expected), reading.fold(actual)
    if match == "equals" or not (folded and text):
        return float(folded == text)
    if match == "contains":
        return float(folded in text)
    wanted, found = set(words(folded)), set(words(text))
    if not wanted:
        return float(folded == text)
    if match == "rouge1":
        return rouge1(expected, actual).fmeasure
    return len(wanted & found) / len(wanted | found if match == "jaccard" else wanted)
