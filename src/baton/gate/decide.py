"""What a gate comes to, from the index of an evaluation in one pass."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from baton.model import AgentCounts, AgentScores, GateResult, Low, Provenance, counted
from baton.stats.comparison import PASSED, AxisChange
from baton.stats.intervals import quantile
from baton.store import IndexRow

from .baseline import Snapshot, SnapshotBuilder, lacks_baseline, open_side
from .compare import Compared, axis_line, compare, missing_line
from .rules import BoundTo, Gate, GateRule, Regression, percentile

BOUND = "for"


class Decision(NamedTuple):
    """Results, and for which of a case's outcomes they decide in its place.

    ``on_cases``: failed cases fail the evaluation only by the gate. ``on_errors``: likewise for
    those that could not be evaluated.
    """

    results: list[GateResult]
    on_cases: bool = False
    on_errors: bool = False

    def problems(self) -> list[str]:
        """Say which rules could not be decided."""
        return [
            f"the gate's thresholds are for another version: {result.reason}"
            if result.rule == BOUND
            else f"the gate's `{result.rule}` has nothing to decide by: {result.reason}"
            for result in self.results
            if result.status == "error"
        ]

    @property
    def missed(self) -> bool:
        """Whether a rule was missed."""
        return any(result.status == "failed" for result in self.results)


NOTHING = Decision([])


_CASES = 3
MUST_PASS = "must_pass"


def decide(gate: Gate, rows: Iterable[IndexRow], provenance: Provenance | None = None) -> Decision:
    """Decide every rule, those by agent once for each agent; without verdicts it is an error."""
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
        # A rule of which no agent has enough data would pass by accident: that is an error.
        if all(result.status == "unclear" for result in decided):
            decided = [msgspec.structs.replace(result, status="error") for result in decided]
        results += decided
    results += must_pass.results()
    on_cases, asked = gate.on_cases, gate.regression
    if asked is not None and (lacking := lacks_baseline(asked.baseline, gate.folder)):
        # The first use: it has to run before there can be a baseline. Single failures decide.
        rule = f"no regression from {asked.baseline}"
        results.append(
            GateResult(rule=rule, evaluator="regression", status="unclear", reason=lacking)
        )
    elif asked is not None and regression is not None:
        results += regression.results(provenance)
        on_cases = on_cases or asked.allow_failures
    return Decision(results, on_cases, gate.on_errors)


def bound_to(bound: BoundTo | None, provenance: Provenance, *names: str) -> Iterator[str]:
    """Say what is not of the version that thresholds are for; of some ``names``, or of all."""
    for name in names or ("dataset", "config", "agents", "prompts"):
        wanted = getattr(bound, name) if bound is not None else None
        if isinstance(wanted, str):
            actual = provenance.hash_of(name)
            if actual != wanted:
                yield f"{name}: they are for {wanted}, this is {actual or 'not known'}"
        elif wanted is not None:
            hashes: Mapping[str, str] = getattr(provenance, name)
            for agent, version in wanted.items():
                if hashes.get(agent) != version:
                    known = hashes.get(agent) or "not known"
                    yield f"{name} of {agent}: they are for {version}, this is {known}"


class _MustPass:
    """Cases that must pass in every repeat; a pattern that no case meets is an error."""

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
                cases=failing[:_CASES],
            )
            if failing:
                result.reason = f"{len(failing)} of {met} results did not pass"
            elif not met:
                result.reason = "no case of this name"
            yield result


class _NoRegression:
    """Compares the results with a baseline.

    It also keeps what proves the low verdicts of failed cases, which is named for those that got
    worse.
    """

    def __init__(self, asked: Regression, folder: Path) -> None:
        self._asked, self._folder = asked, folder
        self._builder = SnapshotBuilder()
        self._lows: dict[str, list[tuple[str, str | None, Low]]] = {}

    def add(self, row: IndexRow) -> None:
        self._builder.add(row)
        if row.status == "failed":
            kept = self._lows.setdefault(row.case_id, [])
            for scores in row.by_agent:
                kept += [(scores.evaluator, scores.agent, low) for low in scores.worst]

    def results(self, provenance: Provenance) -> Iterator[GateResult]:
        asked = self._asked
        now = Snapshot(id="", name="", status="", provenance=provenance)
        now.cases = self._builder.cases()
        compared = compare(
            open_side(asked.baseline, self._folder),
            now,
            confidence=asked.confidence,
            min_effect=asked.min_effect,
        )
        rule = f"no regression from {asked.baseline}"
        problem = ""
        if compared.refused:
            problem = f"they do not compare: {'; '.join(map(str, compared.refused))}"
        elif compared.missing:
            problem = f"without a verdict that they have there: {missing_line(compared)}"
        elif not compared.comparison.axes:
            problem = "they share no case with a verdict"
        if problem:
            yield GateResult(rule=rule, evaluator="regression", status="error", reason=problem)
            if compared.refused:
                return
        # What is missing hides nothing of what is there: both are said.
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
        for case in worse[:_CASES]:
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
            yield Low(
                case_id=case.change.case,
                value=case.change.after,
                subject=[case.after.id] if case.after is not None else subject,
                steps=proof.steps if proof is not None else [],
            )


class PartOfGate(NamedTuple):
    """A gate for some of the cases, and what was left out of it."""

    gate: Gate
    left_out: list[str]


def for_some_cases(gate: Gate, ids: Collection[str], tags: Collection[str]) -> PartOfGate:
    """Leave out what needs cases that are not played: regressions, the dataset's version.

    Rules stay, unless they are for a tag that no case here has. A pattern of ``must_pass`` stays
    when a case here meets it.
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


