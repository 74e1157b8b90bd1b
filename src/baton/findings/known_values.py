"""What a caller had, which it can state without contradicting a result, and what it told then."""

from __future__ import annotations

from typing import NamedTuple

from baton.model.views import charge_work

from .facts import Reading, charge_reading, read
from .misquoted import has_code
from .text_values import Value, values_of

# An answer with more values is a table or a report, and comparing all pairs would take too long.
MOST_VALUES = 60


class Known(NamedTuple):
    """A result, and all texts that its caller had, with their values and words.

    ``values`` are those of the result, ``others`` those of all other texts. ``rows`` are the rows
    of the result.
    """

    result: str
    said: Reading
    values: list[Value]
    others: list[Value]
    words: frozenset[str]
    texts: list[str]
    rows: tuple[str, ...] = ()

    def is_known(self, code: str) -> bool:
        """Return whether any text has a code, in any spelling: `TAB-114`, `tab 114`."""
        return any(has_code(code, text) for text in self.texts)

    def and_texts(self, texts: list[str]) -> Known:
        """Return what is known when these texts are added."""
        more = read(*texts)
        charge_work(1 + (len(self.said.keys) + len(self.others)) // 100)
        return self._replace(
            said=self.said.with_all_of(more),
            others=self.others + [value for text in texts for value in values_of(text)],
            words=self.words | _words_of(more),
            texts=[*self.texts, *texts],
        )


class CallerText(NamedTuple):
    """A text of a caller with its values, and the values of the result that it does not give.

    ``is_call``: it is the arguments of a call. ``is_prompt``: it is for another agent.
    """

    text: str
    values: list[Value]
    missing: list[Value]
    is_call: bool
    is_prompt: bool = False


def known_from(
    result: str, values: list[Value], others: list[str], rows: tuple[str, ...] = ()
) -> Known:
    """Read a result with these values and rows, and the other texts that its caller had."""
    texts = [result, *others]
    reading = read(*texts)
    charge_reading(texts, times=4)  # as a whole, and split into clauses for their values
    other_values = [value for text in others for value in values_of(text)]
    return Known(result, reading, values, other_values, _words_of(reading), texts, rows)


def _words_of(reading: Reading) -> frozenset[str]:
    return frozenset(key for key in reading.keys if key.startswith("w:"))
