"""When a JSON value is the one that is expected, and where it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from baton.evaluators.matching.assignment import assign
from baton.evaluators.matching.texts import Reading

_ABSENT: Any = object()


class Same(msgspec.Struct, frozen=True, kw_only=True):
    """What may differ between an expected and an actual value.

    Numbers are the same when they differ by no more than ``absolute_tolerance``, or by
    ``relative_tolerance`` times the expected one. ``list_order: same`` compares lists item by
    item; ``allow_extra: false`` refuses keys that are not expected, at every depth.
    """

    relative_tolerance: float = 0.0
    absolute_tolerance: float = 0.0
    case_sensitive: bool = True
    normalize_whitespace: bool = False
    list_order: Literal["any", "same"] = "any"
    allow_extra: bool = True

    def text(self, text: str) -> str:
        """Return what matters of a text: all of it, unless an option says otherwise."""
        if self.case_sensitive and not self.normalize_whitespace:
            return text
        reading = Reading(
            case_sensitive=self.case_sensitive, normalize_whitespace=self.normalize_whitespace
        )
        return reading.fold(text)

    def numbers(self, expected: float, actual: float) -> bool:
        """Tell whether two numbers are the same; 1 is 1.0."""
        if expected == actual:
            return True
        try:
            allowed = max(self.absolute_tolerance, self.relative_tolerance * abs(expected))
            return abs(expected - actual) <= allowed
        except OverflowError:  # an integer beyond the range of floats
            return False


def differences(expected: Any, actual: Any, same: Same, path: str = "") -> Iterator[str]:
    """Say where a value is not the expected one.

    Strings are compared as they are; ``true`` is not a number, and ``"1"`` none either. A field
    that is expected to be null may be missing; in a list null is a value. Lists have to be of
    one length, and each expected item needs one of its own, in any order.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        yield from _of_fields(expected, actual, same, path)
    elif not is_same(expected, actual, same):
        where = f"`{path}`" if path else "it"
        yield f"{where} {_unlike(expected, actual)}"


def is_same(expected: Any, actual: Any, same: Same) -> bool:
    """Tell whether a value is the expected one, by the rules of :func:`differences`."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and next(_of_fields(expected, actual, same), None) is None
    if isinstance(expected, list):
        return isinstance(actual, list) and _same_lists(expected, actual, same)
    if expected is None or isinstance(expected, bool):
        return actual is expected
    if isinstance(expected, str):
        return isinstance(actual, str) and same.text(expected) == same.text(actual)
    number = isinstance(actual, int | float) and not isinstance(actual, bool)
    return number and same.numbers(expected, actual)


def _of_fields(
    expected: dict[str, Any], actual: dict[str, Any], same: Same, path: str = ""
) -> Iterator[str]:
    for key, wanted in expected.items():
        inside = f"{path}.{key}" if path else str(key)
        found = actual.get(key, _ABSENT)
        if found is not _ABSENT:
            yield from differences(wanted, found, same, inside)
        elif wanted is not None:
            yield f"`{inside}` is missing"
    if not same.allow_extra:
        for key in actual:
            if key not in expected:
                yield f"`{f'{path}.{key}' if path else key}` is not expected"


def _same_lists(expected: list[Any], actual: list[Any], same: Same) -> bool:
    if len(expected) != len(actual):
        return False
    if same.list_order == "same":
        return all(is_same(e, a, same) for e, a in zip(expected, actual, strict=True))
    if not any(isinstance(item, dict | list) for item in expected) and not _tolerant(same):
        wanted = Counter(_key(item, same) for item in expected)
        return wanted == Counter(_key(item, same) for item in actual)
    likely = {
        row: column for row, column in enumerate(_twins(expected, actual)) if column is not None
    }
    flow = assign(_Fitting(expected, actual, same), [1] * len(actual), likely=likely)
    return all(flow)


class _Fitting(Mapping[int, Sequence[int]]):
    """The places of the items that each expected item fits, found when they are asked for.

    Most items have a twin that is written alike, and are never asked.
    """

    def __init__(self, expected: list[Any], actual: list[Any], same: Same) -> None:
        self._expected, self._actual, self._same = expected, actual, same
        self._known: dict[int, list[int]] = {}

    def __getitem__(self, row: int) -> list[int]:
        if row not in self._known:
            wanted = self._expected[row]
            self._known[row] = [
                place
                for place, item in enumerate(self._actual)
                if is_same(wanted, item, self._same)
            ]
        return self._known[row]

    def __len__(self) -> int:
        return len(self._expected)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self._expected)))


def _tolerant(same: Same) -> bool:
    return same.relative_tolerance > 0 or same.absolute_tolerance > 0


def _key(item: Any, same: Same) -> Hashable:
    """Return what is equal for plain values that are the same; numbers are so by value."""
    if isinstance(item, bool):
        return "bool", item
    if isinstance(item, str):
        return "text", same.text(item)
    return "nested" if isinstance(item, dict | list) else item


def _twins(expected: list[Any], actual: list[Any]) -> list[int | None]:
    """Return for each expected item the place of one that is written alike, each place once."""
    places: dict[bytes, list[int]] = {}
    for place in range(len(actual) - 1, -1, -1):
        places.setdefault(_written(actual[place]), []).append(place)
    found = [places.get(_written(item)) for item in expected]
    return [alike.pop() if alike else None for alike in found]


def _written(item: Any) -> bytes:
    return msgspec.json.encode(item, order="deterministic")


def _unlike(expected: Any, actual: Any) -> str:
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) != len(actual):
        return f"has {len(actual)} items, not {len(expected)}: {shown(actual)}"
    return f"is {shown(actual)}, not {shown(expected)}"


def shown(value: Any, limit: int = 80) -> str:
    """Write a value as JSON, cut where it is long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
