"""Regular expressions from datasets and configs, with a time limit.

Python's ``re`` cannot be stopped, and takes exponential time for ``(a+)+$`` or ``(a|aa)+$``. The
``regex`` library has the same syntax and meaning, and a time limit. A linear-time engine (RE2)
was not chosen because it has no references and no look-around, which existing patterns use.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Any

from baton.model import InputError, Problem
from baton.model.limits import PATTERN_LENGTH, PATTERN_MILLISECONDS, PATTERN_SIZE

# Without repeats, alternatives and groups, the time is linear in the text with any engine.
_FIXED = re.compile(r"[^*+?{|(]*")


class BadPatternError(ValueError):
    """A text that is not a valid regular expression; ``why`` says what is wrong."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"`{text[:200]}` {why}")
        self.why = why


class Pattern:
    """A regular expression; searching raises InputError when it takes too long."""

    def __init__(self, pattern: str, compiled: Any, *, timed: bool) -> None:
        self.pattern = pattern
        self._has_limit = timed
        self._compiled = compiled

    def search(self, text: str) -> Any:
        """Find the pattern anywhere in a text; the match, or ``None``."""
        return self._timed(self._compiled.search, text)

    def fullmatch(self, text: str) -> Any:
        """Match the pattern with all of a text; the match, or ``None``."""
        return self._timed(self._compiled.fullmatch, text)

    def find_all(self, text: str) -> list[str]:
        """Return everything in a text that matches, in order."""

        def find(text: str, **limit: float) -> list[str]:
            return [match[0] for match in self._compiled.finditer(text, **limit)]

        matches: list[str] = self._timed(find, text)
        return matches

    def _timed(self, find: Any, text: str) -> Any:
        seconds = PATTERN_MILLISECONDS.value / 1000
        if not self._has_limit:
            return find(text)
        try:
            return find(text, timeout=seconds)
        except TimeoutError:
            message = (
                f"the regular expression `{self.pattern[:200]}` takes more than {seconds:g} "
                f"seconds on a text of {len(text):,} characters, which is the limit; repeats "
                "inside repeats, as in `(a+)+`, are the usual cause"
            )
            raise InputError(Problem(message=message)) from None


@lru_cache(maxsize=16384)
def compiled(text: str, *, ignore_case: bool = False) -> Pattern:
    """Compile a pattern as Python's ``re`` understands it.

    Raises:
        BadPatternError: it is not a regular expression, or is over a limit.
    """
    if len(text) > PATTERN_LENGTH.value:
        limit = f"{PATTERN_LENGTH.value:,}"
        raise BadPatternError(text, f"has more than {limit} characters, which is the limit")
    try:
        with warnings.catch_warnings():
            # Warnings about sets that may change in a later Python: the user cannot act on them
            # here.
            warnings.simplefilter("ignore")
            # Python's own compiler decides what is valid; its errors are the familiar ones.
            plain = re.compile(text, re.IGNORECASE if ignore_case else 0)
            if _FIXED.fullmatch(text):
                return Pattern(text, plain, timed=False)
            if _size(re._parser.parse(text)) > PATTERN_SIZE.value:  # type: ignore[attr-defined]
                limit = f"{PATTERN_SIZE.value:,}"
                raise BadPatternError(text, f"repeats more than {limit} parts, which is the limit")
            import regex

            flags = regex.VERSION0 | (regex.IGNORECASE if ignore_case else 0)
            return Pattern(text, regex.compile(text, flags), timed=True)
    except RecursionError:
        raise BadPatternError(text, "is nested too deeply") from None
    except (re.error, OverflowError, _regex_error()) as error:
        raise BadPatternError(text, f"is not a regular expression: {error}") from None


def _regex_error() -> type[Exception]:
    """Return what ``regex`` raises for a pattern that it cannot compile."""
    import regex

    error: type[Exception] = regex.error
    return error


def has_several_repeats(text: str) -> bool:
    """Tell whether a pattern may take more than quadratic time with Python's ``re``.

    That is possible with a repeat inside a repeat, a reference, or several open repeats.
    """
    tree = re._parser.parse(text)  # type: ignore[attr-defined]
    return _open_repeats(tree) > 1


def _size(tree: Any) -> int:
    """Count the parts of a pattern when counted repeats are written out, as ``regex`` does.

    ``(a{1000}){1000}`` has 1,000,000.
    """
    total = 0
    for operation, argument in tree:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            total += max(1, argument[0]) * _size(argument[2])
        else:
            total += max(1, sum(_size(inner) for inner in _inner(name, argument)))
    return total


def _open_repeats(tree: Any) -> int:
    total = 0
    for operation, argument in tree:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            inside = _open_repeats(argument[2])
            simple = argument[1] <= 1 or argument[0] == argument[1]
            total += inside if simple else 1 + 2 * inside
        elif name.startswith("GROUPREF"):
            total += 2
        else:
            total += sum(_open_repeats(inner) for inner in _inner(name, argument))
    return total


def _inner(name: str, argument: Any) -> list[Any]:
    """Return the patterns inside a part of a parsed pattern."""
    if name == "SUBPATTERN":
        return [argument[3]]
    if name == "BRANCH":
        return list(argument[1])
    if name in ("ASSERT", "ASSERT_NOT"):
        return [argument[1]]
    if name == "ATOMIC_GROUP":
        return [argument]
    if name == "GROUPREF_EXISTS":
        return [each for each in argument[1:] if each is not None]
    return []
