"""Repeats of cases: pass@k, pass^k, and how often two repeats disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from statistics import fmean

import msgspec


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of cases that were played at least ``k`` times; all cases have the same weight.

    ``pass_at_k`` is the probability that at least one of ``k`` repeats passes, ``pass_hat_k`` that
    all pass, and ``flake_rate`` that two repeats of a case disagree; 0 to 1. ``flaky`` names the
    cases whose repeats disagree, the worst first. ``left_out`` counts the cases with fewer than
    ``k`` verdicts.
    """

    k: int
    cases: int
    pass_at_k: float
    pass_hat_k: float
    flake_rate: float | None
    flaky: list[tuple[str, float]]
    left_out: int


def pass_at_k(passed: int, total: int, k: int) -> float:
    """Estimate without bias the probability that one of ``k`` repeats passes (Chen et al., 2021).

    ``1 - C(total - passed, k) / C(total, k)``.

    Raises:
        ValueError: ``k`` is below 1 or above ``total``.
    """
    _check(passed, total, k)
    return 1 - comb(total - passed, k) / comb(total, k)


def pass_hat_k(passed: int, total: int, k: int) -> float:
    """Estimate without bias the probability that all of ``k`` repeats pass (Yao et al., 2024).

    ``C(passed, k) / C(total, k)``.

    Raises:
        ValueError: ``k`` is below 1 or above ``total``.
    """
    _check(passed, total, k)
    return comb(passed, k) / comb(total, k)


def flake_rate(passed: int, total: int) -> float | None:
    """Estimate without bias the probability that two repeats disagree.

    ``2 p (1 - p)`` over pairs: ``passed * (total - passed) / C(total, 2)``. ``None`` for fewer
    than two repeats.
    """
    return passed * (total - passed) / comb(total, 2) if total > 1 else None


def of_repeats(cases: Mapping[str, Sequence[bool]], k: int) -> Repeats | None:
    """Summarise the verdicts of each case; ``None`` if no case has ``k`` verdicts."""
    counts = {case: (sum(passes), len(passes)) for case, passes in cases.items()}
    enough = {case: count for case, count in counts.items() if count[1] >= k}
    if not enough:
        return None
    rates = {case: flake_rate(*count) for case, count in enough.items()}
    known = {case: rate for case, rate in rates.items() if rate is not None}
    return Repeats(
        k=k,
        cases=len(enough),
        pass_at_k=fmean(pass_at_k(*count, k) for count in enough.values()),
        pass_hat_k=fmean(pass_hat_k(*count, k) for count in enough.values()),
        flake_rate=fmean(known.values()) if known else None,
        flaky=sorted((r for r in known.items() if r[1] > 0), key=lambda r: (-r[1], r[0])),
        left_out=len(counts) - len(enough),
    )


def _check(passed: int, total: int, k: int) -> None:
    if not 1 <= k <= total or not 0 <= passed <= total:
        raise ValueError(f"no estimate for {k} of {total} repeats, {passed} of them passed")
