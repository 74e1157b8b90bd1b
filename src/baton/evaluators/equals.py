"""``equals``: whether answers are exactly what is expected. Known to Strands as ``Equals``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from baton.model import Case, Content, EvalContext, Score, Trace, Turn, Unit
from baton.plugins import FROM_CASES

from .answers import (
    Row,
    below,
    data_of,
    evidence,
    json_differences,
    mean,
    no_answer,
    reason,
    row_details,
    unrecorded,
)
from .base import OptionedEvaluator, Unscored, last_turn, stated_turns
from .json_compare import shown
from .text_match import Reading


class EqualsOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options; with ``value`` the last answer has to be it, whatever the case states."""

    value: Annotated[Any, FROM_CASES] = None
    case_sensitive: bool = True


class Wanted(NamedTuple):
    """A turn and what its answer has to be: text, or JSON."""

    number: int
    turn: Turn
    value: Any


class Equals(OptionedEvaluator[EqualsOptions]):
    """Compares whole answers: text by its characters, JSON by its values."""

    type = "equals"
    version = "1"
    unit: ClassVar[Unit] = "trace"
    options_type = EqualsOptions

    @property
    def checks(self) -> frozenset[str]:  # type: ignore[override]
        """What it looks at in a case: nothing, when an option says what to expect."""
        stated = self.options.value is None
        return frozenset({"response", "structured"} if stated else ())

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:  # noqa: ARG002
        """Give one score for the trace: the share of turns whose answer is the expected one.

        ``error`` when a planned turn was not played or broke; ``skipped`` when nothing is
        expected, or an answer was not recorded.
        """
        wanted = self._wanted(trace, case)
        if isinstance(wanted, Unscored):
            return [self.unscored(wanted.status, wanted.reason)]
        missing = unrecorded(trace, [(each.number, each.turn) for each in wanted])
        if missing is not None:
            return [self.unscored("skipped", missing)]
        rows = [self._row(each) for each in wanted]
        wrong = below(rows, 1.0)
        details = {**self.option_details(), "turns": row_details(rows, 1.0)}
        said = reason(rows, wrong, "the answer is the expected one")
        return [self.scored(mean(rows), said, details, evidence(wrong))]

    def _wanted(self, trace: Trace, case: Case | None) -> list[Wanted] | Unscored:
        if self.options.value is not None:
            last = last_turn(trace, case)
            return last if isinstance(last, Unscored) else [Wanted(*last, self.options.value)]
        pairs = stated_turns(
            trace,
            case,
            lambda turn: turn.response is not None or turn.structured is not None,
            "an answer",
        )
        if isinstance(pairs, Unscored):
            return pairs
        return [
            Wanted(pair.number, pair.turn, value)
            for pair in pairs
            for value in _stated(pair.expected.response, pair.expected.structured)
        ]

    def _row(self, wanted: Wanted) -> Row:
        problem = self._problem(wanted.value, wanted.turn)
        return Row(wanted.number, wanted.turn, float(not problem), problem, {})

    def _problem(self, expected: Any, turn: Turn) -> str:
        answer = turn.output
        if not answer:
            return "" if expected == "" else no_answer(turn)
        if isinstance(expected, str):
            reading = Reading(
                case_sensitive=self.options.case_sensitive, normalize_whitespace=False
            )
            text = answer.plain()
            same = reading.fold(text) == reading.fold(expected)
            return "" if same else f"expected {shown(expected)}, got {shown(text)}"
        found = data_of(answer)
        if found is msgspec.UNSET:
            return f"expected {shown(expected)}, got {shown(answer.plain())}"
        return "; ".join(list(json_differences(expected, found))[:3])


def _stated(response: Content | None, structured: dict[str, Any] | None) -> Iterator[Any]:
    if response is not None:
        yield response.data if response.text is None else response.text
    if structured is not None:
        yield structured
