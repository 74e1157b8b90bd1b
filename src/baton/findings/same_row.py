"""Which value of a result's row does a value of an answer stand in the place of?

An answer retells the rows of a result: lines of a table, items of a list, objects, sentences. In
"| Benelux | 2,620 | 2,200 |" for "Benelux 2,260 2,200", `2,620` stands between the same things as
`2,260`. That shows the role of a number without any words beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

from baton.model import Content
from baton.model.views import charge_work

from .another_value import (
    concludes,
    gives_roughly,
    speaks_of_another,
    speaks_of_another_moment,
    speaks_otherwise,
    supposes,
    tells_when_to_come,
)
from .derived_values import follows, is_made_of, is_rest, is_sum
from .facts import Fact, as_json, plain_text, read_part
from .known_values import CallerText, Known
from .lazy_patterns import regex
from .normalise_values import fields_apart
from .text_values import (
    Value,
    are_near,
    is_framed_alike,
    is_slip,
    labels,
    unit_text,
    values_of,
)

# Where a row of plain text ends: a line, a sentence, a semicolon, "1) ... | 2) ...".
_ROW_ENDS = regex(r"\n+|;\s|(?<=[.!?])\s+(?=[^\W\d_a-z]|[\d*\"'“(#])|\s\|\s(?=\d{1,2}[.)]\s)|\s·\s")
_DIGIT = regex(r"\d")
_ENDS_ON_ONE_LINE = regex(rf"{_ROW_ENDS.pattern}|\s\|\s")
# More rows are a data set, and longer ones no rows. Comparing each with an answer takes too long.
_MOST_ROWS = 80
_LONGEST_ROW = 600
# Amounts that differ by a larger factor are rather calculated, or other things: 8.2 for 8,000.
_FAR = 3.0
_DOUBLE = 2.0


def rows_of(result: Content) -> tuple[str, ...]:
    """Return the rows of a result: its lines and sentences, or the objects of JSON.

    An object is written with its names: `region: Benelux, actual: 2260450`.
    """
    data = result.data if result.text is None else as_json(result.text)
    rows = _objects(data, "") if data is not None else _lines(plain_text(result))
    return tuple(row.strip() for row in rows if row and row.strip())


def _lines(text: str) -> list[str]:
    # "25 March: 47 EUR | 26 March: 52 EUR" on one line is a list, and with more lines a table.
    ends = _ROW_ENDS if "\n" in text.strip() else _ENDS_ON_ONE_LINE
    return ends.split(fields_apart(text))


def _objects(data: Any, name: str) -> Iterator[str]:
    if isinstance(data, dict):
        own = []
        for key, value in data.items():
            if isinstance(value, dict) or _has_objects(value):
                yield from _objects(value, str(key))
            elif isinstance(value, list):
                own.append(f"{key}: {', '.join(map(str, value))}")
            elif value is not None and not isinstance(value, bool):
                own.append(f"{key}: {value}")
        if own:
            yield f"{name} {', '.join(own)}".strip()
    elif isinstance(data, list):
        for value in data:
            yield from _objects(value, name)
    elif data is not None and not isinstance(data, bool):
        yield str(data)


def _has_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict | list) for each in value)


def in_same_row(value: Value, stated: CallerText, against: Known) -> Value | None:
    """Return the value of a row that should stand where an answer has a value from nowhere."""
    found = _in_row(value, stated, against)
    if found is None or supposes(value.clause):
        return None
    if speaks_otherwise(value.clause, against.result):
        return None
    other, both = found
    # Twice as many are rather worked out: "two coaches and a double-decker (186 seats)" for one
    # with 78 seats.
    if not _is_comparable(value, other, _DOUBLE):
        return None
    # "I remind you on 14 February" of what expires on 14 March.
    if value.kind in ("date", "time"):
        if speaks_of_another(value.clause, against.result):
            return None
        if tells_when_to_come(value.clause) or speaks_of_another_moment(value.clause):
            return None
    slip = is_slip(value, other)
    made = follows(value, stated.values, against) or is_sum(value, against)
    if both:
        return other if slip or not made else None
    # With one neighbour in common, `550 mg` may be an amount, and `150 g` the weight of a portion.
    same_label = bool(labels(value) & labels(other))
    if value.kind != other.kind or not slip:
        return None
    if value.kind == "number" or made:
        return other if same_label else None
    return other


def in_same_words_of_row(value: Value, stated: CallerText, against: Known) -> Value | None:
    """Return the value of a row that has the same words around it as a value of an answer.

    "Room Reuss: 280 CHF a day" for "Room Reuss: 410 CHF a day", even if 280 is the price of another
    room of the result. What follows from other values by chance doesn't matter here. Another source
    that has the value may be right.
    """
    if any(value.fact.keys & other.fact.keys for other in against.others):
        return None
    found = _in_row(value, stated, against)
    if found is None or value.kind != found[0].kind:
        return None
    other, _ = found
    if not is_framed_alike(value, other, slip=is_slip(value, other)):
        return None
    return None if is_made_of(value, other, against) else other


def after_name_of_row(value: Value, stated: CallerText, against: Known) -> Value | None:
    """Return the value of the row that the nearest name before a value of an answer belongs to.

    "orjson (181/61), ujson (201/160)" for "orjson 118 61" and "ujson 201 160": an answer can retell
    several rows in one sentence. Its digits are in another order, or it is the only value of its
    unit in that row: "the map may be lent for 60 days" for "map K-0417: loan for 90 days".
    """
    if stated.is_call or value.kind == "identifier" or len(value.sentence) > _LONGEST_ROW:
        return None
    row = _row_of_nearest_name(value, against.rows)
    if row is None or read_part(row).holds(value.fact):
        return None
    clause = value.clause
    if supposes(clause) or speaks_otherwise(clause, against.result) or concludes(value):
        return None
    mine = _in_order(value.sentence)
    missing = [v.fact.keys for v in stated.missing]
    candidates = [
        v
        for v in values_of(row)
        if v.fact.keys in missing and not _is_in(v.fact, mine) and not is_rest(value, v)
        if _is_comparable(value, v, _DOUBLE) and not is_made_of(value, v, against)
    ]
    is_moment = value.kind in ("date", "time")
    swapped = {
        v.fact.keys: v
        for v in candidates
        if not is_moment and is_slip(value, v) and sorted(value.digits) == sorted(v.digits)
    }
    if len(swapped) == 1:
        return next(iter(swapped.values()))
    if value.kind == "number" or gives_roughly(clause):
        return None
    if follows(value, stated.values, against) or is_sum(value, against):
        return None
    # "Deployed at 9:58" beside an onset at 8:04: a time or day of something else is rather that.
    if is_moment and (
        speaks_of_another(clause, against.result)
        or tells_when_to_come(clause)
        or speaks_of_another_moment(clause)
    ):
        return None
    # "UA 31 costs 442.52 EUR" for "UA 31: 481 USD, bag 417 EUR": which price is meant?
    if value.kind.isupper() and any(
        v.kind.isupper() and v.kind != value.kind for v in values_of(row)
    ):
        return None
    alike = {v.fact.keys for v in values_of(row) if v.kind == value.kind}
    only = next((v for v in candidates if v.kind == value.kind), None)
    if only is None or len(alike) > 1 or (is_moment and not is_slip(value, only)):
        return None
    # In "savings 510.00 + feed-in 669.92 = 999.92 EUR", any of them may be the amount.
    return None if any(_is_nearer(v, only, value) for v in candidates) else only


def _is_nearer(one: Value, other: Value, value: Value) -> bool:
    """Return whether a plain number is nearer to a value than another value of its unit."""
    apart = [
        min((abs(a - b) for a in each.numbers for b in value.numbers), default=inf)
        for each in (one, other)
    ]
    return one.kind == "number" and apart[0] < apart[1]


def _row_of_nearest_name(value: Value, rows: tuple[str, ...]) -> str | None:
    """Return the row of the nearest fact before a value that a single row has."""
    if not 0 < len(rows) <= _MOST_ROWS:
        return None
    row_of = {fact.keys: number for fact, number in _in_one_row(value.sentence, rows)}
    mine = _in_order(value.sentence)
    at = next((i for i, fact in enumerate(mine) if fact.keys == value.fact.keys), None)
    if at is None:
        return None
    before = next((row_of[f.keys] for f in reversed(mine[:at]) if f.keys in row_of), None)
    return None if before is None else rows[before]


# A value with "about" can be this share off: "about 900 EUR" for 890 EUR.
_ROUGHLY = 0.15


def _in_row(value: Value, stated: CallerText, against: Known) -> tuple[Value, bool] | None:
    """Return the missing value of a row that a value stands for, and if both neighbours agree."""
    if stated.is_call or value.kind == "identifier" or len(value.sentence) > _LONGEST_ROW:
        return None
    row = _row_about(value, against.rows)
    if row is None or read_part(row).holds(value.fact):
        return None
    place = _place_in(value, row)
    if place is None:
        return None
    other = next((v for v in values_of(row) if v.fact.keys == place.fact.keys), None)
    if other is None or not any(v.fact.keys == other.fact.keys for v in stated.missing):
        return None
    if not _is_comparable(value, other) or is_rest(value, other):
        return None
    if gives_roughly(value.clause) and are_near(value.sizes, other.sizes, _ROUGHLY):
        return None
    return other, place.both


def _is_comparable(value: Value, other: Value, far: float = _FAR) -> bool:
    """Return whether two values may be the same thing: of one kind, and not far apart.

    A column of a table has its unit in the heading, so a plain number can be an amount. `44 seats`
    are no minutes, and a percentage is calculated from an amount.
    """
    kinds = {value.kind, other.kind}
    if len(kinds) > 1:
        plain = (v for v in (value, other) if v.kind == "number")
        if "number" not in kinds or kinds & {"date", "time", "identifier", "share"}:
            return False
        if any(unit_text(v) for v in plain):
            return False
    if value.kind in ("date", "time"):
        return True
    one, two = (value.sizes, other.sizes) if len(kinds) == 1 else (value.numbers, other.numbers)
    pairs = [(abs(a), abs(b)) for a in one for b in two if a and b]
    return any(max(pair) <= far * min(pair) for pair in pairs)


class _Place(NamedTuple):
    """The fact of a row that belongs where an answer has another one.

    ``both``: the facts on both sides of it are the same. Otherwise only those on one side.
    """

    fact: Fact
    both: bool


def _row_about(value: Value, rows: tuple[str, ...]) -> str | None:
    """Return the row that has most in common with the sentence of a value, if it is only one.

    The value itself doesn't count: it may be that of another row.
    """
    if not 0 < len(rows) <= _MOST_ROWS:
        return None
    votes = Counter(row for fact, row in _in_one_row(value.sentence, rows) if fact != value.fact)
    if not votes:
        return None
    (row, most), *others = votes.most_common(2)
    return None if others and others[0][1] == most else rows[row]


@lru_cache(maxsize=64)
def _in_one_row(text: str, rows: tuple[str, ...]) -> list[tuple[Fact, int]]:
    """Return the facts of a text that a single row has, with the number of that row."""
    charge_work(1 + len(rows) // 4)
    # A heading has names of columns, and no values.
    keys = [_keys_of(row) if _DIGIT.search(row) else frozenset() for row in rows]
    found = []
    for fact in read_part(text).facts:
        having = [number for number, each in enumerate(keys) if fact.keys & each]
        if len(having) == 1:
            found.append((fact, having[0]))
    return found


def _keys_of(text: str) -> frozenset[str]:
    return frozenset[str]().union(*(fact.keys for fact in read_part(text).facts))


def _place_in(value: Value, row: str) -> _Place | None:
    """Return the fact of a row that has the same neighbours as a value, if it is the only one."""
    mine, theirs = _in_order(value.sentence), _in_order(row)
    at = next((i for i, fact in enumerate(mine) if fact.keys == value.fact.keys), None)
    if at is None:
        return None
    before = next((fact for fact in reversed(mine[:at]) if _is_in(fact, theirs)), None)
    after = next((fact for fact in mine[at + 1 :] if _is_in(fact, theirs)), None)
    starts = [] if before is None else [i for i, f in enumerate(theirs) if f.keys & before.keys]
    ends = [] if after is None else [i for i, f in enumerate(theirs) if f.keys & after.keys]
    numbers = [i for i, fact in enumerate(theirs) if _has_digits(fact)]
    if starts and ends:
        pairs = [(b - a, a, b) for a in starts for b in ends if a < b]
        if not pairs:
            return None
        _, start, end = min(pairs)
        between = [theirs[i] for i in numbers if start < i < end and not _is_in(theirs[i], mine)]
        between = [f for f in between if _is_comparable(value, Value(f, "", frozenset(), ""))]
        return _Place(between[0], both=True) if len(between) == 1 else None
    if starts:
        nearest = next((i for i in numbers if i > starts[0]), None)
    elif ends:
        nearest = next((i for i in reversed(numbers) if i < ends[0]), None)
    else:
        return None
    if nearest is None or _is_in(theirs[nearest], mine):
        return None
    return _Place(theirs[nearest], both=False)


def _is_in(fact: Fact, others: Sequence[Fact]) -> bool:
    return any(fact.keys & other.keys for other in others)


def _has_digits(fact: Fact) -> bool:
    return fact.kind in ("number", "identifier") and any(c.isdigit() for c in fact.text)


@lru_cache(maxsize=256)
def _in_order(text: str) -> tuple[Fact, ...]:
    """Return the facts of a text in the order in which they stand, repeated ones each time."""
    found = [(at, fact) for fact in read_part(text).facts for at in _places(fact.text, text)]
    return tuple(fact for _, fact in sorted(found, key=lambda each: each[0]))


def _places(value: str, text: str) -> Iterator[int]:
    """Yield where a text has a value by itself: 12 in "12 of 112", but not in "12.5" or "3:12".

    A pattern with the value in it would be compiled for each value, which takes far longer.
    """
    at = text.find(value) if value else -1
    while at >= 0:
        end = at + len(value)
        before, after, next_ = text[at - 1 : at], text[end : end + 1], text[end + 1 : end + 2]
        goes_on = _is_word(after) or (after in _MARKS and next_.isdecimal())
        if _is_word(before) or before in _MARKS or goes_on:
            at = text.find(value, at + 1)
        else:
            yield at
            at = text.find(value, end)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


_MARKS = (".", ",", ":")
