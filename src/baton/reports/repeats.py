"""How many cases pass, how sure that is, and which of them do not pass every time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from baton.analysis.intervals import share
from baton.analysis.means import mean_interval
from baton.analysis.repeats import Repeats, of_repeats
from baton.store import StoredEvaluation

_FLAKY = 5


class PassRate(msgspec.Struct, frozen=True, kw_only=True):
    """The share of results that passed, of all there are; and what repeats tell.

    ``low`` and ``high`` are the 95 % interval: Wilson's, and for cases that were repeated that
    of the mean over cases, as repeats of one case are not independent. ``None``: not known.
    """

    value: float
    low: float | None
    high: float | None
    passed: int
    results: int
    cases: int
    repeats: Repeats | None = None


def repeats_of(evaluation: StoredEvaluation) -> PassRate | None:
    """Read the index once; ``None`` where there are no results."""
    passed = results = 0
    played = evaluation.header.repeats
    verdicts: dict[str, list[bool]] = {}
    every: dict[str, list[bool]] = {}
    for row in evaluation.rows():
        hit = row.status == "passed"
        passed, results = passed + hit, results + 1
        if played > 1:
            every.setdefault(row.case_id, []).append(hit)
            if row.status in ("passed", "failed"):
                verdicts.setdefault(row.case_id, []).append(hit)
    if not results:
        return None
    if played == 1:
        found = share(passed, results)
        low, high = (found.low, found.high) if found else (None, None)
    else:
        interval = mean_interval([sum(each) / len(each) for each in every.values()])
        low, high = interval.low, interval.high
    return PassRate(
        value=passed / results,
        low=low,
        high=high,
        passed=passed,
        results=results,
        cases=len(every) or results,
        repeats=of_repeats(verdicts, played) if played > 1 else None,
    )


def pass_lines(rate: PassRate | None) -> Iterator[str]:
    """Say how many of several results passed, and what repeats tell."""
    if rate is None or rate.results < 2:
        return
    interval = "" if rate.low is None else f" [{rate.low:.2f}, {rate.high:.2f}]"
    of = f"{rate.results:,} results of {rate.cases:,} cases"
    if rate.repeats is None and rate.results == rate.cases:
        of = f"{rate.cases:,} cases"
    yield f"pass rate {rate.value:.2f}{interval}: {rate.passed:,} of {of}"
    told = rate.repeats
    if told is None:
        return
    flakes = "" if told.flake_rate is None else f" · flake rate {told.flake_rate:.2f}"
    left = f" · {told.left_out} cases lack verdicts" if told.left_out else ""
    yield f"pass@{told.k} {told.pass_at_k:.2f} · pass^{told.k} {told.pass_hat_k:.2f}{flakes}{left}"
    if told.flaky:
        names = ", ".join(f"{name} {flake:.2f}" for name, flake in told.flaky[:_FLAKY])
        more = f" and {len(told.flaky) - _FLAKY} more" if len(told.flaky) > _FLAKY else ""
        yield f"flaky: {names}{more}"


def plain_repeats(rate: PassRate | None) -> dict[str, Any] | None:
    """Return it as plain data."""
    return None if rate is None else {"pass_rate": msgspec.to_builtins(rate)}
