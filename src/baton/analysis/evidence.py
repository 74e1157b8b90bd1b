"""When labels are enough to speak of: a rule that is stated, and says what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from baton.model import counted

from .agreement import ClassQuality
from .intervals import Estimate, needed_for

LEAST_ITEMS = 40
"""Labelled items at least: seed sets of dispatches start at 40."""
LEAST_OF_CLASS = 8
"""Items of a label at least, of two labels: a judge that always says the same shows only then."""
WIDEST = 0.1
"""How far the 95 % interval of agreement may reach to either side."""
LEAST_ANSWERED = 0.9
"""How many of the labelled items a judge has to have answered."""


def lacking(
    agreement: Estimate | None, classes: Sequence[ClassQuality], *, asked: int
) -> list[str]:
    """Say what keeps labels from being evidence; nothing when they are.

    Evidence needs ``LEAST_ITEMS`` items with a label and a verdict, two labels with
    ``LEAST_OF_CLASS`` items each, an interval of agreement of at most ``WIDEST`` to either side,
    and verdicts on ``LEAST_ANSWERED`` of the ``asked`` items.
    """
    n = agreement.n if agreement is not None else 0
    reasons = []
    if n < LEAST_ITEMS:
        reasons.append(f"{counted(n, 'label')}, at least {LEAST_ITEMS} are needed")
    filled = [one for one in classes if one.labelled >= LEAST_OF_CLASS]
    if len(filled) < 2:
        there = ", ".join(f"{one.labelled} `{one.label}`" for one in classes if one.labelled)
        reasons.append(
            f"at least {LEAST_OF_CLASS} of each of two labels are needed, there are "
            f"{there or 'none'}"
        )
    if agreement is not None and n >= LEAST_ITEMS and agreement.half_width > WIDEST:
        needed = needed_for(agreement.value, WIDEST)
        reasons.append(
            f"agreement is known to ±{agreement.half_width:.2f} only; about {needed} labels "
            f"are needed for ±{WIDEST:.2f}"
        )
    if asked and n < LEAST_ANSWERED * asked:
        reasons.append(f"the judge gave a verdict on {n} of {asked}, {LEAST_ANSWERED:.0%} needed")
    return reasons


def too_few(count: int) -> bool:
    """Tell whether a class has too few items for its precision or recall to be quoted."""
    return count < LEAST_OF_CLASS
