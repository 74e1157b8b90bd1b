"""Scoring recorded traces into an evaluation folder, or into memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from baton.model import CaseResult, Dataset, Evaluation, Trace
from baton.store import EvaluationWriter

from .collect import FolderResults, MemoryResults, Results
from .execute import score_recorded
from .plan import Plan, check_overrides
from .scoring import Unfinished


def collect(plan: Plan, scored: Iterator[CaseResult | Unfinished], results: Results) -> None:
    """Hand over results in the order of their traces.

    An event loop is made when the first case has to wait for a score, and not before.
    """
    for each in scored:
        if isinstance(each, Unfinished):
            from .window import finish_all

            finish_all(plan, itertools.chain([each], scored), results)
            return
        results.add(each)


def score_in_memory(
    plan: Plan, traces: Iterable[Trace], dataset: Dataset | None, name: str
) -> Evaluation:
    """Score traces and keep all results, in the order of the dataset."""
    if dataset is not None:
        check_overrides(plan, dataset)
    results = MemoryResults(plan)
    collect(plan, score_recorded(plan, traces, dataset), results)
    return results.evaluation(name)


def score_to_folder(
    plan: Plan,
    traces: Iterable[Trace],
    dataset: Dataset | None,
    *,
    root: Path,
    name: str,
    header: dict[str, Any],
    input_problems: list[str],
    repeats: int = 1,
) -> Path:
    """Score traces as they are read and write each result at once; return the folder.

    ``input_problems`` are filled by whoever yields the traces while they are read; any makes
    the evaluation an error. ``repeats`` is how often cases were played at the most.
    """
    if dataset is not None:
        check_overrides(plan, dataset)
    # The first trace is read before a folder is made, so that bad input leaves none behind.
    rest = iter(traces)
    read = itertools.chain(list(itertools.islice(rest, 1)), rest)
    writer = EvaluationWriter(root, name, header=header, repeats=repeats)
    with FolderResults(plan, writer, input_problems) as results:
        collect(plan, score_recorded(plan, read, dataset), results)
    return writer.folder
