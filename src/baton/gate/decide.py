"""Decides a gate from the index of an evaluation in one pass: thresholds, cases, baseline."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import msgspec

from baton.gate.compare_axes import PASSED, AxisChange
from baton.model import GateResult, Low, Placed, Provenance
from baton.store import IndexRow

from .check_thresholds import bound_to, figure_of
from .compare_evaluations import Compared, axis_line, compare, missing_line
from .read_thresholds import BOUND, NAMED_CASES, NOTHING, Decision, Gate, Regression
from .snapshot import Snapshot, SnapshotBuilder, lacks_baseline, open_side

MUST_PASS = "must_pass"


def decide(gate: Gate, rows: Iterable[IndexRow], provenance: Provenance | None = None) -> Decision:
    """Decide every rule, those by agent once per agent; a rule without verdicts is an error.

    Versions that the gate is ``for`` count even if they are all that it states.
    """
    if not gate:
        return NOTHING
    provenance = provenance or Provenance()
    figures = [figure_of(rule) for rule in gate.rules]
    must_pass = _MustPass(gate.must_pass)
    regression = _NoRegression(gate.regression, gate.folder) if gate.regression else None
    for row in rows:
        for figure in figures:
            if figure.rule.tag is None or figure.rule.tag in row.tags:
                figure.add(row)
        must_pass.add(row)
        if regression is not None:
            regression.add(row)
    results = [
        GateResult(rule=BOUND, evaluator=BOUND, status="error", reason=line)
        for line in bound_to(gate.bound, provenance)
    ]
    for figure in figures:
        decided = figure.results()
        # A rule for which no agent has enough data would pass by accident: that is an error.
        if all(result.status == "unclear" for result in decided):
            decided = [msgspec.structs.replace(result, status="error") for result in decided]
        results += decided
    results += must_pass.results()
    on_cases, compared = gate.on_cases, gate.regression
    if compared is not None and (lacking := lacks_baseline(compared.baseline, gate.folder)):
        # The first use: it has to run before there can be a baseline. Only single failures decide.
        rule = f"no regression from {compared.baseline}"
        results.append(
            GateResult(rule=rule, evaluator="regression", status="unclear", reason=lacking)
        )
    elif compared is not None and regression is not None:
        results += regression.results(provenance)
        on_cases = on_cases or compared.allow_failures
    return Decision(results, on_cases, gate.on_errors)


class _MustPass:
    """Cases that must pass in every repeat; a pattern that matches no case is an error."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._failing: dict[str, list[Low]] = {pattern: [] for pattern in patterns}
        self._met = dict.fromkeys(self._failing, 0)

    def add(self, row: IndexRow) -> None:
        for pattern, failing in self._failing.items():
            if row.case_id == pattern or fnmatchcase(row.case_id, pattern):
                self._met[pattern] += 1
                if row.status != "passed":
                    failing.append(Low(case_id=row.case_id, repeat=row.repeat))

    def results(self) -> Iterator[GateResult]:
        for pattern, failing in self._failing.items():
            met = self._met[pattern]
            result = GateResult(
                rule=f"must pass: {pattern}",
                evaluator=MUST_PASS,
                status="failed" if failing else "passed" if met else "error",
                scored=met,
                cases=failing[:NAMED_CASES],
            )
            if failing:
                result.reason = f"{len(failing)} of {met} results did not pass"
            elif not met:
                result.reason = "no case has this name"
            yield result


class _NoRegression:
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


class PartOfGate(NamedTuple):
    """A gate for some of the cases, and the rules that were left out."""

    gate: Gate
    left_out: list[str]


def for_some_cases(gate: Gate, ids: Collection[str], tags: Collection[str]) -> PartOfGate:
    """Leave out rules that need cases that are not played: regressions, the dataset's version.

    Other rules stay, unless they are for a tag that no selected case has. A pattern of
    ``must_pass`` stays if a selected case matches it.
    """
    rules = [rule for rule in gate.rules if rule.tag is None or rule.tag in tags]
    met = [
        each for each in gate.must_pass if any(id_ == each or fnmatchcase(id_, each) for id_ in ids)
    ]
    bound = gate.bound
    left = [f"`{rule.text}`" for rule in gate.rules if rule not in rules]
    left += [f"`must_pass: {each}`" for each in gate.must_pass if each not in met]
    if gate.regression is not None:
        left.append("`regression`")
    if bound is not None and bound.dataset is not None:
        left.append("`for: dataset`")
        bound = msgspec.structs.replace(bound, dataset=None)
    part = msgspec.structs.replace(
        gate, rules=tuple(rules), must_pass=tuple(met), regression=None, bound=bound
    )
    return PartOfGate(part, left)
