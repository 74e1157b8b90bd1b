"""Whether an evaluation is worse than a baseline, and which cases show it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from baton.model import GateResult, Low, Placed, Provenance
from baton.stats.comparison import PASSED, AxisChange
from baton.store import IndexRow

from .baseline import Snapshot, SnapshotBuilder, open_side
from .compare_evaluations import Compared, axis_line, compare, missing_line
from .thresholds import NAMED_CASES, Regression


class NoRegression:
    """Compares the results with a baseline.

    It also keeps the evidence of low verdicts of failed cases, to show it for those that got worse.
    """

    def __init__(self, regression: Regression, folder: Path) -> None:
        self._asked, self._folder = regression, folder
        self._builder = SnapshotBuilder()
        self._lows: dict[str, list[tuple[str, str | None, Low]]] = {}

    def add(self, row: IndexRow) -> None:
        """Add one row of the index."""
        self._builder.add(row)
        if row.status == "failed":
            kept = self._lows.setdefault(row.case_id, [])
            for scores in row.by_agent:
                kept += [(scores.evaluator, scores.agent, low) for low in scores.worst]

    def results(self, provenance: Provenance) -> Iterator[GateResult]:
        """Yield a result for each axis that got worse or may have; else one that passed."""
        regression = self._asked
        now = Snapshot(id="", name="", status="", provenance=provenance)
        now.cases = self._builder.cases()
        baseline = open_side(regression.baseline, self._folder)
        compared = compare(
            baseline,
            now,
            confidence=regression.confidence,
            min_effect=regression.min_effect,
        )
        rule = f"no regression from {regression.baseline}"
        problem = ""
        if compared.refused:
            problem = f"they cannot be compared: {'; '.join(map(str, compared.refused))}"
        elif compared.missing:
            problem = f"a verdict in the baseline, but none here: {missing_line(compared)}"
        elif not compared.comparison.axes:
            problem = "no case has a verdict in both"
        if problem:
            yield GateResult(rule=rule, evaluator="regression", status="error", reason=problem)
            if compared.refused:
                return
        if (flaw := baseline.flaw) is not None:
            yield GateResult(rule=rule, evaluator="regression", status="unclear", reason=flaw)
        # Missing cases do not hide regressions: both are reported.
        changes = [*compared.comparison.regressions, *compared.open]
        if not changes and not problem:
            count_all = compared.comparison.cases
            yield GateResult(rule=rule, evaluator="regression", status="passed", scored=count_all)
        for change in changes:
            is_worse = change.change == "worse"
            yield GateResult(
                rule=rule,
                evaluator=change.axis.name,
                agent=change.axis.agent,
                status="failed" if is_worse else "unclear",
                mean=change.difference.after,
                scored=change.difference.difference.n,
                cases=list(self._worse_cases(change, compared)) if is_worse else [],
                reason=axis_line(change),
            )

    def _worse_cases(self, change: AxisChange, compared: Compared) -> Iterator[Low]:
        """Yield the first cases that got worse on an axis, with the dispatch and its steps."""
        axis = change.axis
        worse = [case for case in compared.cases if axis.name in (PASSED, case.change.axis.name)]
        for case in worse[:NAMED_CASES]:
            proof = min(
                (
                    low
                    for evaluator, agent, low in self._lows.get(case.change.case, ())
                    if axis.name in (PASSED, evaluator) and axis.agent in (None, agent)
                ),
                key=lambda low: low.value or 0.0,
                default=None,
            )
            subject = proof.subject if proof is not None else []
            at = proof.at if proof is not None else ""
            if (hop := case.after) is not None:
                at = Placed("dispatch", hop.receiver, hop.sender).named(hop.id)
            yield Low(
                at=at,
                case_id=case.change.case,
                value=case.change.after,
                subject=[case.after.id] if case.after is not None else subject,
                steps=proof.steps if proof is not None else [],
            )
