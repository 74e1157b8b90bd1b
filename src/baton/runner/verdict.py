"""What the scores of a case come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

from baton.model import InputError, Problem, Score, Status, Trace, case_status
from baton.model.views import broken

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class MeanRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The mean of the evaluators' values has to reach ``mean``."""

    mean: Share


PassRule = Literal["all"] | MeanRule


class Verdict(NamedTuple):
    """The status of a case, and the mean where that decided."""

    status: Status
    mean: float | None = None


def verdict(rule: PassRule, scores: Sequence[Score]) -> Verdict:
    """Sum up a case.

    ``all``: every score passes. A mean is taken over the evaluators, several scores of one
    averaged first; what is skipped is left out. Under both rules an error is an error, and a
    case without any value is skipped.
    """
    status = case_status([score.status for score in scores])
    if rule == "all" or status in ("error", "skipped"):
        return Verdict(status)
    values: dict[str, list[float]] = {}
    for score in scores:
        if score.value is not None:
            values.setdefault(score.evaluator, []).append(score.value)
    mean = sum(sum(each) / len(each) for each in values.values()) / len(values)
    return Verdict("passed" if mean >= rule.mean - 1e-9 else "failed", mean)


def read_rule(spec: str | Mapping[str, float] | PassRule) -> PassRule:
    """Read ``all`` or ``{"mean": 0.8}``; raises InputError for anything else."""
    plain = dict(spec) if isinstance(spec, Mapping) else spec
    try:
        rule: PassRule = msgspec.convert(plain, PassRule)
        return rule
    except msgspec.ValidationError:
        message = f"{spec!r} is no pass rule: write `all`, or `mean` with a threshold from 0 to 1"
        raise InputError(Problem(path="pass_rule", message=message)) from None


def broken_turn(trace: Trace) -> str | None:
    """Say what broke the first turn that did not end; such a case cannot be judged."""
    for number, turn in enumerate(trace.turns, 1):
        trouble = broken(turn)
        if trouble is not None:
            return f"turn {number} {trouble}"
    return None
