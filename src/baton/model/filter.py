"""Filters: choosing cases, conversations, dispatches and the like by their fields.

A filter is text (``to:refund-* depth:>=2``) or a mapping (``{to: [refund-*], depth: ">=2"}``). All
of its terms have to match. The filtered object provides the value of each field; an unrecorded
field matches no term.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import msgspec

from .errors import InputError, Problem, suggestion

Sign = Literal[">=", "<=", ">", "<", "="]
Value = str | float | Sequence[str] | None
"""What a field holds: a text, a number (times in seconds since the epoch), or several texts."""

HOLDS: Mapping[Sign, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
"""The comparison for each sign."""


class Field(msgspec.Struct, frozen=True):
    """A field that may be filtered by.

    ``text`` is compared with globs, all others with numbers: ``seconds`` may have a unit
    (``500ms``, ``2s``, ``1.5min``, ``3h``), a ``time`` is a date or RFC 3339. If a text has a fixed
    set of values, ``values`` lists them.
    """

    kind: Literal["text", "number", "seconds", "time"] = "text"
    values: tuple[str, ...] = ()


Fields = Mapping[str, Field]
"""Fields by name. A name that ends with a dot is a prefix (``metadata.``)."""

TEXT, NUMBER, SECONDS, TIME = Field(), Field("number"), Field("seconds"), Field("time")


class Bound(NamedTuple):
    """A comparison with a number: ``>= 2``."""

    sign: Sign
    number: float


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on one field.

    For a text, at least one glob of ``any_of`` has to match (if there are any), and none of
    ``none_of``; with ``exact`` they are compared literally. For a number, ``bounds`` has
    alternatives, each with comparisons that all have to hold.
    """

    field: str
    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    bounds: tuple[tuple[Bound, ...], ...] = ()
    exact: bool = False

    def meets(self, value: Value) -> bool:
        """Tell whether a value matches; an unknown one does not."""
        if value is None:
            return False
        if self.bounds:
            return isinstance(value, int | float) and any(
                all(HOLDS[bound.sign](value, bound.number) for bound in each)
                for each in self.bounds
            )
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, Collection):
            return False
        wanted = not self.any_of or any(self._like(text, self.any_of) for text in texts)
        return wanted and not any(self._like(text, self.none_of) for text in texts)

    def _like(self, text: str, globs: Iterable[str]) -> bool:
        # An id may contain brackets, which have a meaning in globs: `refund[1]`.
        return any(text == glob or (not self.exact and fnmatchcase(text, glob)) for glob in globs)


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Terms that all have to match; without any, everything matches."""

    terms: tuple[Term, ...] = ()

    def meets(self, value_of: Callable[[str], Value]) -> bool:
        """Tell whether an object with these values matches."""
        return all(term.meets(value_of(term.field)) for term in self.terms)

    @property
    def fields(self) -> frozenset[str]:
        """The fields that the terms name."""
        return frozenset(term.field for term in self.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)


def filter_of(stated: str | Mapping[str, Any] | None, fields: Fields) -> Filter:
    """Read a filter: words like ``to:refund-*`` with spaces between them, or a mapping.

    A list, and in text commas, give alternatives; ``!`` before a glob excludes what it matches.
    Numbers are compared (``>=2``, ``<5``, or ``2`` for equality); ``>=2 <5`` requires both. A text
    with spaces is quoted: ``to:"refund desk"``.

    Raises:
        InputError: lists all unknown fields and values, with similar names, and invalid numbers.
    """
    if stated is None:
        return Filter()
    if isinstance(stated, str):
        return Filter(terms=tuple(term_of(word, fields) for word in _WORD.findall(stated)))
    terms: list[Term] = []
    problems: list[Problem] = []
    for name, value in stated.items():
        try:
            terms.append(_term(str(name), value, fields))
        except ValueError as error:
            problems.append(Problem(path=str(name), message=str(error)))
    if problems:
        raise InputError(problems)
    return Filter(terms=tuple(terms))


def term_of(word: str, fields: Fields, default: str | None = None) -> Term:
    """Read one term, ``FIELD:VALUE``; ``FIELD=VALUE`` takes a text literally.

    A word without a field is a glob for the ``default`` field, if there is one.

    Raises:
        InputError: an unknown field or value, with similar names, or no number.
    """
    match = _TERM.fullmatch(word)
    if match is None or (default is not None and _field(match["field"], fields) is None):
        if default is None:
            message = f"`{word}` is not a filter: write `FIELD:VALUE`, such as {_like(fields)}"
            raise InputError(message)
        return Term(field=default, any_of=(word,))
    name, value = match["field"], match["value"]
    quoted = len(value) > 1 and value[0] == value[-1] == '"'
    if quoted:
        value = value[1:-1]
    field = _field(name, fields)
    if match["sign"] == "=" and field is not None and field.kind == "text":
        return Term(field=name, any_of=(value,), exact=True)
    # The value may also be one text with a comma: `tag:a,b`.
    parts = [value] if quoted or "," not in value else [*value.split(","), value]
    if field is not None and (field.kind != "text" or field.values):
        parts = value.split(",")
    try:
        return _term(name, parts, fields)
    except ValueError as error:
        raise InputError(f"`{word}`: {error}") from None


_TERM = re.compile(r"(?P<field>[^\s:=]+)(?P<sign>[:=])(?P<value>.+)", re.DOTALL)
_WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')
_BOUND = re.compile(r"\s*(>=|<=|==|>|<|=|)\s*([^\s<>=]+)")
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SECONDS = re.compile(r"([\d.]+(?:e-?\d+)?)(ms|s|min|h|d|)")


def _field(name: str, fields: Fields) -> Field | None:
    if name in fields and not name.endswith("."):
        return fields[name]
    prefix = name.partition(".")[0] + "."
    return fields.get(prefix) if len(name) > len(prefix) else None


def _term(name: str, value: object, fields: Fields) -> Term:
    """Read a term of plain data; raises ValueError."""
    field = _field(name, fields)
    if field is None:
        known = [f"{each}KEY" if each.endswith(".") else each for each in fields]
        raise ValueError(f"unknown field; {suggestion(name, known)}")
    parts = value if isinstance(value, list) else [value]
    if not parts:
        raise ValueError("an empty list matches nothing: leave the field out")
    if field.kind != "text":
        return Term(field=name, bounds=tuple(_bounds(part, field) for part in parts))
    texts = []
    for part in parts:
        if not isinstance(part, str) or not part.strip("!"):
            raise ValueError(f"expected a text or a glob, got {_shown(part)}")
        texts.append(part)
        glob = part.removeprefix("!")
        if field.values and not any(fnmatchcase(each, glob) for each in field.values):
            raise ValueError(f"no value `{glob}`; {suggestion(glob, field.values)}")
    return Term(
        field=name,
        any_of=tuple(text for text in texts if not text.startswith("!")),
        none_of=tuple(text[1:] for text in texts if text.startswith("!")),
    )


def _bounds(part: object, field: Field) -> tuple[Bound, ...]:
    if isinstance(part, bool) or not isinstance(part, str | int | float):
        raise ValueError(f"expected a number or a comparison such as `>=2`, got {_shown(part)}")
    text = str(part)
    bounds: list[Bound] = []
    at = 0
    while match := _BOUND.match(text, at):
        sign: Any = "=" if match[1] in ("", "==") else match[1]
        bounds.append(Bound(sign, _number(match[2], field)))
        at = match.end()
    if not bounds or text[at:].strip():
        raise ValueError(f"`{text}` is not a comparison: write one like `>=2`, `<5` or `>=2 <5`")
    return tuple(bounds)


def _number(text: str, field: Field) -> float:
    try:
        if field.kind == "time":
            when = datetime.fromisoformat(text)
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        if field.kind == "seconds" and (match := _SECONDS.fullmatch(text)):
            return float(match[1]) * _UNITS[match[2]]
        number = float(text)
    except ValueError:
        number = float("nan")
    if math.isnan(number):
        forms = {"time": "time, such as 2026-11-22 or 2026-11-22T09:30:00Z"}
        forms["seconds"] = "duration, such as 2s, 500ms or 1.5min"
        raise ValueError(f"`{text}` is not a {forms.get(field.kind, 'number')}") from None
    return number


def _shown(value: object) -> str:
    return "nothing" if value in (None, "", "!") else f"`{value}`"


def _like(fields: Fields) -> str:
    name = next((each for each in fields if not each.endswith(".")), "to")
    return f"`{name}:{fields[name].values[0] if fields[name].values else 'NAME*'}`"
