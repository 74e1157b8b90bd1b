"""``structured_output``: whether a structured answer has the expected fields.

The agentic-chatbot accelerator of AWS calls it ``StructuredOutputEvaluator``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from baton.evaluators.base_evaluator import Pair, TurnEvaluator, Unknown, describe
from baton.evaluators.matching.answers import (
    NOTHING,
    AnswerDetails,
    Row,
    answer_details,
    below,
    data_of,
    evidence,
    mean,
    no_answer,
    reason,
    shown,
    stated_object,
    tells_data,
)
from baton.evaluators.matching.assignment import assign
from baton.evaluators.matching.texts import CaseSensitive, NormalizeWhitespace, Reading
from baton.model import EvalContext, ExpectedTurn, Score, Trace
from baton.plugins import Alias

_ABSENT: Any = object()


class Same(msgspec.Struct, frozen=True, kw_only=True):
    """What may differ between an expected and an actual value.

    Numbers are the same if they differ by no more than ``absolute_tolerance``, or by no more than
    ``relative_tolerance`` times the expected number. ``list_order: same`` compares lists item by
    item. ``allow_extra: false`` rejects unexpected keys at every depth.
    """

    relative_tolerance: float = 0.0
    absolute_tolerance: float = 0.0
    case_sensitive: bool = True
    normalize_whitespace: bool = False
    list_order: Literal["any", "same"] = "any"
    allow_extra: bool = True

    def text(self, text: str) -> str:
        """Return the relevant part of a text: all of it, unless an option ignores differences."""
        if self.case_sensitive and not self.normalize_whitespace:
            return text
        return Reading.of(self).fold(text)

    def numbers(self, expected: float, actual: float) -> bool:
        """Return whether two numbers are the same. 1 equals 1.0."""
        if expected == actual:
            return True
        try:
            allowed = max(self.absolute_tolerance, self.relative_tolerance * abs(expected))
            return abs(expected - actual) <= allowed
        except OverflowError:  # an integer beyond the range of floats
            return False


def differences(expected: Any, actual: Any, same: Same, path: str = "") -> Iterator[str]:
    """Yield where a value differs from the expected one.

    Strings are compared unchanged. ``true`` is not a number, and neither is ``"1"``. A field that
    is expected to be null may be missing. In a list, null is a value. Lists have to have the same
    length, and each expected item needs a separate match, in any order.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        yield from _of_fields(expected, actual, same, path)
    elif not is_same(expected, actual, same):
        where = f"`{path}`" if path else "it"
        if isinstance(expected, list) and isinstance(actual, list) and len(expected) != len(actual):
            difference = f"has {len(actual)} items, not {len(expected)}: {shown(actual)}"
        else:
            difference = f"is {shown(actual)}, not {shown(expected)}"
        yield f"{where} {difference}"


def is_same(expected: Any, actual: Any, same: Same) -> bool:
    """Return whether a value equals the expected one, by the rules of :func:`differences`."""
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
        value = actual.get(key, _ABSENT)
        if value is not _ABSENT:
            yield from differences(wanted, value, same, inside)
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
    if not any(isinstance(item, dict | list) for item in expected) and not (
        same.relative_tolerance > 0 or same.absolute_tolerance > 0
    ):
        wanted = Counter(_key(item, same) for item in expected)
        return wanted == Counter(_key(item, same) for item in actual)
    # Items with the same notation are likely pairs. Each place is used once.
    places: dict[bytes, list[int]] = {}
    for place in range(len(actual) - 1, -1, -1):
        places.setdefault(_written(actual[place]), []).append(place)
    likely: dict[int, int] = {}
    for row, item in enumerate(expected):
        if alike := places.get(_written(item)):
            likely[row] = alike.pop()
    flow = assign(_Fitting(expected, actual, same), [1] * len(actual), likely=likely)
    return all(flow)