class Figure(Protocol):
    """Collects what one rule is about."""

    rule: GateRule

    def add(self, row: IndexRow) -> None:
        """Take one result."""

    def results(self) -> list[GateResult]:
        """Say what the rule comes to, for each agent where it asks for that."""


def figure_of(rule: GateRule) -> Figure:
    """Return what collects the figure of a rule."""
    if rule.statistic is not None:
        return OfCounter(rule, rule.statistic)
    return OfEvaluator(rule) if rule.of_evaluator else OfCases(rule)


class OfEvaluator:
    """The mean of all verdicts of an evaluator."""

    def __init__(self, rule: GateRule) -> None:
        self.rule = rule
        self._counts = AgentCounts(frozenset({rule.evaluator} if rule.at_most else ()))

    def add(self, row: IndexRow) -> None:
        """Take one result."""
        own = [one for one in row.by_agent if one.evaluator == self.rule.evaluator]
        self._counts.add(own, row.case_id, row.repeat)

    def results(self) -> list[GateResult]:
        """Decide by the mean; without verdicts it is an error."""
        own = [one for one in self._counts.sums() if one.scored]
        if not own:
            return [_result_of(self.rule, "error", None, 0, reason="no verdict")]
        if self.rule.by_agent:
            return [self._result(one.agent, [one]) for one in own]
        return [self._result(None, own)]

    def _result(self, agent: str | None, sums: Sequence[AgentScores]) -> GateResult:
        rule = self.rule
        scored = sum(one.scored for one in sums)
        mean = sum(one.total for one in sums) / scored
        worst = [low for one in sums for low in one.worst if not rule.met_by(low.value or 0.0)]
        worst.sort(key=lambda low: -(low.value or 0.0) if rule.at_most else low.value or 0.0)
        result = _by_limit(rule, mean, scored, "verdicts", _distinct(worst))
        return msgspec.structs.replace(result, agent=agent)


