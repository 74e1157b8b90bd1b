"""The advice where to look first, for evaluations in which few cases passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from baton.model import FailedAt, counted

_LOW = 0.7
"""The pass rate from which no hint is needed."""
_FEW = 3
"""With fewer cases, a single failure gets no hint: the report shows nothing else to look at."""


def look_first(passed: int, scored: int, failed: Counter[FailedAt], unit: str) -> str | None:
    """Return where most failures are if few cases passed; otherwise ``None``.

    Such a low pass rate rarely has many causes: mostly it is one agent or one dispatch, or an
    evaluator that does not fit these agents. ``failed`` counts failed scores by place; ``unit`` is
    what ``passed`` and ``scored`` count: cases or results.
    """
    if passed >= _LOW * scored or not failed or (scored < _FEW and failed.total() == 1):
        return None
    (evaluator, count), *_ = _most(failed, lambda at: at.evaluator)
    there = Counter({at: n for at, n in failed.items() if at.evaluator == evaluator})
    times = "once" if count == 1 else f"{count} times"
    where = f"`{evaluator}`, which failed {times}"
    for agent, share in _most(there, lambda at: at.agent)[:1]:
        of_them = "all of them" if share == count else f"{share} of them"
        where += f", at `{agent}`" if count == 1 else f", {of_them} at `{agent}`"
    pairs = _most(there, lambda at: at.sender and f"`{at.sender}` → `{at.agent}`")
    for pair, share in pairs[:1]:
        those = "all" if share == count else share
        where += f", {those} in dispatches {pair}" if count > 1 else f", in the dispatch {pair}"
    return (
        f"{passed} of {counted(scored, unit)} passed; look first at {where}. If the "
        "agents did the right thing, change what the cases expect, or the evaluator"
    )


def _most(
    failed: Counter[FailedAt], what: Callable[[FailedAt], str | None]
) -> list[tuple[str, int]]:
    """Return the most frequent items first, then by name."""
    counts: Counter[str] = Counter()
    for at, count in failed.items():
        name = what(at)
        if name is not None:
            counts[name] += count
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
