"""Decides whether a candidate is better, only on held-out cases.

The test is the one of `baton compare`: paired, and corrected for the number of axes. A gain is
proven if the aimed axis is better and no axis of any agent is worse. Anything doubtful is not a
gain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from baton.gate.compare_axes import (
    CASES_PASSED,
    Axis,
    AxisChange,
    CaseValues,
    Comparison,
    compare_all,
)
from baton.gate.snapshot import SnapshotBuilder
from baton.model import counted
from baton.model.option_spelling import option
from baton.model.score import rounded
from baton.stats.sample_size import cases_needed
from baton.stats.significance import Difference, compare_pairs, drop_of_passes
from baton.store import IndexRow

from .result import Outcome, Proof

MOST_LOST = 0.1
"""The share of held-out cases that may have no value because a play failed to run. If more are
lost, the remaining cases are no longer a random sample. An error is not a gain, and not a zero."""
ERRORS = "cases without an error"
_ALPHA = 0.05
"""Errors count as worse, and a witness agrees, if chance alone gives such a difference in at most
one of 20 comparisons."""


class Side(NamedTuple):
    """The held-out cases, played with the original text or with the candidate.

    Args:
        cases: the values of each case, by its id.
        text: the component's text.
        cost_usd: the average cost of a case, as far as prices are known.
    """

    cases: Mapping[str, CaseValues]
    text: str
    cost_usd: float | None = None


class Decided(NamedTuple):
    """The result of the test, and the reason in a sentence."""

    outcome: Outcome
    reason: str
    proof: Proof


def side_of(rows: Iterable[IndexRow], text: str, costs: Iterable[float | None]) -> Side:
    """Return short results as a side; ``costs`` are the costs of the plays, if known."""
    builder = SnapshotBuilder()
    for row in rows:
        builder.add(row)
    spent = [cost for cost in costs if cost is not None]
    cases = {each.id: each.values() for each in builder.cases()}
    return Side(cases, text, fmean(spent) if spent else None)


def prove(
    before: Side,
    after: Side,
    aimed: Axis = CASES_PASSED,
    *,
    groups: Mapping[str, str] | None = None,
    judged: Collection[str] = (),
    witnesses: Sequence[Axis] = (),
    of_work: Collection[str] = (),
    lower_is_better: frozenset[str] = frozenset(),
    confidence: float = 0.95,
) -> Decided:
    """Decide whether a candidate is better.

    Args:
        before: the held-out cases with the original text.
        after: the same cases with the candidate, played in the same way.
        aimed: the axis that must improve.
        groups: the group of each case by its id (``split.Drawn.groups``). Cases of a group are not
            independent evidence: a group counts once, with the mean of its cases.
        judged: the names of axes that a judge decides, or helps to decide. A candidate may flatter
            a judge, so for such an aim one of ``witnesses`` must improve as well.
        witnesses: the axes of a second judge, of findings, or of evaluators without a judge.
        of_work: the names of axes of single dispatches, runs or calls. They may have no value if a
            case passes without any; all other axes are about the case, and must keep a value.
        lower_is_better: the names of axes for which lower is better.
        confidence: the confidence level of the test.
    """
    old, new = (_by_group(side.cases, groups or {}) for side in (before, after))
    comparison = compare_all(
        old, new, confidence=confidence, lower_is_better=lower_is_better, primary=aimed
    )
    worse = [str(each.axis) for each in comparison.regressions]
    if _more_errors(before.cases, after.cases) <= _ALPHA:
        worse.append(ERRORS)
    gain = next((each for each in comparison.axes if each.axis == aimed), None)
    needed = None if gain is None or gain.change == "better" else _needed(old, new, aimed)
    proof = Proof(
        comparison=comparison,
        aimed=aimed,
        worse=worse,
        cases_needed=needed,
        words=(len(before.text.split()), len(after.text.split())),
        cost_usd=(before.cost_usd, after.cost_usd),
    )
    doubt = (
        _lost(before.cases, after.cases, aimed)
        or _vanished(before.cases, after.cases, of_work)
        or _not_better(gain, len(old), needed)
        or (f"it is worse in {_listed(worse)}" if worse else None)
        or _fewer_pass(comparison, aimed)
        or _flattery(old, new, aimed, judged, witnesses, lower_is_better)
    )
    if doubt is not None:
        return Decided("no proven gain", doubt, proof)
    assert gain is not None  # noqa: S101 - it is better
    return Decided("proven", f"{aimed} {_moved(gain)}, and nothing is worse", proof)


def _by_group(cases: Mapping[str, CaseValues], groups: Mapping[str, str]) -> dict[str, CaseValues]:
    """Return groups in the form of cases: a group's value is the mean of its cases' means."""
    members: defaultdict[str, list[CaseValues]] = defaultdict(list)
    for id_, values in cases.items():
        members[groups.get(id_, id_)].append(values)
    return {group: own[0] if len(own) == 1 else _together(own) for group, own in members.items()}


def _together(cases: Sequence[CaseValues]) -> CaseValues:
    axes = dict.fromkeys(axis for each in cases for axis in each.values)
    means = {
        axis: [fmean(each.values[axis]) for each in cases if each.values.get(axis)] for axis in axes
    }
    values = {axis: [fmean(own)] for axis, own in means.items() if own}
    return CaseValues(values=values, errors=sum(each.errors for each in cases))


def _more_errors(before: Mapping[str, CaseValues], after: Mapping[str, CaseValues]) -> float:
    """Return the probability of this many new errors if the candidate causes none."""
    runs = []
    for id_ in before:
        if id_ in after:
            old, new = _played(before[id_]), _played(after[id_])
            runs.append((*old, *new))
    return drop_of_passes(runs) if runs else 1.0


def _played(case: CaseValues) -> tuple[int, int]:
    """Return how many repeats of a case have a value, and how many there were."""
    fine = max((len(values) for values in case.values.values()), default=0)
    return fine, fine + case.errors


def _lost(
    before: Mapping[str, CaseValues], after: Mapping[str, CaseValues], aimed: Axis
) -> str | None:
    """Return a message if too many cases have no value because of errors."""
    every = {*before, *after}
    lost = [
        id_
        for id_ in every
        if any(
            (side.get(id_) is None) or (side[id_].errors and not side[id_].values.get(aimed))
            for side in (before, after)
        )
        # It had a value and has none now: the remaining cases are a selection made by the text.
        or (before[id_].values.get(aimed) and not after[id_].values.get(aimed))
    ]
    if len(lost) <= MOST_LOST * len(every):
        return None
    gone = sum(bool(before[id_].values.get(aimed)) for id_ in lost if id_ in before)
    return (
        f"{len(lost)} of {counted(len(every), 'held-out case')} have no value of {aimed} on one "
        f"side ({gone} had one before), because of errors, or because it says nothing about them"
    )


def _fewer_pass(comparison: Comparison, aimed: Axis) -> str | None:
    """Return a message if fewer cases pass, even if by chance: no other axis is worth that."""
    for each in comparison.axes:
        if each.axis == CASES_PASSED != aimed and each.difference.difference.value < 0:
            return f"{aimed} is better, but {each.axis} {_moved(each)}"
    return None


def _vanished(
    before: Mapping[str, CaseValues], after: Mapping[str, CaseValues], of_work: Collection[str]
) -> str | None:
    """Return a message if an evaluator no longer has a verdict on cases.

    A text that keeps an agent from handing work over leaves no dispatches to judge. If the case
    passes, its expectations are met without them: for example, a desk now gives the right answer by
    itself. An evaluator of the whole case has no such excuse: if the answer is no longer judged,
    because the agent waits for someone, the case may pass by its route alone. Axes of one agent
    come and go with the work that it receives.
    """
    axes = {axis for case in before.values() for axis in case.values if axis.agent is None}
    for axis in sorted(axes - {CASES_PASSED}, key=str):
        had = [id_ for id_, case in before.items() if case.values.get(axis) and id_ in after]
        gone = [
            id_
            for id_ in had
            if not after[id_].values.get(axis)
            and not after[id_].errors
            and (axis.name not in of_work or min(after[id_].values.get(CASES_PASSED) or [0.0]) < 1)
        ]
        if len(gone) > MOST_LOST * len(had):
            return f"{axis} no longer has a value on {len(gone)} of {counted(len(had), 'case')}"
    return None


def _needed(
    old: Mapping[str, CaseValues], new: Mapping[str, CaseValues], aimed: Axis
) -> int | None:
    """Return how many groups would prove the observed difference, if it is real."""
    sides = [_values(side, aimed) for side in (old, new)]
    shared = [id_ for id_ in sides[0] if id_ in sides[1]]
    differences = [fmean(sides[1][id_]) - fmean(sides[0][id_]) for id_ in shared]
    effect = abs(fmean(differences)) if differences else 0.0
    needed = cases_needed(differences, effect)
    # This is a normal approximation: for few cases it may name fewer than were not enough.
    return needed if needed is not None and needed > len(old) else None


def _values(side: Mapping[str, CaseValues], axis: Axis) -> dict[str, Sequence[float]]:
    return {id_: case.values[axis] for id_, case in side.items() if case.values.get(axis)}


def _not_better(change: AxisChange | None, groups: int, needed: int | None) -> str | None:
    if change is None:
        return "no held-out case has a value on the aimed axis"
    if change.change == "better":
        return None
    if change.change == "worse":
        return f"{change.axis} is worse: it {_moved(change)}"
    more = f"; about {needed} would be enough to tell" if needed is not None else ""
    if not change.difference.difference.value:
        return f"{change.axis} stays at {rounded(change.difference.after)}"
    return (
        f"{change.axis} {_moved(change)} over {counted(groups, 'held-out group')} of cases, which "
        f"may be chance{more}"
    )


def _flattery(
    old: Mapping[str, CaseValues],
    new: Mapping[str, CaseValues],
    aimed: Axis,
    judged: Collection[str],
    witnesses: Sequence[Axis],
    lower_is_better: frozenset[str],
) -> str | None:
    """Return a message if only a judge finds the candidate better, and no witness does."""
    if aimed.name not in judged:
        return None
    others = [axis for axis in witnesses if axis != aimed]
    if not others:
        return (
            f"a judge alone decides on {aimed}, and a text may flatter a judge: an evaluator that "
            f"asks nobody, or a second judge ({option('second_judge')}), has to agree"
        )
    for axis in others:
        change = compare_pairs(_values(old, axis), _values(new, axis))
        sign = -1 if axis.name in lower_is_better else 1
        if change is not None and _agrees(change, sign):
            return None
    return (
        f"a judge finds it better in {aimed}, and a text may flatter a judge: "
        f"{_listed([*map(str, others)])} would have to agree, and does not"
    )


def _agrees(difference: Difference, sign: int) -> bool:
    """Return whether a witness agrees; one is enough, so their number needs no correction."""
    return (
        difference.p is not None
        and difference.p <= _ALPHA
        and difference.difference.value * sign > 0
    )


def _moved(change: AxisChange) -> str:
    one = change.difference
    verb = "rises" if one.after > one.before else "falls"
    before, after = rounded(one.before, one.after), rounded(one.after, one.before)
    return f"{verb} from {before} to {after}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
