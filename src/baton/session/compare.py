"""Comparing evaluations: two of them, or many over time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from baton.formats.evaluation_header import HEADER
from baton.formats.storage_addresses import is_address
from baton.gate.case_side_by_side import ComparedCase
from baton.gate.case_side_by_side import compare_case as case_of_both
from baton.gate.compare_evaluations import Compared
from baton.gate.compare_evaluations import compare as compare_snapshots
from baton.gate.snapshot import (
    DEFAULT,
    Snapshot,
    baseline_file,
    open_side,
    snapshot_of,
)
from baton.gate.trend import Point, evaluations_below
from baton.gate.trend import trend as trend_of
from baton.model import InputError, Problem
from baton.model.option_spelling import option
from baton.store import StoredEvaluation, evaluation_at, latest_evaluation, read_evaluation

from .evaluation import Evaluation
from .prepare import PathLike
from .report import STORED, folder_of

Side = Evaluation | PathLike
"""One side of a comparison: an evaluation in memory, its folder or address, or a baseline by name
or path.
"""


def compare(
    before: Side | None = None,
    after: Side | None = None,
    *,
    stored: PathLike = STORED,
    confidence: float = 0.95,
    min_effect: float = 0.05,
    force: bool = False,
) -> Compared:
    """Compare two evaluations.

    Args:
        before: an evaluation, its folder or address (``s3://bucket/NAME``), or the name or file of
            a baseline; the baseline ``default`` when left out.
        after: the evaluation to judge, its folder or address; the newest one below ``stored`` when
            left out.
        stored: where evaluations are stored.
        confidence: the required certainty of a difference, over all axes together; between 0 and 1.
        min_effect: the smallest difference that counts.
        force: compare them even if dataset, evaluators or judges differ.

    Returns:
        Every axis and case, with ``outcome`` (``worse``, ``unclear``, ``same``, ``better``, or
        ``error`` where verdicts are missing).

    Raises:
        InputError: a number is out of range, an evaluation does not exist, or the two are not
            comparable.
    """
    if not 0 < confidence < 1:
        raise InputError(f"{option('confidence')} is between 0 and 1, got {confidence:g}")
    if not min_effect >= 0:
        raise InputError(f"{option('min_effect')} is at least 0, got {min_effect:g}")
    old = _side(DEFAULT if before is None else before)
    if after is not None and after is before:
        new = old
    else:
        new = _side(latest_evaluation(Path(stored)) if after is None else after)
    compared = compare_snapshots(old, new, confidence=confidence, min_effect=min_effect)
    if compared.refused and not force:
        problems = [f"they cannot be compared: {differs}" for differs in compared.refused]
        problems.append(f"{option('force', True)} compares them anyway")
        raise InputError(Problem(message=problem) for problem in problems)
    return compared


def _side(side: Side) -> Snapshot:
    return snapshot_of(side) if isinstance(side, Evaluation) else open_side(os.fspath(side))


def compare_case(
    before: Evaluation | PathLike,
    case: str,
    after: Evaluation | PathLike | None = None,
    *,
    stored: PathLike = STORED,
    before_repeat: int | None = None,
    after_repeat: int | None = None,
) -> ComparedCase:
    """Compare one case in two stored evaluations: its verdicts, and both runs step by step.

    Args:
        before: an evaluation, its folder or address.
        case: the id of the case.
        after: the evaluation to judge, its folder or address; the newest one below ``stored`` when
            left out.
        stored: where evaluations are stored.
        before_repeat: which repeat of the case, counted from 1; by default the worst one.
        after_repeat: the same for ``after``.

    Returns:
        Both sides, and the aligned ``steps`` with ``first_difference``, the place of the first step
        that differs.

    Raises:
        InputError: there is no such evaluation, case or repeat.
    """
    for name, repeat in (("before_repeat", before_repeat), ("after_repeat", after_repeat)):
        if repeat is not None and repeat < 1:
            raise InputError(f"{option(name)} is counted from 1, got {repeat}")
    old = _stored(before)
    new = _stored(latest_evaluation(Path(stored)) if after is None else after)
    return case_of_both(
        old,
        new,
        case,
        before_repeat=None if before_repeat is None else before_repeat - 1,
        after_repeat=None if after_repeat is None else after_repeat - 1,
    )


def _stored(side: Evaluation | PathLike) -> StoredEvaluation:
    """Open an evaluation with its runs; a baseline has none."""
    if isinstance(side, Evaluation):
        return read_evaluation(folder_of(side))
    name = os.fspath(side)
    if (
        not is_address(name)
        and not (Path(name) / HEADER).is_file()
        and baseline_file(name).is_file()
    ):
        raise InputError(
            f"`{name}` is a baseline, which keeps no runs: name the folders of two evaluations"
        )
    return read_evaluation(evaluation_at(name))


def trend(
    evaluations: Sequence[Evaluation | PathLike] = (),
    axis: str = "pass_rate",
    *,
    stored: PathLike = STORED,
    name: str | None = None,
    last: int | None = None,
) -> list[Point]:
    """Return how a figure changed over evaluations, the oldest first.

    Args:
        evaluations: what ``score`` or ``evaluate`` returned, or folders or addresses; all below
            ``stored`` when left out.
        axis: ``pass_rate``, an evaluator, or ``EVALUATOR of AGENT``.
        stored: where evaluations are stored.
        name: only evaluations of this name count.
        last: only this many of the newest count.

    Raises:
        InputError: no such axis, or no evaluation.
    """
    if last is not None and last < 1:
        raise InputError(f"{option('last')} has to be at least 1, got {last}")
    sides = [
        snapshot_of(each if isinstance(each, Evaluation) else read_evaluation(evaluation_at(each)))
        for each in list(evaluations) or evaluations_below(Path(stored))
    ]
    points = trend_of(sides, axis) if sides else []
    points = [point for point in points if name is None or point.name == name]
    points = points[-last:] if last is not None else points
    if not points:
        raise InputError("no evaluation here" + (f" is called `{name}`" if name else " yet"))
    return points
