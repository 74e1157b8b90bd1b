"""Selecting cases of a dataset by id, tag, label or metadata, and limiting their number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from baton.model import Case, Dataset, InputError
from baton.model.filter import TEXT, Fields, Value, term_of

Keep = Callable[[Case], bool]
_METADATA = "metadata."


def choose(
    dataset: Dataset,
    filters: Sequence[str] = (),
    limit: int | None = None,
    keyword: str | None = None,
) -> Dataset:
    """Return the cases that match every filter, at most ``limit``, in their order.

    A filter is a glob over ids (``refund_*``), ``tag:NAME`` or ``metadata.KEY=VALUE``, or another
    term of :mod:`baton.model.filter` over these fields (``tag:!slow``); labels count as metadata,
    and keys of nested objects are joined by dots. ``keyword`` is an expression as :func:`matching`
    takes it.

    Raises:
        InputError: a filter is malformed, or nothing is left.
    """
    if not filters and limit is None and keyword is None:
        return dataset
    keeps = [_filter(text) for text in filters]
    if keyword is not None:
        keeps.append(matching(keyword))
    if keeps:
        places = [n for n, case in enumerate(dataset) if all(keep(case) for keep in keeps)]
    else:
        places = list(range(len(dataset)))
    if not places:
        names = " and ".join(f"`{text}`" for text in (*filters, keyword) if text is not None)
        hint = "a filter is a glob over ids, tag:NAME or metadata.KEY=VALUE"
        if not filters:
            listed = ", ".join(dataset.ids[:5]) + (", ..." if len(dataset) > 5 else "")
            hint = f"ids are {listed}"
        raise InputError(f"none of {len(dataset)} cases matches {names}; {hint}")
    return dataset.subset(places[:limit])


FIELDS: Fields = {"id": TEXT, "tag": TEXT, _METADATA: TEXT}
"""Fields for filtering cases; labels count as metadata."""


def keep_of(keyword: str | None, ids: Sequence[str] | None) -> Keep | None:
    """Return a test for cases that match an expression and have a listed id; ``None`` for all.

    Raises:
        InputError: the expression is malformed.
    """
    if keyword is None and ids is None:
        return None
    fits = None if keyword is None else matching(keyword)
    wanted = None if ids is None else frozenset(ids)
    return lambda case: (fits is None or fits(case)) and (wanted is None or case.id in wanted)


def _filter(text: str) -> Keep:
    if text.startswith(_METADATA):
        # A key may contain a colon, and the value may be empty.
        key, equals, wanted = text.removeprefix(_METADATA).partition("=")
        if equals and key:
            return lambda case: _metadata(case, key) == wanted
        if equals or ":" not in text:
            raise InputError(f"`{text}` is not a filter: write `metadata.KEY=VALUE`")
    term = term_of(text, FIELDS, default="id")
    return lambda case: term.meets(_value(case, term.field))


def _value(case: Case, field: str) -> Value:
    if field == "id":
        return case.id
    return case.tags if field == "tag" else _metadata(case, field.removeprefix(_METADATA))


def _metadata(case: Case, key: str) -> str | None:
    """Return a value as text: strings as they are, anything else as JSON."""
    if key in case.labels:
        return case.labels[key]
    value: object = case.metadata
    for step in [key] if key in case.metadata else key.split("."):
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_TOKEN = re.compile(r"""\s*(?:([()])|"([^"]*)"|'([^']*)'|([^\s()]+))""")
# Levels of brackets and `not`. The parser calls itself for each, so thousands of them would end in
# an error of Python instead of a message; people write two or three.
_DEEPEST = 50


def matching(expression: str) -> Keep:
    """Return a test for an expression like pytest's ``-k``: ``refund and not (slow or vip)``.

    A word matches if it is part of the id or of a tag, in any case; ``tag:NAME`` and
    ``metadata.KEY=VALUE`` are as in a filter. ``not`` binds tighter than ``and``, which binds
    tighter than ``or``. Quotes keep a text with spaces or parentheses together, and make ``"and"``
    a word.

    Raises:
        InputError: the expression is malformed.
    """
    tokens = list(_tokens(expression.strip()))
    place = 0

    def wrong(why: str) -> InputError:
        return InputError(f"`{expression}`: {why}; write words with `and`, `or`, `not`, `(`, `)`")

    def take(*marks: str) -> bool:
        nonlocal place
        if place < len(tokens) and not tokens[place].quoted and tokens[place].text in marks:
            place += 1
            return True
        return False

    def either(depth: int) -> Keep:
        some = [both(depth)]
        while take("or"):
            some.append(both(depth))
        return some[0] if len(some) == 1 else lambda case: any(keep(case) for keep in some)

    def both(depth: int) -> Keep:
        some = [one(depth)]
        while take("and"):
            some.append(one(depth))
        return some[0] if len(some) == 1 else lambda case: all(keep(case) for keep in some)

    def one(depth: int) -> Keep:
        nonlocal place
        if depth > _DEEPEST:
            raise wrong("is nested too deep")
        if take("not"):
            keep = one(depth + 1)
            return lambda case: not keep(case)
        if take("("):
            inner = either(depth + 1)
            if not take(")"):
                raise wrong("a `)` is missing")
            return inner
        if place == len(tokens) or take("and", "or", ")"):
            raise wrong("a word is missing")
        token, place = tokens[place], place + 1
        return _word(token.text)

    keep = either(0)
    if place < len(tokens):
        raise wrong(f"unexpected `{tokens[place].text}`")
    return keep


class _Token(msgspec.Struct, frozen=True):
    text: str
    quoted: bool


def _tokens(expression: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(expression):
        mark, double, single, word = match.groups()
        quoted = double if double is not None else single
        yield _Token(mark or word if quoted is None else quoted, quoted is not None)


def _word(text: str) -> Keep:
    if text.startswith(("tag:", _METADATA)):
        return _filter(text)
    part = text.casefold()
    return lambda case: any(part in name.casefold() for name in (case.id, *case.tags))
