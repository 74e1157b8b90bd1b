"""Refuses a candidate that contains text of held-out cases: it would be tested on what it knows."""

from __future__ import annotations

import re
from collections.abc import Iterable

from baton.evaluators.matching.rouge import words

_RUN = 6
"""A shared run of this many words is not chance. Runs that two English texts share by chance are
shorter, and phrases of any request (`I would like to return my`) are in a train case or the old
text as well."""


_WHOLE = 4
"""A text with at least this many words counts as a whole: `cancel my gold membership`. A shorter
one could be a topic that an instruction names: `refund my order`."""


_TELLING = re.compile(r"\b(?=[\w\-]*\d)\w[\w\-]{3,}\w|[\w.+\-]+@[\w\-]+\.[\w.\-]+")
"""An id or an address: `A-10442`, `10442`, `ana@example.com`."""


_NUMBER = re.compile(r"\d{3,}")
"""A number that may be an id, or part of one: `441`, or `10442` of `A-10442`, which an instruction
may name without its letter. Two digits are amounts: `within 14 days`."""


_ORDINARY = re.compile(r"\d?0+|\d50|(?:19|20)\d\d")
"""A number that is common in instructions: a round one (`at most 200 words`, `above 1000 USD`, `250
ml`) or a year (`the terms of 2026`). If it is also the id of a case, that is chance."""


_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
"""The comma of `12,500`, which is one number and does not contain an id `500`."""


class Leaks:
    """Checks whether a candidate contains text that occurs only in held-out cases.

    Args:
        held_out: the texts of held-out cases.
        known: the texts that a candidate may repeat: those of train cases, and the original text.
    """

    def __init__(self, held_out: Iterable[str], known: Iterable[str]) -> None:
        allowed: set[tuple[str, ...]] = set()
        seen: set[str] = set()
        for text in known:
            allowed |= _runs(text, _WHOLE)
            seen |= _telling(text)
        self._runs: set[tuple[str, ...]] = set()
        self._telling: set[str] = set()
        for text in held_out:
            self._runs |= _runs(text) - allowed
            self._telling |= _telling(text) - seen

    def found(self, candidate: str) -> list[str]:
        """Return the parts of held-out cases in a candidate: ids, the longest first, then words."""
        runs = [" ".join(run) for run in sorted(_runs(candidate, _WHOLE) & self._runs)]
        ids = _telling(candidate) & self._telling
        return [*sorted(ids, key=lambda each: (-len(each), each)), *runs]

    def fault(self, candidate: str) -> str | None:
        """Return why a candidate is refused; ``None`` if it contains nothing of a held-out case."""
        leaked = self.found(candidate)
        if not leaked:
            return None
        return f"it contains text of held-out cases: `{leaked[0]}`"


def _runs(text: str, least: int = _RUN) -> set[tuple[str, ...]]:
    """Return the runs of ``least`` to six words in a text; a short text is one run."""
    own = [word.casefold() for word in words(text)]
    if _WHOLE <= len(own) < least:
        return {tuple(own)}
    sizes = range(least, _RUN + 1)
    return {tuple(own[at : at + size]) for size in sizes for at in range(len(own) - size + 1)}


def _telling(text: str) -> set[str]:
    plain = _THOUSANDS.sub("", text)
    numbers = {each for each in _NUMBER.findall(plain) if not _ORDINARY.fullmatch(each)}
    words = {match.casefold() for match in _TELLING.findall(plain)}
    return numbers | {each for each in words if not _ORDINARY.fullmatch(each)}
