"""Decides for each axis of two evaluations whether it got worse or better, or stayed the same.

Axes are cases passed, evaluators, and evaluators by agent. Cases passed is the primary axis, and
gets most of the allowed chance of a false alarm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

import msgspec

from baton.model.score import TOLERANCE
from baton.stats.sample_size import cases_needed, repeats_needed
from baton.stats.significance import Difference, compare_pairs, holm

# People act on "fewer cases pass", and a correction for 20 other axes must not hide it. So this
# axis gets 0.04 of 0.05, and the others share 0.01. Once a change of this axis is proven, the
# others share 0.05 (the fallback procedure of B. L. Wiens, 2003).
_PRIMARY_SHARE = 0.8

PASSED = "cases passed"
"""The primary axis of every evaluation: 1 for a case that passed, 0 for one that failed."""

Change = Literal["worse", "better", "same", "unclear"]


class Axis(NamedTuple):
    """A quantity to compare: an evaluator, for all agents or for dispatches to one agent."""

    name: str
    agent: str | None = None

    def __str__(self) -> str:
        return self.name if self.agent is None else f"{self.name} of {self.agent}"


CASES_PASSED = Axis(PASSED)


class CaseValues(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a case in one evaluation: for each axis, one value per repeat.

    ``errors`` counts the repeats that could not be evaluated; they have no values.
    """

    values: Mapping[Axis, Sequence[float]] = msgspec.field(default_factory=dict)
    errors: int = 0


class AxisChange(msgspec.Struct, frozen=True, kw_only=True):
    """One axis: its difference over the shared cases, and the conclusion.

    ``p`` is corrected for the number of axes, see :func:`compare_all`. For an ``unclear`` axis,
    ``cases_needed`` and ``repeats_needed`` are how many would decide it; ``None`` if unknown.
    """

    axis: Axis
    difference: Difference
    p: float | None
    change: Change
    cases_needed: int | None = None
    repeats_needed: int | None = None


class CaseChange(msgspec.Struct, frozen=True, kw_only=True):
    """A case that got worse: the axis with the largest drop, and the means before and after."""

    case: str
    axis: Axis
    before: float
    after: float


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All axes, the cases that got worse (the worst first), and cases that cannot be compared.

    ``broken`` are cases that passed in every repeat before and fail in every repeat now.
    ``only_before`` and ``only_after`` are cases that are missing in the other evaluation.
    ``errors`` are cases for which one of the two could not evaluate some repeats, as ``(case,
    before, after)``.
    """

    cases: int
    axes: list[AxisChange]
    worse: list[CaseChange]
    broken: list[str]
    only_before: list[str]
    only_after: list[str]
    errors: list[tuple[str, int, int]]
    confidence: float
    min_effect: float

    @property
    def regressions(self) -> list[AxisChange]:
        """The axes that got worse."""
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
    primary: Axis = CASES_PASSED,
) -> Comparison:
    """Compare two evaluations; each maps the ids of cases to their values.

    An axis is ``worse`` (``better``) if its difference is significant and at least ``min_effect``:
    if nothing changed, the probability that any axis is called worse is at most ``1 -
    confidence``. It is the ``same`` if its interval excludes a drop of more than ``min_effect``,
    and otherwise ``unclear``. Cases without a value in both evaluations are ignored.

    The ``primary`` axis is tested first with 80 % of ``1 - confidence``, so that many other axes
    cannot hide that cases break, or that a change reached its goal. The others share the rest
    by S. Holm's correction, or all of it if the primary axis changed (the fallback procedure:
    B. L. Wiens, "A fixed sequence Bonferroni procedure for testing multiple endpoints",
    Pharmaceutical Statistics 2, 2003), or if there is no primary axis. ``p`` of an axis is divided
    by its share, so that it can always be compared with ``1 - confidence``.
    """
    shared = [case for case in before if case in after]
    whole = [case for case in shared if before[case].values and after[case].values]
    # The axes of both: first that of all cases, then evaluators, then agents.
    sides = [{axis for case in whole for axis in side[case].values} for side in (before, after)]
    axes = sorted(
        sides[0] & sides[1],
        key=lambda axis: (axis.name != PASSED, axis.agent is not None, axis.name, axis.agent or ""),
    )
    pairs = {axis: _of(axis, whole, before, after) for axis in axes}
    compared = {axis: compare_pairs(*pair, confidence) for axis, pair in pairs.items()}
    made = {axis: difference for axis, difference in compared.items() if difference is not None}
    known = {axis: one.p for axis, one in made.items() if one.p is not None}
    ps = _corrected(known, confidence, primary)
    old, new = pairs.get(Axis(PASSED), ({}, {}))
    return Comparison(
        cases=len(whole),
        axes=[
            _judged(
                axis,
                one,
                ps.get(axis),
                pairs[axis],
                _Rule(confidence, min_effect, -1 if axis.name in lower_is_better else 1),
            )
            for axis, one in made.items()
        ],
        worse=_worse(whole, before, after, lower_is_better),
        broken=[case for case in old if min(old[case]) == 1 and max(new[case]) == 0],
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


def _corrected(ps: Mapping[Axis, float], confidence: float, primary: Axis) -> dict[Axis, float]:
    """Return corrected p-values to compare with ``1 - confidence``, see :func:`compare_all`."""
    others = {str(axis): p for axis, p in ps.items() if axis != primary}
    if primary not in ps or not others:
        own, rest = 1.0, 1.0
    else:
        own = _PRIMARY_SHARE
        rest = 1.0 if ps[primary] / own <= 1 - confidence else 1 - own
    of_others = holm(others)
    return {
        axis: min(1.0, p / own if axis == primary else of_others[str(axis)] / rest)
        for axis, p in ps.items()
    }


class _Rule(NamedTuple):
    confidence: float
    min_effect: float
    sign: int


Values = dict[str, Sequence[float]]


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
    effect = max(rule.min_effect, abs(one.difference.value))
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
    moved = one.difference.value * rule.sign
    real = p is not None and p <= 1 - rule.confidence
    # One case of 20 is a drop of exactly 0.05: the rounding of means must not decide.
    least = max(rule.min_effect - TOLERANCE, 1e-12)
    if real and moved <= -least:
        return "worse"
    if real and moved >= least:
        return "better"
    low, high = one.difference.low, one.difference.high
    if low is None or high is None:
        # All differences are equal: no case changed, or there is only one case.
        return "same" if moved == 0 and one.difference.n > 1 else "unclear"
    floor = low if rule.sign > 0 else -high
    return "same" if floor >= -rule.min_effect else "unclear"


def _worse(
    cases: Sequence[str],
    before: Mapping[str, CaseValues],
    after: Mapping[str, CaseValues],
    lower_is_better: frozenset[str],
) -> list[CaseChange]:
    changes = []
    for case in cases:
        old, new = before[case].values, after[case].values
        drops = [
            CaseChange(case=case, axis=axis, before=fmean(old[axis]), after=fmean(new[axis]))
            for axis in old
            if axis.agent is None and old[axis] and new.get(axis)
        ]
        drops = [d for d in drops if _drop(d, lower_is_better) > 1e-12]
        if drops:
            changes.append(
                max(drops, key=lambda d: (d.axis.name != PASSED, _drop(d, lower_is_better)))
            )
    changes.sort(key=lambda d: (-_drop(d, lower_is_better), d.case))
    return changes


def _drop(change: CaseChange, lower_is_better: frozenset[str]) -> float:
    drop = change.before - change.after
    return -drop if change.axis.name in lower_is_better else drop
