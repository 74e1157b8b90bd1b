"""An axis over evaluations: its value in each, with their versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from baton.formats.evaluation_header import HEADER
from baton.gate.compare_axes import PASSED, Axis
from baton.model import InputError, suggestion
from baton.stats.intervals import mean_interval, share

from .snapshot import Snapshot

PASS_RATE = "pass_rate"
_BARS = "▁▂▃▄▅▆▇█"


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation: the mean of the axis over its cases with a 95 % interval.

    ``value`` is ``None`` if no case has the axis. ``errors`` counts results without a verdict.
    ``differs`` names what differs from the newest, so that they cannot be compared: ``dataset``,
    ``evaluators``, and ``recordings`` if other cases or traces were scored. ``same``: nothing
    differs. ``dataset`` and ``recordings`` are the first digits of their hashes; recordings that
    were scored without cases have one. If all their traces have the names of the newest and other
    contents, they were ``recorded_anew``, so that the agents may have changed.
    """

    id: str
    name: str
    made: str
    models: str
    value: float | None
    low: float | None
    high: float | None
    cases: int
    errors: int
    commit: str
    dataset: str
    same: bool
    differs: list[str]
    recordings: str = ""
    recorded_anew: bool = False


def trend(evaluations: Iterable[Snapshot], axis: str) -> list[Point]:
    """Return a point of each, the oldest first; ``axis`` is an evaluator, maybe ``NAME of AGENT``.

    Raises:
        InputError: none of them has the axis.
    """
    sides = sorted(evaluations, key=lambda side: (side.made, side.id))
    wanted = read_axis(axis)
    known = {str(Axis(a.name, a.agent)) for s in sides for c in s.cases for a in c.axes}
    if sides and str(wanted) not in known:
        names = ({PASS_RATE, *known} if str(Axis(PASSED)) in known else known) - {PASSED}
        if not names:
            raise InputError("no evaluation has a verdict")
        raise InputError(f"no evaluation has the axis `{axis}`; {suggestion(axis, names)}")
    newest = sides[-1]
    points: list[Point] = []
    for side in sides:
        made, last = side.provenance, newest.provenance
        means = [fmean(values) for case in side.cases if (values := case.of(wanted))]
        differs = [
            name
            for name, own, theirs in (
                ("dataset", made.dataset, last.dataset),
                ("evaluators", made.evaluators, last.evaluators),
                ("recordings", set(side.by_id()), set(newest.by_id())),
            )
            if own != theirs
        ]
        if not means:
            low, high = None, None
        elif wanted.name == PASSED and side.repeats == 1:
            interval = share(round(sum(means)), len(means))
            low, high = (None, None) if interval is None else (interval.low, interval.high)
        else:
            interval = mean_interval(means)
            low, high = interval.low, interval.high
        points.append(
            Point(
                id=side.id,
                name=side.name,
                made=side.made,
                models=", ".join(made.models) or "not recorded",
                value=fmean(means) if means else None,
                low=low,
                high=high,
                cases=len(means),
                errors=sum(case.errors for case in side.cases),
                commit=f"{made.git.commit[:8]}{'+' if made.git.dirty else ''}" if made.git else "",
                dataset=made.dataset.hash[:8] if made.dataset else "",
                same=not differs,
                differs=differs,
                recordings=made.recordings.hash[:8] if made.recordings else "",
                recorded_anew="recordings" not in differs
                and made.recordings is not None
                and last.recordings is not None
                and made.recordings.hash != last.recordings.hash,
            )
        )
    return points


def evaluations_below(root: Path) -> list[Path]:
    """Return the folders of evaluations in a folder."""
    return sorted(path.parent for path in root.glob(f"*/{HEADER}"))


def read_axis(text: str) -> Axis:
    """Read ``pass_rate``, ``EVALUATOR`` or ``EVALUATOR of AGENT``."""
    name, _, agent = text.partition(" of ")
    return Axis(PASSED if name == PASS_RATE else name, agent or None)


def by_models(points: Iterable[Point]) -> dict[str, list[Point]]:
    """Return the points of each set of models, in order of first appearance."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.models, []).append(point)
    return groups


def sparkline(values: Sequence[float | None]) -> str:
    """Draw a bar for each value between 0 and 1 (or between the minimum and maximum)."""
    known = [value for value in values if value is not None]
    # All lines have one scale: 0.90 and then 0.91 is no climb from the lowest to the highest bar.
    low, high = min(0.0, *known, 0.0), max(1.0, *known, 1.0)
    bars = []
    for value in values:
        place = 0 if value is None else int((value - low) / (high - low) * (len(_BARS) - 1) + 0.5)
        bars.append(" " if value is None else _BARS[place])
    return "".join(bars)
