"""``response``: whether answers are what cases state, and what every answer has to be.

Known to judge-llm as ``response_evaluator``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from baton.model import Case, EvalContext, ExpectedTurn, InputError, Score, Trace, Turn, Unit

from .answers import Row, below, evidence, mean, no_answer, quote, reason, row_details, unrecorded
from .base import OptionedEvaluator, Unscored, last_turn, stated_turns
from .rouge import require_rouge
from .text_match import Check, Match, Reading, RuleOptions, Rules, stated_checks


class ResponseOptions(RuleOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options: how to compare with a stated response, and what the last answer has to meet.

    ``threshold`` is the mean over turns from which a case passes.
    """

    match: Match = "equals"
    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0


class Job(NamedTuple):
    """A turn to look at: what is stated of it, and whether the rules hold for it."""

    number: int
    turn: Turn
    expected: ExpectedTurn | None
    ruled: bool


class Response(OptionedEvaluator[ResponseOptions]):
    """Checks answers against what turns state, and the last one against the rules."""

    type = "response"
    version = "1"
    unit: ClassVar[Unit] = "trace"
    options_type = ResponseOptions
    checks = frozenset({"response", "response_contains", "response_not_contains"})

    __slots__ = ("_rules",)

    def __init__(self, name: str | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Raise InputError for a wrong option, pattern or schema, or a missing library."""
        super().__init__(name, options)
        self._rules = Rules(self.options)
        if self.options.match == "rouge1":
            require_rouge()

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:  # noqa: ARG002
        """Give one score for the trace: the mean over turns, each the least of its checks.

        ``error`` when a planned turn was not played, a turn to look at broke, or a stated
        pattern is none; ``skipped`` when nothing is stated and no rule is given, or an answer
        was not recorded.
        """
        jobs = self._jobs(trace, case)
        if isinstance(jobs, Unscored):
            return [self.unscored(jobs.status, jobs.reason)]
        missing = unrecorded(trace, [(job.number, job.turn) for job in jobs])
        if missing is not None:
            return [self.unscored("skipped", missing)]
        try:
            rows = [self._row(job) for job in jobs]
        except InputError as error:
            return [self.unscored("error", str(error))]
        wrong = below(rows, self.threshold)
        details = {**self.option_details(), "turns": row_details(rows, self.threshold)}
        names = dict.fromkeys(check["check"] for row in rows for check in row.fields["checks"])
        said = reason(rows, wrong, f"the answer meets {', '.join(names)}")
        return [self.scored(mean(rows), said, details, evidence(wrong))]

    def option_details(self) -> dict[str, Any]:
        """Return the options as plain data, but for the schema: it may be long."""
        return {k: v for k, v in super().option_details().items() if k != "json_schema"}

    def _jobs(self, trace: Trace, case: Case | None) -> list[Job] | Unscored:
        pairs = stated_turns(trace, case, _states, "an answer")
        if isinstance(pairs, Unscored):
            if pairs.status == "error" or not self._rules:
                return pairs
            pairs = []
        jobs = {pair.number: Job(pair.number, pair.turn, pair.expected, False) for pair in pairs}
        if self._rules:
            last = _last(trace, case)
            if isinstance(last, Unscored):
                return last
            stated = jobs.get(last.number)
            jobs[last.number] = last if stated is None else stated._replace(ruled=True)
        return list(jobs.values())

    def _row(self, job: Job) -> Row:
        checks: list[Check] = []
        if job.expected is not None:
            checks += stated_checks(job.expected, job.turn.output, *self._reading())
        if job.ruled:
            checks += self._rules.checks(job.turn.output)
        least = min(checks, key=lambda check: check.score)
        if not job.turn.output and least.score < 1:
            least = least._replace(problem=no_answer(job.turn))
        fields: dict[str, Any] = {"checks": [_check_row(c, self.threshold) for c in checks]}
        stated = job.expected.response if job.expected else None
        if stated is not None and least.score < self.threshold - 1e-9:
            fields["expected"] = quote(stated.plain())
        return Row(job.number, job.turn, least.score, least.problem, fields)

    def _reading(self) -> tuple[Match, Reading]:
        return self.options.match, self.options


def _states(turn: ExpectedTurn) -> bool:
    # An empty list of texts would be met by any answer: it states nothing.
    texts = turn.response_contains or turn.response_not_contains
    return bool(texts) or turn.response is not None


def _last(trace: Trace, case: Case | None) -> Job | Unscored:
    """Find the turn that rules hold for: the last one that was played."""
    last = last_turn(trace, case)
    return last if isinstance(last, Unscored) else Job(*last, None, True)


def _check_row(check: Check, threshold: float) -> dict[str, Any]:
    row = {"check": check.name, "score": check.score}
    return {**row, "problem": check.problem} if check.score < threshold - 1e-9 else row
