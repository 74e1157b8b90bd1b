"""``structured_output``: whether the fields of a structured answer are those expected.

Known to the agentic-chatbot accelerator of AWS as ``StructuredOutputEvaluator``.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from baton.model import Case, EvalContext, Score, Trace, Unit

from .answers import (
    NOTHING,
    Row,
    below,
    data_of,
    evidence,
    mean,
    no_answer,
    reason,
    row_details,
    stated_object,
    tells_data,
)
from .base import OptionedEvaluator, Pair, Unscored, stated_turns
from .json_compare import Same, differences, shown


class StructuredOutputOptions(Same, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options; ``threshold`` is the share of the stated fields from which a case passes."""

    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0


class StructuredOutput(OptionedEvaluator[StructuredOutputOptions]):
    """Compares the top-level fields that a turn states with those of its answer."""

    type = "structured_output"
    version = "1"
    unit: ClassVar[Unit] = "trace"
    options_type = StructuredOutputOptions
    checks = frozenset({"structured"})

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:  # noqa: ARG002
        """Give one score for the trace: the mean over turns of matching / stated fields.

        ``failed`` with 0 where there was no structured answer. ``skipped`` when no field is
        stated, or the source does not tell structured answers; ``error`` when a planned turn
        was not played, or broke.
        """
        pairs = stated_turns(trace, case, lambda turn: bool(stated_object(turn)), "fields")
        if isinstance(pairs, Unscored):
            return [self.unscored(pairs.status, pairs.reason)]
        untold = [
            pair
            for pair in pairs
            if data_of(pair.turn.output) is NOTHING and not tells_data(trace, pair.turn)
        ]
        if untold:
            return [self.unscored("skipped", f"turn {untold[0].number}: {_UNTOLD}")]
        rows = [self._row(pair) for pair in pairs]
        wrong = below(rows, self.threshold)
        details = {**self.option_details(), "turns": row_details(rows, self.threshold)}
        total = sum(len(row.fields["fields"]) for row in rows)
        right = f"{total} of {total} stated fields match"
        said = reason(rows, wrong or below(rows, 1.0), right)
        return [self.scored(mean(rows), said, details, evidence(wrong))]

    def _row(self, pair: Pair) -> Row:
        wanted = stated_object(pair.expected) or {}
        found = data_of(pair.turn.output)
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
            if (problems := list(differences(_only(key, wanted), _only(key, found), self.options)))
        }
        extra = [] if self.options.allow_extra else [key for key in found if key not in wanted]
        problems = [problem for several in wrong.values() for problem in several]
        problems += [f"`{key}` is not expected" for key in extra]
        met = len(wanted) - len(wrong)
        fields = {"fields": {key: key not in wrong for key in wanted}}
        more = f"; {met} of {len(wanted)} stated fields match" if len(wanted) > 1 else ""
        problem = f"{'; '.join(problems[:_SHOWN])}{more}" if problems else ""
        score = 0.0 if extra else met / len(wanted)
        return Row(pair.number, pair.turn, score, problem, fields)


_SHOWN = 3
_UNTOLD = (
    "the source does not tell structured output, and the answer is not a JSON object; "
    "record the structured output, or have the agent answer in JSON alone"
)


def _only(key: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {key: fields[key]} if key in fields else {}
