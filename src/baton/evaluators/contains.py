"""``contains``: text that the last answer must contain. Strands calls it ``Contains``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, ClassVar

from baton.evaluators.matching.answers import (
    AnswerDetails,
    Row,
    answer_details,
    answer_text,
    evidence,
    no_answer,
    reason,
    shown,
)
from baton.evaluators.matching.texts import CaseSensitive, Reading
from baton.model import Case, EvalContext, Score, Trace
from baton.plugins import FROM_CASES, Alias

from .base_evaluator import Pair, TurnEvaluator, Which, describe


class LastAnswerEvaluator(TurnEvaluator[Row], frozen=True, kw_only=True):
    """Compares the text of the last answer with the text in an option. The score is 1 or 0.

    ``unlike`` is the message if the texts do not match.
    """

    states = ()
    stated_as = "an answer"
    details = AnswerDetails
    needs = ("output",)
    unlike: ClassVar[str]

    value: Annotated[str, FROM_CASES, describe("The text to look for.")]
    case_sensitive: CaseSensitive = True

    def check(self) -> None:
        """Check that there is something to look for."""
        if not self.value:
            raise ValueError("`value` is empty, so it checks nothing")

    def which(self, case: Case | None) -> Which:  # noqa: ARG002
        """Select the last turn that was played."""
        return "last"

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> Row:  # noqa: ARG002
        """Check the answer of the turn."""
        turn = pair.turn
        reading = Reading(case_sensitive=self.case_sensitive, normalize_whitespace=False)
        met = self.holds(reading.fold(answer_text(turn)), reading.fold(self.value))
        problem = f"the answer {self.unlike} {shown(self.value)}" if turn.output else ""
        return Row(pair.number, turn, float(met), problem or no_answer(turn), {})

    @abstractmethod
    def holds(self, text: str, wanted: str) -> bool:
        """Return whether a text matches."""

    def verdict(self, turns: Sequence[Row]) -> list[Score]:
        """Return one score for the trace."""
        wrong = [row for row in turns if row.score < 1]
        text = reason(turns, wrong, "the answer passes the check")
        details = answer_details(turns, 1.0)
        return [self.scored(turns[0].score, text, details, evidence(wrong))]


class Contains(LastAnswerEvaluator, frozen=True, kw_only=True):
    """Looks for a text in the last answer."""

    type = "contains"
    summary = "whether the last answer contains a text"
    aliases = (Alias("contains", "Contains"),)
    unlike = "does not contain"

    def holds(self, text: str, wanted: str) -> bool:
        """Return whether the text is in the answer."""
        return wanted in text
