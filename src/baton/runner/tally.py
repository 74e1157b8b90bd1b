"""Summing up results while they come, in memory that does not grow with them."""

from __future__ import annotations

from typing import Literal

from baton.model import (
    STATUSES,
    AgentCounts,
    CaseResult,
    EfficiencySums,
    EvaluatorCounts,
    GateResult,
    RoutingCounts,
    Status,
    counted,
)
from baton.store import IndexRow

from .gate import decide, problems_of
from .plan import Plan


class Tally:
    """Counts of cases and scores, and the verdict over all of them."""

    def __init__(self, plan: Plan, planned: int | None = None) -> None:
        """Count results; ``planned`` is how many there have to be in the end."""
        self._planned = planned
        self.evaluators = {
            name: EvaluatorCounts(
                evaluator=name, type=planned.evaluator.type, optional=planned.optional
            )
            for name, planned in plan.all_evaluators.items()
        }
        self.cases: dict[Status, int] = dict.fromkeys(STATUSES, 0)
        self.routing = RoutingCounts()
        self.efficiency = EfficiencySums()
        self._rules = plan.gate
        lower = frozenset(rule.evaluator for rule in plan.gate if rule.at_most)
        self.by_agent = AgentCounts(lower)
        self._why: dict[str, str] = {}

    def add(self, result: CaseResult) -> None:
        """Count a result and its scores."""
        self.cases[result.status] += 1
        self.routing.add(result.routing)
        self.efficiency.add(result.efficiency)
        self.by_agent.add(result.by_agent, result.case_id, result.repeat)
        for score in result.scores:
            self.evaluators[score.evaluator].add(score.status)
            if score.value is None:
                self._why.setdefault(score.evaluator, score.reason)

    def take_back(self, earlier: IndexRow) -> None:
        """Count a result no more."""
        self.cases[earlier.status] -= 1
        self.routing.add(earlier.routing, -1)
        self.efficiency.add(earlier.efficiency, -1)
        self.by_agent.take_back(earlier.by_agent, earlier.case_id, earlier.repeat)
        for name, status, _ in earlier.scores:
            self.evaluators[name].add(status, -1)

    def problems(self) -> list[str]:
        """Say what could not be evaluated as asked."""
        found = []
        total = sum(self.cases.values())
        if self.cases["error"]:
            found.append(f"{self.cases['error']} of {total} cases could not be evaluated")
        if self._planned is not None and total < self._planned:
            found.append(f"{self._planned - total} of {self._planned} planned cases were not run")
        if not total:
            found.append("there was nothing to score")
        for counts in self.evaluators.values():
            asked = counts.skipped + counts.error or not self.cases["error"]
            if not counts.scored and not counts.optional and total and asked:
                why = self._why.get(counts.evaluator)
                found.append(
                    f"`{counts.evaluator}` scored nothing: {counts.skipped} skipped, "
                    f"{counted(counts.error, 'error')} (mark it `optional: true` if that may be)"
                    + (f"; the first: {why}" if why else "")
                )
        if total and not found and not any(c.scored for c in self.evaluators.values()):
            found.append("no evaluator scored anything")
        return [*found, *problems_of(self.gate())]

    def gate(self) -> list[GateResult]:
        """Return what the rules of the gate decide."""
        return decide(self._rules, self.by_agent.sums())

    def status(self) -> Literal["passed", "failed", "error"]:
        """Return the verdict: an error outranks a failure."""
        if self.problems():
            return "error"
        missed = any(result.status == "failed" for result in self.gate())
        return "failed" if self.cases["failed"] or missed else "passed"
