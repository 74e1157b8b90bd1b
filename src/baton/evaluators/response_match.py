"""``response_match``: how many words an answer shares with the expected one, by ROUGE-1.

Known to Google ADK as ``response_match_score``; figures are those of ADK 2.13.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from baton.model import Case, EvalContext, Score, Trace, Unit

from .answers import (
    Row,
    answer_text,
    below,
    evidence,
    mean,
    no_answer,
    quote,
    reason,
    row_details,
    unrecorded,
)
from .base import OptionedEvaluator, Pair, Unscored, stated_turns
from .rouge import require_rouge, rouge1


class ResponseMatchOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options; ``threshold`` is the mean over turns from which a case passes."""

    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.8


class ResponseMatch(OptionedEvaluator[ResponseMatchOptions]):
    """Compares the words of every answer with those of the response that its turn states."""

    type = "response_match"
    version = "1"
    unit: ClassVar[Unit] = "trace"
    options_type = ResponseMatchOptions
    checks = frozenset({"response"})

    def __init__(self, name: str | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Raise InputError for a wrong option, or when the library for ROUGE is missing."""
        super().__init__(name, options)
        require_rouge()

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:  # noqa: ARG002
        """Give one score for the trace: the mean F-measure of the turns that state a response.

        ``error`` when a planned turn was not played or broke; ``skipped`` when no response is
        stated, or an answer was not recorded.
        """
        pairs = stated_turns(trace, case, lambda turn: turn.response is not None, "a response")
        if isinstance(pairs, Unscored):
            return [self.unscored(pairs.status, pairs.reason)]
        missing = unrecorded(trace, [(pair.number, pair.turn) for pair in pairs])
        if missing is not None:
            return [self.unscored("skipped", missing)]
        rows = [_row(pair, self.threshold) for pair in pairs]
        wrong = below(rows, self.threshold)
        value = mean(rows)
        details = {**self.option_details(), "turns": row_details(rows, self.threshold)}
        said = reason(rows, wrong, f"ROUGE-1 F is {value:.2f}")
        return [self.scored(value, said, details, evidence(wrong))]


def _row(pair: Pair, threshold: float) -> Row:
    expected = pair.expected.response.plain() if pair.expected.response else ""
    actual = answer_text(pair.turn)
    rouge = rouge1(expected, actual)
    fields: dict[str, Any] = {"precision": rouge.precision, "recall": rouge.recall}
    if rouge.fmeasure < threshold - 1e-9:
        fields["expected"] = quote(expected)
    problem = f"ROUGE-1 F of the answer is {rouge.fmeasure:.2f}" if actual else no_answer(pair.turn)
    return Row(pair.number, pair.turn, rouge.fmeasure, problem, fields)
