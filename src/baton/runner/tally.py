"""Summing up results while they come, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from baton.gate.decision import NOTHING, Decision
from baton.model import (
    STATUSES,
    AgentCounts,
    AgentsSeen,
    CaseResult,
    EfficiencySums,
    EvaluatorCounts,
    RoutingCounts,
    Status,
    counted,
)
from baton.store import IndexRow

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
        self.by_agent = AgentCounts(plan.gate.lower)
        self.agents = AgentsSeen()
        self._why: dict[str, str] = {}

    def add(self, result: CaseResult) -> None:
        """Count a result and its scores."""
        self.cases[result.status] += 1
        self.routing.add(result.routing)
        self.efficiency.add(result.efficiency)
        self.by_agent.add(result.by_agent, result.case_id, result.repeat)
        if result.trace is not None:
            self.agents.add(result.trace.agents)
        if result.efficiency is not None:
            self.agents.add_models(result.efficiency.models)
        for score in result.scores:
            self.evaluators[score.evaluator].add(score.status)
            if score.value is None:
                self._why.setdefault(score.evaluator, score.reason)

    def add_row(self, row: IndexRow, reasons: Mapping[str, str]) -> None:
        """Count a result that was written before, or by another process.

        ``reasons`` says, by evaluator, why it scored nothing.
        """
        self.cases[row.status] += 1
        self.routing.add(row.routing)
        self.efficiency.add(row.efficiency)
        self.by_agent.add(row.by_agent, row.case_id, row.repeat)
        if row.efficiency is not None:
            self.agents.add_models(row.efficiency.models)
        for name, status, _ in row.scores:
            self.evaluators[name].add(status)
        for name, reason in reasons.items():
            self._why.setdefault(name, reason)

    def lacks_reason(self, row: IndexRow) -> bool:
        """Tell whether a row has a score without a value of whose evaluator no reason is known."""
        return any(value is None and name not in self._why for name, _, value in row.scores)

    def excuse(self) -> None:
        """Let planned cases that were not run be no problem: somebody asked to stop."""
        self._planned = None

    def take_back(self, earlier: IndexRow) -> None:
        """Count a result no more."""
        self.cases[earlier.status] -= 1
        self.routing.add(earlier.routing, -1)
        self.efficiency.add(earlier.efficiency, -1)
        self.by_agent.take_back(earlier.by_agent, earlier.case_id, earlier.repeat)
        for name, status, _ in earlier.scores:
            self.evaluators[name].add(status, -1)

    def problems(self, decision: Decision = NOTHING) -> list[str]:
        """Say what could not be evaluated as asked; errors that a gate allows are none."""
        found = []
        total = sum(self.cases.values())
        if self.cases["error"] and not decision.on_errors:
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
        return [*found, *decision.problems()]

    def status(self, decision: Decision = NOTHING) -> Literal["passed", "failed", "error"]:
        """Return the verdict: an error outranks a failure.

        Failed cases fail it by the gate alone where that says how many may.
        """
        if self.problems(decision):
            return "error"
        failed = self.cases["failed"] and not decision.on_cases
        return "failed" if failed or decision.missed else "passed"
