"""Keeps evaluations as baselines, and opens them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from baton.formats.storage_addresses import place_of
from baton.gate.snapshot import (
    DEFAULT,
    Snapshot,
    baseline_file,
    read_baseline,
    snapshot_of,
    write_baseline,
)
from baton.model import InputError
from baton.model.option_spelling import option
from baton.store import evaluation_at, latest_evaluation, read_evaluation

from .compare import Side
from .evaluation import Evaluation
from .prepare import PathLike
from .report import STORED


class Baseline(NamedTuple):
    """A stored baseline, and its file."""

    snapshot: Snapshot
    file: Path


def set_baseline(
    evaluation: Side | None = None,
    name: str = DEFAULT,
    *,
    stored: PathLike = STORED,
    force: bool = False,
    allow_failing: bool = False,
) -> Baseline:
    """Keep an evaluation to compare with.

    Args:
        evaluation: what ``score`` or ``evaluate`` returned, or its folder or address; the newest
            one below ``stored`` when left out.
        name: the name of the baseline, or the path of its file.
        stored: where evaluations are stored.
        force: also keep one that is incomplete.
        allow_failing: also keep a failed one: its failures count as expected from then on.

    Raises:
        InputError: no such evaluation, or it is incomplete or failed.
    """
    file = baseline_file(name)
    if isinstance(evaluation, Evaluation):
        snapshot, where = snapshot_of(evaluation), "the evaluation"
    else:
        newest = latest_evaluation(Path(stored)) if evaluation is None else evaluation
        folder = evaluation_at(newest)
        snapshot, where = snapshot_of(read_evaluation(folder)), place_of(folder)
    if snapshot.status not in ("passed", "failed") and not force:
        raise InputError(
            f"{where}: it is `{snapshot.status}`, so it is incomplete: resume it "
            f"first, or keep it anyway with {option('force', True)}"
        )
    if snapshot.status == "failed" and not allow_failing:
        raise InputError(
            f"{where}: it failed: {snapshot.failures}. What fails in a baseline will "
            "not count as a regression later: keep one that passed, or this one with "
            f"{option('allow_failing', True)}"
        )
    write_baseline(snapshot, file)
    return Baseline(snapshot, file)


def open_baseline(name: str = DEFAULT) -> Baseline:
    """Open a baseline, by its name or the path of its file; raises InputError for none."""
    file = baseline_file(name)
    return Baseline(read_baseline(file), file)