class OfCases:
    """The share of scored results that passed, or of all results that are errors.

    An error is no failure: it has a rule of its own, and is an error of the evaluation without one.
    """

    def __init__(self, rule: GateRule) -> None:
        self.rule = rule
        self._hits = self._all = self._errors = self._skipped = 0
        self._others: list[Low] = []

    def add(self, row: IndexRow) -> None:
        """Take one result."""
        of_errors = self.rule.evaluator == "error_rate"
        self._errors += row.status == "error"
        self._skipped += row.status == "skipped"
        if not of_errors and row.status not in ("passed", "failed"):
            return
        hit = row.status == ("error" if of_errors else "passed")
        self._hits += hit
        self._all += 1
        if hit == of_errors and len(self._others) < _CASES:
            self._others.append(Low(case_id=row.case_id, repeat=row.repeat))

    def results(self) -> list[GateResult]:
        """Decide by the share; without a result it is of, that is an error."""
        of_errors = self.rule.evaluator == "error_rate"
        left = "" if of_errors else self._left_out()
        if not self._all:
            reason = f"no case was scored ({left})" if left else "no case"
            return [_result_of(self.rule, "error", None, 0, reason=reason)]
        share = self._hits / self._all
        result = _by_limit(self.rule, share, self._all, "cases", self._others)
        what = "could not be evaluated" if of_errors else "passed"
        if result.status == "failed":
            result.reason = f"{self._hits} of {self._all} {what}, {share:.4g}"
            result.reason += f"; not among them: {left}" if left else ""
        return [result]

    def _left_out(self) -> str:
        counts = [counted(self._errors, "error")] if self._errors else []
        counts += [f"{self._skipped} skipped"] if self._skipped else []
        return ", ".join(counts)


class OfCounter:
    """A statistic of what cases took; those that could not be evaluated are left out."""

    def __init__(self, rule: GateRule, statistic: str) -> None:
        self.rule = rule
        self._statistic = statistic
        self._values = array("d")
        self._unknown, self._bounds = 0, 0
        self._worst: list[Low] = []

    def add(self, row: IndexRow) -> None:
        """Take one result."""
        if row.status == "error":
            return
        name, spent = self.rule.evaluator, row.efficiency
        value = None
        if spent is not None:
            value = spent.timings.get(name) if name == "seconds" else getattr(spent, name)
        if value is None or spent is None:
            self._unknown += 1
            return
        self._values.append(value)
        self._bounds += name in spent.at_least
        sign = -1 if self.rule.at_most else 1
        low = Low(case_id=row.case_id, repeat=row.repeat, value=float(value))
        self._worst = sorted([*self._worst, low], key=lambda one: sign * (one.value or 0))[:_CASES]

    def results(self) -> list[GateResult]:
        """Decide by the statistic; what is not known of some cases decides nothing."""
        rule, known = self.rule, len(self._values)
        if not known or self._unknown:
            reason = f"it is not known of {self._unknown} of {known + self._unknown} cases"
            return [_result_of(rule, "error", None, known, reason=reason)]
        result = _by_limit(rule, self._figure(), known, "cases", self._worst)
        if self._bounds and result.status == "passed" and rule.sign != ">=":
            reason = f"it is known in part only of {self._bounds} of {known} cases"
            return [_result_of(rule, "error", result.mean, known, reason=reason)]
        if result.status == "failed":
            cases = "case" if known == 1 else "cases"
            result.reason = f"{result.mean:.4g} over {known} {cases}"
        return [result]

    def _figure(self) -> float:
        values = sorted(self._values)
        share = percentile(self._statistic)
        if share is not None:
            return quantile(values, share)
        if self._statistic == "sum":
            return math.fsum(values)
        if self._statistic == "mean":
            return math.fsum(values) / len(values)
        return values[-1] if self._statistic == "max" else values[0]


def _by_limit(
    rule: GateRule, value: float, count: int, of: str, worst: Sequence[Low]
) -> GateResult:
    if count < rule.least:
        reason = f"{counted(count, of.removesuffix('s'))}, and it takes {rule.least} to tell"
        return _result_of(rule, "unclear", value, count, reason=reason)
    if rule.met_by(value):
        return _result_of(rule, "passed", value, count)
    return msgspec.structs.replace(_result_of(rule, "failed", value, count), cases=list(worst))


def _result_of(
    rule: GateRule, status: str, value: float | None, count: int, reason: str = ""
) -> GateResult:
    plain = {"rule": rule.text, "status": status, "mean": value, "scored": count}
    name = rule.evaluator if rule.statistic is None else f"{rule.evaluator}.{rule.statistic}"
    more = {"evaluator": name, "tag": rule.tag, "threshold": rule.limit, "reason": reason}
    return msgspec.convert({**plain, **more}, GateResult)


def _distinct(worst: Sequence[Low]) -> list[Low]:
    firsts: dict[tuple[str, int], Low] = {}
    for low in worst:
        firsts.setdefault((low.case_id, low.repeat), low)
    return list(firsts.values())[:_CASES]
