"""``equals``: whether answers are exactly as expected. Strands calls it ``Equals``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from baton.evaluators.matching.answers import (
    AnswerDetails,
    Row,
    answer_details,
    below,
    data_of,
    evidence,
    json_differences,
    mean,
    no_answer,
    reason,
    shown,
)
from baton.evaluators.matching.texts import CaseSensitive, Reading
from baton.model import Case, EvalContext, Score, Trace
from baton.plugins import FROM_CASES, Alias

from .base_evaluator import Pair, TurnEvaluator, Which, describe


class Equals(TurnEvaluator[list[Row]], frozen=True, kw_only=True):
    """Compares whole answers: text by its characters, JSON by its values.

    The score is the share of answers that equal the expected one.
    """

    type = "equals"
    summary = "whether an answer is exactly what is expected"
    aliases = (Alias("equals", "Equals"),)
    states = ("response", "structured")
    stated_as = "an answer"
    details = AnswerDetails
    needs = ("output",)

    value: Annotated[
        Any, FROM_CASES, describe("What the last answer has to be, whatever the case states.")
    ] = None
    case_sensitive: CaseSensitive = True

    @property
    def checks(self) -> frozenset[str]:  # type: ignore[override]
        """The parts of a case that it checks: none if an option states the expected answer."""
        return frozenset({"response", "structured"} if self.value is None else ())

    def which(self, case: Case | None) -> Which:  # noqa: ARG002
        """Select the turns that state an answer, or the last turn if an option states it."""
        return "stated" if self.value is None else "last"

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> list[Row]:  # noqa: ARG002
        """Compare one answer with each text and JSON value it has to equal."""
        wanted: list[Any] = [self.value] if self.value is not None else []
        if self.value is None and (stated := pair.expected.response) is not None:
            wanted.append(stated.data if stated.text is None else stated.text)
        if self.value is None and pair.expected.structured is not None:
            wanted.append(pair.expected.structured)
        problems: list[str] = []
        for value in wanted:
            answer = pair.turn.output
            if not answer:
                problems.append("" if value == "" else no_answer(pair.turn))
            elif isinstance(value, str):
                reading = Reading(case_sensitive=self.case_sensitive, normalize_whitespace=False)
                text = answer.plain()
                same = reading.fold(text) == reading.fold(value)
                problems.append("" if same else f"expected {shown(value)}, got {shown(text)}")
            else:
                data = data_of(answer)
                if data is msgspec.UNSET:
                    problems.append(f"expected {shown(value)}, got {shown(answer.plain())}")
                else:
                    problems.append("; ".join(list(json_differences(value, data))[:3]))
        return [Row(pair.number, pair.turn, float(not each), each, {}) for each in problems]

    def verdict(self, turns: Sequence[list[Row]]) -> list[Score]:
        """Return one score: the share of answers that equal the expected one."""
        rows = [row for several in turns for row in several]
        wrong = below(rows, 1.0)
        details = answer_details(rows, 1.0)
        text = reason(rows, wrong, "the answer is the expected one")
        return [self.scored(mean(rows), text, details, evidence(wrong))]
