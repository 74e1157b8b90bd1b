"""Scoring recorded traces into an evaluation folder, or into memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from baton.model import CaseResult, Dataset, Evaluation, Trace
from baton.store import EvaluationWriter, FolderStatus

from .execute import score_recorded
from .plan import Plan, check_overrides
from .tally import Tally


def score_in_memory(
    plan: Plan, traces: Iterable[Trace], dataset: Dataset | None, name: str
) -> Evaluation:
    """Score traces and keep all results, in the order of the dataset."""
    if dataset is not None:
        check_overrides(plan, dataset)
    return collect(plan, score_recorded(plan, traces, dataset), name)


def collect(plan: Plan, results: Iterable[CaseResult], name: str) -> Evaluation:
    """Sum up results; the last one of a case and repeat stands."""
    last = {(result.position, result.repeat): result for result in results}
    tally = Tally(plan)
    for result in last.values():
        tally.add(result.status, [(score.evaluator, score.status) for score in result.scores])
    return Evaluation(
        name=name,
        status=tally.status(),
        results=[last[key] for key in sorted(last)],
        evaluators=list(tally.evaluators.values()),
        problems=tally.problems(),
    )


def score_to_folder(
    plan: Plan,
    traces: Iterable[Trace],
    dataset: Dataset | None,
    *,
    root: Path,
    name: str,
    header: dict[str, Any],
    input_problems: list[str],
) -> Path:
    """Score traces as they are read and write each result at once; return the folder.

    ``input_problems`` are filled by whoever yields the traces while they are read; any makes
    the evaluation an error.
    """
    if dataset is not None:
        check_overrides(plan, dataset)
    tally = Tally(plan)
    # The first trace is read before a folder is made, so that bad input leaves none behind.
    rest = iter(traces)
    read = itertools.chain(list(itertools.islice(rest, 1)), rest)
    writer = EvaluationWriter(root, name, header=header)
    try:
        for result in score_recorded(plan, read, dataset):
            earlier = writer.write(result)
            if earlier is not None:
                tally.add(earlier.status, earlier.scores, by=-1)
            tally.add(result.status, [(s.evaluator, s.status) for s in result.scores])
    except BaseException:
        _finish(writer, tally, "interrupted", input_problems)
        raise
    _finish(writer, tally, "error" if input_problems else tally.status(), input_problems)
    return writer.folder


def _finish(
    writer: EvaluationWriter, tally: Tally, status: FolderStatus, input_problems: list[str]
) -> None:
    writer.finish(
        status,
        evaluators=list(tally.evaluators.values()),
        cases=tally.cases,
        problems=[*input_problems, *tally.problems()],
    )
