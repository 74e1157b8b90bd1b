"""Comparing evaluations: two of them, with a baseline, or many over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from baton.gate.baseline import (
    DEFAULT,
    Snapshot,
    baseline_file,
    open_side,
    read_baseline,
    snapshot_of,
    write_baseline,
)
from baton.gate.compare import Compared, compare
from baton.gate.trend import Point, evaluations_below, trend
from baton.model import InputError, Problem
from baton.model.option_names import option
from baton.store import latest_evaluation, read_evaluation


def compare_evaluations(
    before: str | None,
    after: str | None,
    *,
    stored: Path,
    confidence: float = 0.95,
    min_effect: float = 0.05,
    force: bool = False,
) -> Compared:
    """Compare two evaluations.

    Args:
        before: folder of an evaluation, or the name or file of a baseline; ``default`` when left
            out.
        after: folder of the evaluation to judge; the newest one below ``stored`` when left out.
        stored: where evaluations are stored.
        confidence: how sure a difference has to be, over all axes together; between 0 and 1.
        min_effect: the least difference that counts.
        force: compare them though dataset, evaluators or judges differ.

    Raises:
        InputError: a figure out of range, no such evaluation, or two that do not compare.
    """
    if not 0 < confidence < 1:
        raise InputError(f"{option('confidence')} is between 0 and 1, got {confidence:g}")
    if not min_effect >= 0:
        raise InputError(f"{option('min_effect')} is at least 0, got {min_effect:g}")
    old = open_side(before or DEFAULT)
    new = open_side(after if after is not None else str(latest_evaluation(stored)))
    compared = compare(old, new, confidence=confidence, min_effect=min_effect)
    if compared.refused and not force:
        problems = [f"they do not compare: {differs}" for differs in compared.refused]
        problems.append(f"{option('force', True)} compares them anyway")
        raise InputError(Problem(message=problem) for problem in problems)
    return compared


def set_baseline(
    folder: Path | None,
    name: str,
    *,
    stored: Path,
    force: bool = False,
    allow_failing: bool = False,
) -> tuple[Snapshot, Path]:
    """Keep an evaluation to compare with; return what is kept, and the file.

    ``folder`` is the newest evaluation below ``stored`` when left out. ``name`` is that of the
    baseline, or the path of its file. ``force`` keeps also what is not whole, ``allow_failing``
    what failed: what is broken then counts as usual from there on.

    Raises:
        InputError: no such evaluation, or one that is not whole or failed.
    """
    file = baseline_file(name)
    folder = folder if folder is not None else latest_evaluation(stored)
    snapshot = snapshot_of(read_evaluation(folder))
    if snapshot.status not in ("passed", "failed") and not force:
        raise InputError(
            f"{folder}: it is `{snapshot.status}`, not whole: resume it first, or keep it anyway "
            f"with {option('force', True)}"
        )
    if snapshot.status == "failed" and not allow_failing:
        raise InputError(
            f"{folder}: it failed: {snapshot.failures}. What fails in a baseline will not "
            "count as a regression later: keep one that passed, or this one with "
            f"{option('allow_failing', True)}"
        )
    write_baseline(snapshot, file)
    return snapshot, file


def show_baseline(name: str) -> tuple[Snapshot, Path]:
    """Return what a baseline keeps, and its file; raises InputError where there is none."""
    file = baseline_file(name)
    return read_baseline(file), file


def trend_over(
    folders: Sequence[Path],
    axis: str,
    *,
    stored: Path,
    name: str | None = None,
    last: int | None = None,
) -> list[Point]:
    """Return an axis over evaluations, the oldest first.

    ``folders`` are all below ``stored`` when left out; only evaluations called ``name`` count,
    and only the newest ``last`` of them.

    Raises:
        InputError: no such axis, or no evaluation.
    """
    if last is not None and last < 1:
        raise InputError(f"{option('last')} has to be at least 1, got {last}")
    points = trend(list(folders) or evaluations_below(stored), axis)
    points = [point for point in points if name is None or point.name == name]
    points = points[-last:] if last is not None else points
    if not points:
        raise InputError("no evaluation here" + (f" is called `{name}`" if name else " yet"))
    return points
