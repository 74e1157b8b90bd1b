"""Two evaluations held against each other: what got worse, what cannot be told, and why."""

from __future__ import annotations

from typing import Literal

import msgspec

from baton.analysis.comparison import (
    PASSED,
    Axis,
    AxisChange,
    CaseChange,
    Comparison,
    compare_all,
)
from baton.model import Differs, Hop, changed, first_difference, incomparable

from .snapshot import CaseSnapshot, Snapshot

Outcome = Literal["worse", "unclear", "same", "better", "error"]


class WorseCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case that got worse, and the first hand-off that differs.

    ``parted`` tells that routes differ at all; ``before`` or ``after`` is ``None`` where that
    route had ended.
    """

    change: CaseChange
    parted: bool = False
    before: Hop | None = None
    after: Hop | None = None


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison, and what of both sides differs.

    ``refused`` is what keeps them from being compared, ``changed`` what may be the reason.
    ``missing`` are cases with a verdict before and none now: they are no passes.
    """

    before: Snapshot
    after: Snapshot
    comparison: Comparison
    refused: list[Differs]
    changed: list[Differs]
    missing: list[str]
    cases: list[WorseCase]

    @property
    def open(self) -> list[AxisChange]:
        """The axes on which a drop cannot be ruled out.

        Those of one sub-agent are among them when it did worse: it may have few cases, and they
        count for the evaluator as a whole anyway.
        """
        lower = {*self.before.provenance.lower, *self.after.provenance.lower}
        return [
            one
            for one in self.comparison.unclear
            if one.axis.agent is None
            or one.difference.difference.estimate * (-1 if one.axis.name in lower else 1) < 0
        ]

    @property
    def outcome(self) -> Outcome:
        """What it comes to: an error outranks all; what is unclear is neither good nor bad."""
        if self.missing or not self.comparison.axes:
            return "error"
        if self.comparison.regressions:
            return "worse"
        if self.open:
            return "unclear"
        better = any(axis.change == "better" for axis in self.comparison.axes)
        return "better" if better else "same"


def compare(
    before: Snapshot, after: Snapshot, *, confidence: float = 0.95, min_effect: float = 0.05
) -> Compared:
    """Compare two evaluations; what they do not share is told, and the rest compared."""
    old, new = before.provenance, after.provenance
    lower = frozenset({*old.lower, *new.lower})
    comparison = compare_all(
        before.values(),
        after.values(),
        confidence=confidence,
        min_effect=min_effect,
        lower_is_better=lower,
    )
    sides = before.by_id(), after.by_id()
    return Compared(
        before=before,
        after=after,
        comparison=comparison,
        refused=incomparable(old, new),
        changed=changed(old, new),
        missing=_missing(*sides),
        cases=[_case(change, *sides) for change in comparison.worse],
    )


def _missing(before: dict[str, CaseSnapshot], after: dict[str, CaseSnapshot]) -> list[str]:
    """Return the cases that had a verdict and have none, or not in every repeat."""
    found = []
    for name, case in before.items():
        other = after.get(name)
        judged = bool(case.of(Axis(PASSED)))
        if judged and (other is None or other.errors or not other.of(Axis(PASSED))):
            found.append(name)
    return found


def _case(
    change: CaseChange, before: dict[str, CaseSnapshot], after: dict[str, CaseSnapshot]
) -> WorseCase:
    old, new = before[change.case], after[change.case]
    good = old.route if old.route is not None else old.worst
    bad = new.worst if new.worst is not None else new.route
    parted = first_difference(good or [], bad or [])
    if parted is None:
        return WorseCase(change=change)
    return WorseCase(change=change, parted=True, before=parted[0], after=parted[1])
