"""Two evaluations of the same cases: axis by axis, agent by agent, and the cases that changed.

Below that, paired tests of one axis, and how much data they need.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist, fmean, pvariance, stdev, variance
from typing import Literal, NamedTuple

import msgspec

from .intervals import Estimate, mean_interval

_NORMAL = NormalDist()
_POWER = 0.8
_ALL_WAYS = 12
_FLIPS = 1_000, 5_000
_DRAWS = 2_000_000
_FLIPPED_UP_TO = 2_000

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


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One axis of two evaluations, over the cases that have a value in both.

    ``before`` and ``after`` are means over cases, each weighing the same however often it was
    repeated; ``difference`` is ``after - before`` with its interval. ``p`` is the chance of a
    difference at least as large, to either side, where nothing changed; ``None`` for fewer than
    two cases. ``test`` is ``mcnemar`` for single passes and ``sign_flip`` for all else.
    """

    before: float
    after: float
    difference: Estimate
    p: float | None
    test: str


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
    found = {axis: compare_pairs(*pair, confidence) for axis, pair in pairs.items()}
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


def compare_pairs(
    before: Mapping[str, Sequence[float]],
    after: Mapping[str, Sequence[float]],
    confidence: float = 0.95,
) -> Difference | None:
    """Compare the values of each case in two evaluations; ``None`` where they share no case.

    Values that are all 0 or 1, one a case, are passes: McNemar's exact test (Q. McNemar, 1947).
    All else is compared by the differences of the cases' means: their interval by the bootstrap,
    p by flipping their signs, which is exact where the bootstrap of few cases is too sure.
    """
    shared = [case for case in before if before[case] and after.get(case)]
    if not shared:
        return None
    old, new = [before[case] for case in shared], [after[case] for case in shared]
    means = [fmean(values) for values in old], [fmean(values) for values in new]
    differences = [b - a for a, b in zip(*means, strict=True)]
    single = all(len(values) == 1 and values[0] in (0, 1) for values in (*old, *new))
    if single:
        p: float | None = mcnemar(differences.count(1), differences.count(-1))
    else:
        p = sign_flip(differences) if len(shared) > 1 else None
    return Difference(
        before=fmean(means[0]),
        after=fmean(means[1]),
        difference=mean_interval(differences, confidence),
        p=p,
        test="mcnemar" if single else "sign_flip",
    )


def mcnemar(better: int, worse: int) -> float:
    """Return the two-sided p of McNemar's exact test: a fair coin over the cases that changed."""
    changed = better + worse
    tail = sum(math.comb(changed, i) for i in range(min(better, worse) + 1))
    return float(min(1.0, 2 * tail / 2**changed))


def sign_flip(differences: Sequence[float]) -> float:
    """Return the two-sided p of the paired permutation test (R. A. Fisher, 1935).

    Where nothing changed, each case's difference may as well have had the other sign: p is the
    share of ways to choose the signs that give a mean as far from 0. All ways up to 12 cases that
    differ, 1,000 to 5,000 of them beyond, and the normal limit beyond 2,000.
    """
    moved = [abs(d) for d in differences if d]
    n = len(moved)
    if n == 0:
        return 1.0
    far = abs(math.fsum(differences)) * (1 - 1e-12)
    if n > _FLIPPED_UP_TO:
        return 2 * _NORMAL.cdf(-far / math.sqrt(math.fsum(d * d for d in moved)))
    sums = _sums_by_byte(moved)
    if n <= _ALL_WAYS:
        ways: Iterable[bytes] = (way.to_bytes(len(sums), "little") for way in range(2**n))
        reached = [_reaches(sums, way, far) for way in ways]
        return reached.count(True) / len(reached)
    draw = random.Random(20250101).randbytes  # noqa: S311 - no secret is made of it
    count = max(_FLIPS[0], min(_FLIPS[1], _DRAWS // n))
    # One eight of values after the other, for all ways at once: that stays out of Python's loop.
    columns = [map(eight.__getitem__, draw(count)) for eight in sums]
    beyond = [abs(way) >= far for way in map(sum, zip(*columns, strict=True))].count(True)
    return (beyond + 1) / (count + 1)


def _sums_by_byte(values: Sequence[float]) -> list[list[float]]:
    """Return, for every eight values, their sum under each of the 256 choices of signs."""
    eights = [values[at : at + 8] for at in range(0, len(values), 8)]
    return [
        [
            math.fsum(v if way >> bit & 1 else -v for bit, v in enumerate(eight))
            for way in range(256)
        ]
        for eight in eights
    ]


def _reaches(sums: Sequence[Sequence[float]], signs: bytes, far: float) -> bool:
    return abs(sum(eight[way] for eight, way in zip(sums, signs, strict=True))) >= far


def holm(ps: Mapping[str, float]) -> dict[str, float]:
    """Return p-values corrected for looking at many axes at once (S. Holm, 1979)."""
    corrected: dict[str, float] = {}
    least = 0.0
    for rank, (axis, p) in enumerate(sorted(ps.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, p * (len(ps) - rank)))
        corrected[axis] = least
    return {axis: corrected[axis] for axis in ps}


def cases_needed(
    differences: Sequence[float], effect: float, confidence: float = 0.95, power: float = _POWER
) -> int | None:
    """Return how many cases would show a true difference of ``effect``, 4 times out of 5.

    ``n = ((z(confidence) + z(power)) * s / effect)^2``, two-sided, with ``s`` the standard
    deviation of the differences so far; ``None`` where it is not known: fewer than two, or all
    the same.
    """
    if len(differences) < 2 or effect == 0:
        return None
    spread = stdev(differences)
    return math.ceil((_reach(confidence, power) * spread / effect) ** 2) if spread else None


def repeats_needed(
    before: Sequence[Sequence[float]],
    after: Sequence[Sequence[float]],
    effect: float,
    confidence: float = 0.95,
    power: float = _POWER,
) -> int | None:
    """Return how many repeats of the same cases would show a difference of ``effect``.

    The variance of a case's difference is what repeats average out, divided by their number, and
    what stays. ``None`` where no number of repeats would do, or cases were not repeated.
    """
    if effect == 0 or any(len(values) < 2 for values in (*before, *after)):
        return None
    within = fmean(variance(a) + variance(b) for a, b in zip(before, after, strict=True))
    seen = pvariance([fmean(b) - fmean(a) for a, b in zip(before, after, strict=True)])
    noise = fmean(
        variance(a) / len(a) + variance(b) / len(b) for a, b in zip(before, after, strict=True)
    )
    between = max(0.0, seen - noise)
    allowed = len(before) * (effect / _reach(confidence, power)) ** 2 - between
    return max(1, math.ceil(within / allowed)) if allowed > 0 and within > 0 else None


def _reach(confidence: float, power: float) -> float:
    return _NORMAL.inv_cdf((1 + confidence) / 2) + _NORMAL.inv_cdf(power)