class _Fitting(Mapping[int, Sequence[int]]):
    """The places of the items that each expected item fits, found on demand.

    Most items have a match with the same notation and are never looked up.
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


def _key(item: Any, same: Same) -> Hashable:
    """Return a key that is equal for plain values that are the same. Numbers go by value."""
    if isinstance(item, bool):
        return "bool", item
    if isinstance(item, str):
        return "text", same.text(item)
    return "nested" if isinstance(item, dict | list) else item


def _written(item: Any) -> bytes:
    return msgspec.json.encode(item, order="deterministic")


class StructuredOutput(TurnEvaluator[Row], frozen=True, kw_only=True):
    """Compares the top-level fields that a turn states with those of its answer.

    The score is the mean over turns of matching / stated fields. It is 0 without a structured
    answer.
    """

    type = "structured_output"
    summary = "how many of the expected fields an answer has, with their values"
    aliases = (Alias("structured_output", "StructuredOutputEvaluator"),)
    checks = frozenset({"structured"})
    states = ("structured", "response")
    stated_as = "fields"
    details = AnswerDetails

    relative_tolerance: Annotated[
        float,
        msgspec.Meta(ge=0),
        describe("How far numbers may differ, as a share of the expected one."),
    ] = 0.0
    absolute_tolerance: Annotated[
        float, msgspec.Meta(ge=0), describe("How far numbers may differ.")
    ] = 0.0
    case_sensitive: CaseSensitive = True
    normalize_whitespace: NormalizeWhitespace = False
    list_order: Annotated[
        Literal["any", "same"], describe("Whether lists are compared item by item.")
    ] = "any"
    allow_extra: Annotated[bool, describe("Whether unexpected keys are allowed, at any depth.")] = (
        True
    )
    threshold: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("The minimum share of the stated fields to pass."),
    ] = 1.0

    @property
    def same(self) -> Same:
        """What may differ between an expected and an actual value."""
        return Same(
            relative_tolerance=self.relative_tolerance,
            absolute_tolerance=self.absolute_tolerance,
            case_sensitive=self.case_sensitive,
            normalize_whitespace=self.normalize_whitespace,
            list_order=self.list_order,
            allow_extra=self.allow_extra,
        )

    def stating(self, turn: ExpectedTurn) -> bool:
        """Return whether a turn states a field."""
        return bool(stated_object(turn))

    def verdict(self, turns: Sequence[Row]) -> list[Score]:
        """Return one score: the mean over the turns."""
        wrong = below(turns, self.threshold)
        details = answer_details(turns, self.threshold)
        total = sum(len(row.fields["fields"]) for row in turns)
        right = f"{total} of {total} stated fields match"
        text = reason(turns, wrong or below(turns, 1.0), right)
        return [self.scored(mean(turns), text, details, evidence(wrong))]

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> Row | Unknown:  # noqa: ARG002
        """Compare the fields of one answer."""
        wanted = stated_object(pair.expected) or {}
        data = data_of(pair.turn.output)
        if data is NOTHING and not tells_data(trace, pair.turn):
            return Unknown(_NOT_RECORDED)
        if not isinstance(data, dict):
            if data is not NOTHING:
                problem = f"the structured answer is {shown(data)}, not an object"
            else:
                problem = "no structured answer" if pair.turn.output else no_answer(pair.turn)
            fields = {"fields": dict.fromkeys(wanted, False)}
            return Row(pair.number, pair.turn, 0.0, problem, fields)
        wrong = {
            key: problems
            for key in wanted
            if (problems := list(differences(_only(key, wanted), _only(key, data), self.same)))
        }
        extra = [] if self.allow_extra else [key for key in data if key not in wanted]
        problems = [problem for several in wrong.values() for problem in several]
        problems += [f"`{key}` is not expected" for key in extra]
        met = len(wanted) - len(wrong)
        fields = {"fields": {key: key not in wrong for key in wanted}}
        more = f"; {met} of {len(wanted)} stated fields match" if len(wanted) > 1 else ""
        problem = f"{'; '.join(problems[:_SHOWN])}{more}" if problems else ""
        score = 0.0 if extra else met / len(wanted)
        return Row(pair.number, pair.turn, score, problem, fields)


# A wrong type of answer makes all fields wrong: three show it, and the details name all.
_SHOWN = 3
_NOT_RECORDED = (
    "the source does not record structured output, and the answer is not a JSON object; "
    "record the structured output, or have the agent answer in JSON alone"
)


def _only(key: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {key: fields[key]} if key in fields else {}
