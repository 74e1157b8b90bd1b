"""Two evaluations of the same cases: axis by axis, agent by agent, and the cases that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

import msgspec

from .paired import Difference, cases_needed, compare, holm, repeats_needed

PASSED = "cases passed"
"""The axis that every evaluation has: 1 for a case that passed, 0 for one that failed."""

Change = Literal["worse", "better", "same", "unclear"]


class Axis(NamedTuple):
    """What is compared: an evaluator, over all agents or for hand-offs to one."""

    name: str
    agent: str | None = None

    def __str__(self) -> str:
        return self.name if self.agent is None else f"{self.name} of {self.agent}"


class CaseValues(msgspec.Struct, frozen=True, kw_only=True):
    """What one evaluation says of a case: for each axis a value a repeat.

    ``errors`` counts the repeats that could not be evaluated; they have no values.
    """

    values: Mapping[Axis, Sequence[float]] = msgspec.field(default_factory=dict)
    errors: int = 0


class AxisChange(msgspec.Struct, frozen=True, kw_only=True):
    """One axis: its difference over the cases that both have, and what that comes to.

    ``p`` is corrected for the number of axes (S. Holm). ``cases_needed`` and ``repeats_needed``
    are how many would tell where it is ``unclear``; ``None`` where that is not known.
    """

    axis: Axis
    difference: Difference
    p: float | None
    change: Change
    cases_needed: int | None = None
    repeats_needed: int | None = None


class CaseChange(msgspec.Struct, frozen=True, kw_only=True):
    """A case that got worse: on which axis most, from which mean to which."""

    case: str
    axis: Axis
    before: float
    after: float


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All axes, the cases that got worse with the worst first, and what could not be compared.

    ``only_before`` and ``only_after`` are cases that the other evaluation lacks, ``errors`` those
    that one of the two could not evaluate, as ``(case, before, after)``.
    """

    cases: int
    axes: list[AxisChange]
    worse: list[CaseChange]
    only_before: list[str]
    only_after: list[str]
    errors: list[tuple[str, int, int]]
    confidence: float
    min_effect: float

    @property
    def regressions(self) -> list[AxisChange]:
        """The axes that are worse."""
        return [axis for axis in self.axes if axis.change == "worse"]

    @property
    def unclear(self) -> list[AxisChange]:
        """The axes on which more data would be needed."""
        return [axis for axis in self.axes if axis.change == "unclear"]


def compare_all(
    before: Mapping[str, CaseValues],
    after: Mapping[str, CaseValues],
    *,
    confidence: float = 0.95,
    min_effect: float = 0.0,
    lower_is_better: frozenset[str] = frozenset(),
) -> Comparison:
    """Compare two evaluations, each as its cases by id.

    An axis is ``worse`` (``better``) when its difference is real: with no difference at all, the
    chance that any axis is called so is at most ``1 - confidence``; and at least ``min_effect``.
    It is the ``same`` when its interval shuts out a drop of more than ``min_effect``, and else
    ``unclear``. A case that only one has, or could not evaluate, is in no axis.
    """
    shared = [case for case in before if case in after]
    whole = [case for case in shared if not before[case].errors and not after[case].errors]
    pairs = {axis: _of(axis, whole, before, after) for axis in _axes(whole, before, after)}
    found = {axis: compare(*pair, confidence) for axis, pair in pairs.items()}
    made = {axis: difference for axis, difference in found.items() if difference is not None}
    ps = holm({str(axis): one.p for axis, one in made.items() if one.p is not None})
    return Comparison(
        cases=len(whole),
        axes=[
            _judged(
                axis,
                one,
                ps.get(str(axis)),
                pairs[axis],
                _Rule(confidence, min_effect, -1 if axis.name in lower_is_better else 1),
            )
            for axis, one in made.items()
        ],
        worse=_worse(whole, before, after, lower_is_better),
        only_before=[case for case in before if case not in after],
        only_after=[case for case in after if case not in before],
        errors=[
            (case, before[case].errors, after[case].errors)
            for case in shared
            if before[case].errors or after[case].errors
        ],
        confidence=confidence,
        min_effect=min_effect,
    )


class _Rule(NamedTuple):
    confidence: float
    min_effect: float
    sign: int


Values = dict[str, Sequence[float]]


def _axes(
    cases: Sequence[str], before: Mapping[str, CaseValues], after: Mapping[str, CaseValues]
) -> list[Axis]:
    """Return the axes that both have: that of all cases first, then evaluators, then agents."""
    sides = [{axis for case in cases for axis in side[case].values} for side in (before, after)]
    return sorted(
        sides[0] & sides[1],
        key=lambda axis: (axis.name != PASSED, axis.agent is not None, axis.name, axis.agent or ""),
    )


def _of(
    axis: Axis,
    cases: Sequence[str],
    before: Mapping[str, CaseValues],
    after: Mapping[str, CaseValues],
) -> tuple[Values, Values]:
    old = {case: before[case].values.get(axis, ()) for case in cases}
    new = {case: after[case].values.get(axis, ()) for case in cases}
    both = [case for case in cases if old[case] and new[case]]
    return {case: old[case] for case in both}, {case: new[case] for case in both}


def _judged(
    axis: Axis, one: Difference, p: float | None, pair: tuple[Values, Values], rule: _Rule
) -> AxisChange:
    change = _change(one, p, rule)
    if change != "unclear":
        return AxisChange(axis=axis, difference=one, p=p, change=change)
    old, new = pair
    effect = max(rule.min_effect, abs(one.difference.estimate))
    differences = [fmean(new[case]) - fmean(old[case]) for case in old]
    return AxisChange(
        axis=axis,
        difference=one,
        p=p,
        change=change,
        cases_needed=cases_needed(differences, effect, rule.confidence),
        repeats_needed=repeats_needed(
            list(old.values()), list(new.values()), effect, rule.confidence
        ),
    )


def _change(one: Difference, p: float | None, rule: _Rule) -> Change:
    moved = one.difference.estimate * rule.sign
    real = p is not None and p <= 1 - rule.confidence
    if real and moved <= -max(rule.min_effect, 1e-12):
        return "worse"
    if real and moved >= max(rule.min_effect, 1e-12):
        return "better"
    low, high = one.difference.low, one.difference.high
    if low is None or high is None:
        # All differences are alike: nothing moved in any case, or there is one case alone.
        return "same" if moved == 0 and one.difference.n > 1 else "unclear"
    floor = low if rule.sign > 0 else -high
    return "same" if floor >= -rule.min_effect else "unclear"


def _worse(
    cases: Sequence[str],
    before: Mapping[str, CaseValues],
    after: Mapping[str, CaseValues],
    lower_is_better: frozenset[str],
) -> list[CaseChange]:
    found = []
    for case in cases:
        old, new = before[case].values, after[case].values
        drops = [
            CaseChange(case=case, axis=axis, before=fmean(old[axis]), after=fmean(new[axis]))
            for axis in old
            if axis.agent is None and old[axis] and new.get(axis)
        ]
        drops = [d for d in drops if _drop(d, lower_is_better) > 1e-12]
        if drops:
            found.append(
                max(drops, key=lambda d: (d.axis.name != PASSED, _drop(d, lower_is_better)))
            )
    found.sort(key=lambda d: (-_drop(d, lower_is_better), d.case))
    return found


def _drop(change: CaseChange, lower_is_better: frozenset[str]) -> float:
    drop = change.before - change.after
    return -drop if change.axis.name in lower_is_better else drop
