"""``structured_output``: whether the fields of a structured answer are those expected.

Known to the agentic-chatbot accelerator of AWS as ``StructuredOutputEvaluator``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

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
    stated_object,
    tells_data,
)
from baton.evaluators.matching.json_values import Same, differences, shown
from baton.evaluators.matching.texts import CaseSensitive, NormalizeWhitespace
from baton.model import EvalContext, ExpectedTurn, Score, Trace
from baton.plugins import Alias

from .base import Pair, TurnEvaluator, Unknown, describe


class StructuredOutput(TurnEvaluator[Row], frozen=True, kw_only=True):
    """Compares the top-level fields that a turn states with those of its answer.

    The score is the mean over turns of matching / stated fields; 0 without a structured answer.
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
    allow_extra: Annotated[
        bool, describe("Whether there may be keys that are not expected, at any depth.")
    ] = True
    threshold: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("The share of the stated fields from which a case passes."),
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
        """Tell whether a turn states a field."""
        return bool(stated_object(turn))

    def verdict(self, turns: Sequence[Row]) -> list[Score]:
        """Give one score: the mean over the turns."""
        wrong = below(turns, self.threshold)
        details = answer_details(turns, self.threshold)
        total = sum(len(row.fields["fields"]) for row in turns)
        right = f"{total} of {total} stated fields match"
        said = reason(turns, wrong or below(turns, 1.0), right)
        return [self.scored(mean(turns), said, details, evidence(wrong))]

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> Row | Unknown:  # noqa: ARG002
        """Compare the fields of one answer."""
        wanted = stated_object(pair.expected) or {}
        found = data_of(pair.turn.output)
        if found is NOTHING and not tells_data(trace, pair.turn):
            return Unknown(_NOT_RECORDED)
        if not isinstance(found, dict):
            if found is not NOTHING:
                problem = f"the structured answer is {shown(found)}, not an object"
            else:
                problem = "no structured answer" if pair.turn.output else no_answer(pair.turn)
            fields = {"fields": dict.fromkeys(wanted, False)}
            return Row(pair.number, pair.turn, 0.0, problem, fields)
        wrong = {
            key: problems
            for key in wanted
            if (problems := list(differences(_only(key, wanted), _only(key, found), self.same)))
        }
        extra = [] if self.allow_extra else [key for key in found if key not in wanted]
        problems = [problem for several in wrong.values() for problem in several]
        problems += [f"`{key}` is not expected" for key in extra]
        met = len(wanted) - len(wrong)
        fields = {"fields": {key: key not in wrong for key in wanted}}
        more = f"; {met} of {len(wanted)} stated fields match" if len(wanted) > 1 else ""
        problem = f"{'; '.join(problems[:_SHOWN])}{more}" if problems else ""
        score = 0.0 if extra else met / len(wanted)
        return Row(pair.number, pair.turn, score, problem, fields)


_SHOWN = 3
_NOT_RECORDED = (
    "the source does not tell structured output, and the answer is not a JSON object; "
    "record the structured output, or have the agent answer in JSON alone"
)


def _only(key: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {key: fields[key]} if key in fields else {}
