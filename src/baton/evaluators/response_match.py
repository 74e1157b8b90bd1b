"""``response_match``: how many words an answer shares with the expected one, by ROUGE-1.

Google ADK calls it ``response_match_score``. The figures equal those of ADK 2.13.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from baton.evaluators.matching.answers import (
    AnswerDetails,
    Row,
    answer_details,
    answer_text,
    below,
    evidence,
    mean,
    no_answer,
    quote,
    reason,
)
from baton.evaluators.matching.rouge import require_rouge, rouge1
from baton.model import EvalContext, Score, Trace
from baton.model.score import passes
from baton.plugins import Alias

from .base_evaluator import Pair, TurnEvaluator, describe


class ResponseMatch(TurnEvaluator[Row], frozen=True, kw_only=True):
    """Compares the words of every answer with the words of the response its turn states."""

    type = "response_match"
    summary = "how many words an answer shares with the expected one, by ROUGE-1"
    aliases = (Alias("response_match_score", "ResponseMatchScore"),)
    checks = frozenset({"response"})
    states = ("response",)
    stated_as = "a response"
    details = AnswerDetails
    needs = ("output",)

    threshold: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("The minimum mean F-measure over turns to pass."),
    ] = 0.8

    def check(self) -> None:
        """Check that the library for ROUGE is installed."""
        require_rouge()

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> Row:  # noqa: ARG002
        """Compare the words of one answer."""
        expected = pair.expected.response.plain() if pair.expected.response else ""
        actual = answer_text(pair.turn)
        rouge = rouge1(expected, actual)
        fields: dict[str, Any] = {"precision": rouge.precision, "recall": rouge.recall}
        if not passes(rouge.fmeasure, self.threshold):
            fields["expected"] = quote(expected)
        problem = (
            f"ROUGE-1 F of the answer is {rouge.fmeasure:.2f}" if actual else no_answer(pair.turn)
        )
        return Row(pair.number, pair.turn, rouge.fmeasure, problem, fields)

    def verdict(self, turns: Sequence[Row]) -> list[Score]:
        """Give one score: the mean F-measure over the turns."""
        wrong = below(turns, self.threshold)
        value = mean(turns)
        details = answer_details(turns, self.threshold)
        text = reason(turns, wrong, f"ROUGE-1 F is {value:.2f}")
        return [self.scored(value, text, details, evidence(wrong))]
