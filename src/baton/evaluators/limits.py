"""Holding figures against limits, whatever they count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from baton.model import Case, Evidence, InputError, Problem, Score, Trace
from baton.model.views import broken

from .base import OptionedEvaluator
from .turns import Unscored, not_played

_JUST_OVER = 0.999999


class Figure(NamedTuple):
    """What was found, and its limit; ``words`` and ``most`` say both."""

    limit: float
    actual: float
    words: str
    most: str

    @property
    def share(self) -> float:
        """See :func:`share`."""
        return share(self.actual, self.limit)

    @property
    def over(self) -> bool:
        """Whether it is beyond its limit."""
        return self.share < 1


class Measure(NamedTuple):
    """A figure of an option, the ids of what is beyond its limit, and why there may be more."""

    option: str
    limit: float
    found: float
    words: str
    beyond: list[str]
    unknown: str | None
    most: str | None = None

    @property
    def figure(self) -> Figure:
        """What was found against its limit."""
        return Figure(self.limit, self.found, self.words, self.most or str(self.limit))


def share(actual: float, limit: float) -> float:
    """Score a figure against its limit, 0 to 1.

    1 up to the limit (whole numbers to the last digit, others to 1e-9 of it), beyond it limit
    divided by actual, and at most 0.999999.

    Raises:
        ValueError: one of them is no number (nan).
    """
    if actual != actual or limit != limit:  # noqa: PLR0124 - only nan differs from itself
        raise ValueError(f"{actual} cannot be held against a limit of {limit}")
    whole = isinstance(actual, int) and isinstance(limit, int)
    if actual <= limit or (not whole and actual <= limit * (1 + 1e-9)):
        return 1.0
    return min(limit / actual, _JUST_OVER)


def weigh(
    evaluator: OptionedEvaluator[Any],
    figures: Sequence[Figure],
    doubt: Unscored | None,
    details: Mapping[str, Any],
    evidence: Sequence[Evidence],
) -> Score:
    """Give the verdict over all figures: the lowest share, and the first that is over its limit.

    Figures may be lower bounds: what is over a limit already fails, and ``doubt`` says why
    nothing can pass.
    """
    over = [figure for figure in figures if figure.over]
    if over:
        more = f"; {len(over) - 1} more over a limit" if over[1:] else ""
        reason = f"{over[0].words}; at most {over[0].most} allowed{more}"
        return evaluator.scored(min(f.share for f in over), reason, details, evidence)
    if doubt is not None:
        return evaluator.unscored(doubt.status, doubt.reason)
    reason = "; ".join(f"{figure.words} of {figure.most} allowed" for figure in figures)
    return evaluator.scored(1.0, reason, details)


def unfinished(trace: Trace, case: Case | None) -> Unscored | None:
    """Say why what was counted may not be all: turns that were not played, or did not end."""
    if case is not None and case.scenario is None:
        missing = not_played(trace, case)
        if missing is not None:
            return Unscored("error", missing)
    for number, turn in enumerate(trace.turns, 1):
        trouble = broken(turn)
        if trouble is not None:
            return Unscored("error", f"turn {number} {trouble}")
    for number, turn in enumerate(trace.turns, 1):
        if turn.status == "incomplete":
            return Unscored("skipped", f"turn {number} is incomplete: record it to its end")
    return None


def require_one(options: msgspec.Struct) -> None:
    """Check that at least one limit is set; raises InputError."""
    names = [field.name for field in msgspec.structs.fields(options)]
    if all(getattr(options, name) is None for name in names):
        listed = ", ".join(f"`{name}`" for name in names)
        raise InputError(Problem(path="config", message=f"needs at least one limit: {listed}"))
