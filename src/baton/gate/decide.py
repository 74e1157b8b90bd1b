"""What a gate comes to, from the index of an evaluation in one pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from baton.model import GateResult, Low, Provenance
from baton.stats.comparison import PASSED, AxisChange
from baton.store import IndexRow

from .baseline import Snapshot, SnapshotBuilder, open_side
from .compare import Compared, axis_line, cases, compare
from .measures import figure_of
from .rules import BoundTo, Gate, Regression

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
    figures = [figure_of(rule) for rule in gate.rules]
    must = _MustPass(gate.must_pass)
    builder = SnapshotBuilder() if gate.regression else None
    lows = _Lows()
    for row in rows:
        for figure in figures:
            if figure.rule.tag is None or figure.rule.tag in row.tags:
                figure.add(row)
        must.add(row)
        if builder is not None:
            builder.add(row)
            lows.add(row)
    found = list(_bound(gate.bound, provenance or Provenance()))
    for figure in figures:
        found += _some_decided(figure.results())
    found += must.results()
    if gate.regression is not None and builder is not None:
        now = Snapshot(id="", name="", status="", provenance=provenance or Provenance())
        now.cases = builder.cases()
        found += _regressed(gate, gate.regression, now, lows)
    return Decision(found, gate.on_cases, gate.on_errors)


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
                    told = hashes.get(agent) or "not known"
                    yield f"{name} of {agent}: they are for {version}, this is {told}"


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


def _some_decided(results: list[GateResult]) -> list[GateResult]:
    """Let a rule of which nothing is clear be an error: it would pass by accident."""
    if all(result.status == "unclear" for result in results):
        return [msgspec.structs.replace(result, status="error") for result in results]
    return results


def _bound(bound: BoundTo | None, provenance: Provenance) -> Iterator[GateResult]:
    for line in bound_to(bound, provenance):
        yield GateResult(rule=BOUND, evaluator=BOUND, status="error", reason=line)


def _regressed(gate: Gate, asked: Regression, now: Snapshot, lows: _Lows) -> Iterator[GateResult]:
    compared = compare(
        open_side(asked.baseline, gate.folder),
        now,
        confidence=asked.confidence,
        min_effect=asked.min_effect,
    )
    rule = f"no regression from {asked.baseline}"
    trouble = _trouble(compared)
    if trouble:
        yield GateResult(rule=rule, evaluator="regression", status="error", reason=trouble)
        return
    told = [*compared.comparison.regressions, *compared.open]
    if not told:
        count = compared.comparison.cases
        yield GateResult(rule=rule, evaluator="regression", status="passed", scored=count)
    for one in told:
        yield _of_axis(rule, one, compared, lows)


def _trouble(compared: Compared) -> str:
    if compared.refused:
        return f"they do not compare: {'; '.join(map(str, compared.refused))}"
    if compared.missing:
        some = ", ".join(compared.missing[:_CASES])
        return f"without a verdict that they have there: {cases(len(compared.missing))}, {some}"
    return "" if compared.comparison.axes else "they share no case with a verdict"


class _Lows:
    """What proves the low verdicts of cases that did not pass."""

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[str, str | None, Low]]] = {}

    def add(self, row: IndexRow) -> None:
        if row.status != "failed":
            return
        kept = self._found.setdefault(row.case_id, [])
        for scores in row.by_agent:
            kept += [(scores.evaluator, scores.agent, low) for low in scores.worst]

    def of(self, case: str, evaluator: str, agent: str | None) -> Low | None:
        """Return the lowest verdict that is about an axis."""
        found = [
            low
            for name, whose, low in self._found.get(case, ())
            if evaluator in (PASSED, name) and agent in (None, whose)
        ]
        return min(found, key=lambda low: low.value or 0.0, default=None)


def _of_axis(rule: str, one: AxisChange, compared: Compared, lows: _Lows) -> GateResult:
    axis, made = one.axis, one.difference
    worse = [case for case in compared.cases if axis.name in (PASSED, case.change.axis.name)]
    named = [(case, lows.of(case.change.case, axis.name, axis.agent)) for case in worse[:_CASES]]
    return GateResult(
        rule=rule,
        evaluator=axis.name,
        agent=axis.agent,
        status="failed" if one.change == "worse" else "unclear",
        mean=made.after,
        scored=made.difference.n,
        cases=[
            Low(
                case_id=case.change.case,
                value=case.change.after,
                subject=[case.after.id] if case.after else low.subject if low else [],
                steps=low.steps if low else [],
            )
            for case, low in named
        ]
        if one.change == "worse"
        else [],
        reason=axis_line(one),
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
