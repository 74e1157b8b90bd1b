"""Regular expressions that are compiled when they are first used.

The evaluators of texts have about 500 of them, and compiling all takes a third of a second: half of
the time in which a single recording is scored. A recording needs few of them. For example, one
without a failure needs none of the words for failures.
"""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")


class LazyPattern:
    """Has the attributes of an ``re.Pattern``; the first use of a method compiles it."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self.flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        # From now on they are found without this method, so a call costs no more than usual.
        self.__dict__.update({each: getattr(compiled, each) for each in _METHODS})
        return getattr(compiled, name)


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when it is first used.

    A mistake in it raises ``re.error`` then. A test compiles all of them.
    """
    return cast("re.Pattern[str]", LazyPattern(pattern, flags))


VALUE = "\N{MATHEMATICAL DOUBLE-STRUCK DIGIT ZERO}"
"""A sign for a certain value, in patterns for :func:`marked`. It is a digit, as most values are."""


def marked(value: str, text: str) -> str:
    """Return a text with ``VALUE`` for a value: one pattern is enough for all values then.

    "about 40 boxes" for `40` matches ``f"about {VALUE}"``. With the number itself in the pattern,
    each number would compile it again, a millisecond each time.
    """
    return text.replace(VALUE, "0").replace(value, VALUE)


def sides_of(pattern: re.Pattern[str], value: str, text: str) -> tuple[str, str] | None:
    """Return what is before and after the first match of a pattern with ``VALUE``, or ``None``."""
    text = marked(value, text)
    match = pattern.search(text)
    if match is None:
        return None
    before, after = text[: match.start()], text[match.end() :]
    return before.replace(VALUE, value), after.replace(VALUE, value)
