"""Compares two evaluations: what got worse, what is unclear, and why."""

from __future__ import annotations

from typing import Literal

import msgspec

from baton.gate.compare_axes import PASSED, Axis, AxisChange, CaseChange, Comparison, compare_all
from baton.model import Differs, Hop, changed, counted, first_difference, incomparable
from baton.model.score import digits

from .snapshot import Snapshot

_PASSED_AXIS = Axis(PASSED)
Outcome = Literal["worse", "unclear", "same", "better", "error"]


class WorseCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case that got worse, and the first dispatch that differs.

    ``parted`` says whether routes differ at all; ``before`` or ``after`` is ``None`` if that route
    had ended.
    """

    change: CaseChange
    parted: bool = False
    before: Hop | None = None
    after: Hop | None = None


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison, and what differs between both sides.

    ``refused`` says why they cannot be compared, ``changed`` what may explain a difference.
    ``missing`` are cases with a verdict before and none now, or not in every repeat: they do not
    count as passed.
    """

    before: Snapshot
    after: Snapshot
    comparison: Comparison
    refused: list[Differs]
    changed: list[Differs]
    missing: list[str]
    cases: list[WorseCase]

    @property
    def itself(self) -> bool:
        """Whether both sides are the same evaluation, so that nothing is compared."""
        return _are_same(self.before, self.after)

    @property
    def open(self) -> list[AxisChange]:
        """The axes on which a drop cannot be ruled out.

        Axes of one sub-agent are included only when it did worse: it may have few cases, and they
        count for the whole evaluator anyway.
        """
        lower = {*self.before.provenance.lower, *self.after.provenance.lower}
        return [
            one
            for one in self.comparison.unclear
            if one.axis.agent is None
            or one.difference.difference.value * (-1 if one.axis.name in lower else 1) < 0
        ]

    @property
    def outcome(self) -> Outcome:
        """The result: an error outranks everything; what is unclear is neither good nor bad.

        An evaluation compared with itself is an error: it would never be worse, for example in a
        build whose new evaluation was not written.
        """
        if self.itself or self.missing or not self.comparison.axes:
            return "error"
        if self.comparison.regressions:
            return "worse"
        if self.open:
            return "unclear"
        better = any(axis.change == "better" for axis in self.comparison.axes)
        return "better" if better else "same"


def _are_same(before: Snapshot, after: Snapshot) -> bool:
    """Tell by start and results: names of folders are not unique (`main/run`, `pr/run`).

    A copy, a baseline and an evaluation in memory have the start of the folder, and its results.
    A folder that was resumed since then keeps its start and its id.
    """
    if not after.made:  # made by a program: `Evaluation(...)`, or by hand
        return before is after or (bool(after.id) and before.id == after.id)
    is_one = before.id == after.id or before.cases == after.cases
    return before.made == after.made and is_one


def compare(
    before: Snapshot, after: Snapshot, *, confidence: float = 0.95, min_effect: float = 0.05
) -> Compared:
    """Compare two evaluations; cases that only one of them has are listed."""
    old, new = before.provenance, after.provenance
    lower = frozenset({*old.lower, *new.lower})
    comparison = compare_all(
        before.values(),
        after.values(),
        confidence=confidence,
        min_effect=min_effect,
        lower_is_better=lower,
    )
    if _are_same(before, after):
        # Nothing is compared, so no axis is "no worse", nor unclear.
        comparison = msgspec.structs.replace(comparison, axes=[])
    old_cases, new_cases = before.by_id(), after.by_id()
    # Cases that had a verdict and have none now, or not in every repeat, do not count as passed.
    missing = [
        name
        for name, case in old_cases.items()
        if case.of(_PASSED_AXIS)
        and ((now := new_cases.get(name)) is None or now.errors or not now.of(_PASSED_AXIS))
    ]
    worse_cases: list[WorseCase] = []
    for change in comparison.worse:
        case_before = old_cases[change.case]
        case_after = new_cases[change.case]
        good = case_before.route if case_before.route is not None else case_before.worst
        bad = case_after.worst if case_after.worst is not None else case_after.route
        parted = first_difference(good or [], bad or [])
        if parted is None:
            worse_cases.append(WorseCase(change=change))
        else:
            worse_cases.append(
                WorseCase(change=change, parted=True, before=parted[0], after=parted[1])
            )
    return Compared(
        before=before,
        after=after,
        comparison=comparison,
        refused=incomparable(old, new),
        changed=changed(old, new),
        missing=missing,
        cases=worse_cases,
    )


def missing_line(compared: Compared) -> str:
    """Say which cases lost their verdict, or have none in some repeat, and why."""
    after = compared.after.by_id()
    errors = [name for name in compared.missing if name in after and after[name].errors]
    some = ", ".join(compared.missing[:5])
    more = ", …" if len(compared.missing) > 5 else ""
    why = f" ({len(errors)} with errors)" if errors else ""
    return f"{cases(len(compared.missing))}{why}, {some}{more}"


def axis_line(one: AxisChange) -> str:
    """Say how an axis changed, whether that is significant, and how much data would show it."""
    text = f"{figures(one)} over {cases(one.difference.difference.n)}"
    if one.change == "unclear":
        return f"can't tell: {text}; {needed(one)}"
    if one.p is None:
        return text
    p = p_text(one.p)
    return f"{text}, p {p}" if p.startswith("<") else f"{text}, p = {p}"


def figures(one: AxisChange) -> str:
    """Write ``0.90 → 0.80 (-0.10 [-0.15, -0.05])``."""
    made = one.difference
    apart = made.difference
    interval = ""
    places = digits(made.before, made.after)
    if apart.low is not None and apart.high is not None:
        interval = f" [{apart.low:+.{places}f}, {apart.high:+.{places}f}]"
    return (
        f"{made.before:.{places}f} → {made.after:.{places}f} ({apart.value:+.{places}f}{interval})"
    )


def needed(one: AxisChange) -> str:
    """Say how many cases or repeats would decide it."""
    have = one.difference.difference.n
    ways = []
    if one.repeats_needed is not None:
        ways.append(f"{counted(one.repeats_needed, 'repeat')} of each case")
    if one.cases_needed is not None and one.cases_needed > have:
        ways.append(counted(one.cases_needed - have, "more case"))
    if ways:
        return f"{' or '.join(ways)} would decide it"
    # One case, or cases that all changed by the same amount, have no spread to compute it from.
    return "add cases or repeats"


def p_text(p: float) -> str:
    """Write a p-value, never as 0."""
    return f"{p:.2g}" if p >= 0.001 else "< 0.001"


def cases(count: int) -> str:
    """Write a number of cases."""
    return f"{count} {'case' if count == 1 else 'cases'}"
