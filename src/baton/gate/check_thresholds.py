"""Checks thresholds: the figures of evaluators, cases, costs and times, and what they are for."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from baton.model import AgentCounts, AgentScores, GateResult, Low, Provenance, counted
from baton.stats.intervals import quantile
from baton.store import IndexRow

from .read_thresholds import NAMED_CASES, BoundTo, GateRule, percentile


class Figure(Protocol):
    """Collects the figure of one rule."""

    rule: GateRule

    def add(self, row: IndexRow) -> None:
        """Add one result."""

    def results(self) -> list[GateResult]:
        """Return the result of the rule, per agent if the rule says so."""


def figure_of(rule: GateRule) -> Figure:
    """Return the collector for the figure of a rule."""
    if rule.statistic is not None:
        return OfCounter(rule, rule.statistic)
    return OfEvaluator(rule) if rule.of_evaluator else OfCases(rule)


class OfEvaluator:
    """The mean of all verdicts of an evaluator."""

    def __init__(self, rule: GateRule) -> None:
        self.rule = rule
        self._counts = AgentCounts(frozenset({rule.evaluator} if rule.at_most else ()))

    def add(self, row: IndexRow) -> None:
        """Add one result."""
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
        # A case with several low scores is named once, and leaves room for the next one.
        firsts: dict[tuple[str, int], Low] = {}
        for low in worst:
            firsts.setdefault((low.case_id, low.repeat), low)
        result = _by_limit(rule, mean, scored, "verdicts", list(firsts.values())[:NAMED_CASES])
        return msgspec.structs.replace(result, agent=agent)


class OfCases:
    """The share of scored results that passed, or of all results that are errors.

    An error is not a failure: it has a separate rule, and without one it is an error of the
    evaluation.
    """

    def __init__(self, rule: GateRule) -> None:
        self.rule = rule
        self._hits = self._all = self._errors = self._skipped = 0
        self._others: list[Low] = []

    def add(self, row: IndexRow) -> None:
        """Add one result."""
        of_errors = self.rule.evaluator == "error_rate"
        self._errors += row.status == "error"
        self._skipped += row.status == "skipped"
        if not of_errors and row.status not in ("passed", "failed"):
            return
        hit = row.status == ("error" if of_errors else "passed")
        self._hits += hit
        self._all += 1
        if hit == of_errors and len(self._others) < NAMED_CASES:
            self._others.append(Low(case_id=row.case_id, repeat=row.repeat))

    def results(self) -> list[GateResult]:
        """Decide by the share; without any result it is an error."""
        of_errors = self.rule.evaluator == "error_rate"
        if of_errors:
            left = ""
        else:
            counts = [counted(self._errors, "error")] if self._errors else []
            counts += [f"{self._skipped} skipped"] if self._skipped else []
            left = ", ".join(counts)
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


class OfCounter:
    """A statistic of costs or times of cases, without those that could not be evaluated."""

    def __init__(self, rule: GateRule, statistic: str) -> None:
        self.rule = rule
        self._statistic = statistic
        self._values = array("d")
        self._unknown, self._bounds = 0, 0
        self._worst: list[Low] = []

    def add(self, row: IndexRow) -> None:
        """Add one result."""
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
        self._worst = sorted([*self._worst, low], key=lambda one: sign * (one.value or 0))[
            :NAMED_CASES
        ]

    def results(self) -> list[GateResult]:
        """Decide by the statistic; if it is unknown for some cases, there is no decision."""
        rule, known = self.rule, len(self._values)
        if not known or self._unknown:
            reason = (
                f"it is unknown for {self._unknown} of {counted(known + self._unknown, 'case')}"
            )
            return [_result_of(rule, "error", None, known, reason=reason)]
        values = sorted(self._values)
        share = percentile(self._statistic)
        if share is not None:
            figure = quantile(values, share)
        elif self._statistic == "sum":
            figure = math.fsum(values)
        elif self._statistic == "mean":
            figure = math.fsum(values) / len(values)
        else:
            figure = values[-1] if self._statistic == "max" else values[0]
        result = _by_limit(rule, figure, known, "cases", self._worst)
        if self._bounds and result.status == "passed" and rule.sign != ">=":
            reason = f"only a part of it is known for {self._bounds} of {counted(known, 'case')}"
            return [_result_of(rule, "error", result.mean, known, reason=reason)]
        if result.status == "failed":
            cases = "case" if known == 1 else "cases"
            result.reason = f"{result.mean:.4g} over {known} {cases}"
        return [result]


def _by_limit(
    rule: GateRule, value: float, count: int, of: str, worst: Sequence[Low]
) -> GateResult:
    if count < rule.least:
        reason = f"{counted(count, of.removesuffix('s'))}, but at least {rule.least} are needed"
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


def bound_to(bound: BoundTo | None, provenance: Provenance, *names: str) -> Iterator[str]:
    """Return what lacks the version that thresholds are for; of some ``names``, or of all."""
    for name in names or ("dataset", "recordings", "config", "agents", "prompts"):
        wanted = getattr(bound, name) if bound is not None else None
        if isinstance(wanted, str):
            actual = provenance.hash_of(name)
            if not _is_version(wanted, actual):
                yield f"{name}: they are for {wanted}, but this is {actual or 'unknown'}"
        elif wanted is not None:
            hashes: Mapping[str, str] = getattr(provenance, name)
            for agent, version in wanted.items():
                if not _is_version(version, hashes.get(agent)):
                    known = hashes.get(agent) or "unknown"
                    yield f"{name} of {agent}: they are for {version}, but this is {known}"


# Tables print the first eight characters of a hash, as `git log --oneline` does: `9f28c5b7`.
_SHORT = 8


def _is_version(wanted: str, actual: str | None) -> bool:
    """Tell whether a hash is the stated one, or begins with it."""
    return actual == wanted or (len(wanted) >= _SHORT and (actual or "").startswith(wanted))
