"""``contains`` and ``starts_with``: what the last answer has to hold, or to begin with.

Known to Strands as ``Contains`` and ``StartsWith``.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from baton.model import Case, EvalContext, Score, Trace, Unit
from baton.plugins import FROM_CASES

from .answers import Row, answer_text, evidence, no_answer, reason, row_details, unrecorded
from .base import OptionedEvaluator, Unscored, last_turn
from .json_compare import shown
from .text_match import Reading


class ContainsOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options: the text to look for, which may not be empty."""

    value: Annotated[str, FROM_CASES]
    case_sensitive: bool = True

    def __post_init__(self) -> None:
        if not self.value:
            raise ValueError("`value` is empty, which says nothing")


class Contains(OptionedEvaluator[ContainsOptions]):
    """Looks for a text in the last answer."""

    type = "contains"
    version = "1"
    unit: ClassVar[Unit] = "trace"
    options_type = ContainsOptions
    lacks: ClassVar[str] = "does not contain"

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:  # noqa: ARG002
        """Give one score for the trace: 1 or 0.

        ``error`` when a planned turn was not played, or the last one broke; ``skipped`` when
        its answer was not recorded.
        """
        last = last_turn(trace, case)
        if isinstance(last, Unscored):
            return [self.unscored(last.status, last.reason)]
        missing = unrecorded(trace, [last])
        if missing is not None:
            return [self.unscored("skipped", missing)]
        number, turn = last
        reading = Reading(case_sensitive=self.options.case_sensitive, normalize_whitespace=False)
        found = self.holds(reading.fold(answer_text(turn)), reading.fold(self.options.value))
        problem = f"the answer {self.lacks} {shown(self.options.value)}" if turn.output else ""
        row = Row(number, turn, float(found), problem or no_answer(turn), {})
        wrong = [] if found else [row]
        said = reason([row], wrong, "the answer is as it has to be")
        details = {**self.option_details(), "turns": row_details([row], 1.0)}
        return [self.scored(row.score, said, details, evidence(wrong))]

    def holds(self, text: str, wanted: str) -> bool:
        """Tell whether a text is as it has to be."""
        return wanted in text


class StartsWith(Contains):
    """Looks for a text at the start of the last answer."""

    type = "starts_with"
    lacks = "does not start with"

    def holds(self, text: str, wanted: str) -> bool:
        """Tell whether a text is as it has to be."""
        return text.startswith(wanted)
