"""A live evaluation: a dataset, a provider, and where the results go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from baton.model import CaseResult, Dataset, Evaluation, Provider
from baton.store import EvaluationWriter

from .collect import FolderResults, MemoryResults, Results
from .live import RunOptions, play_all
from .loop import entered
from .plan import Plan, check_overrides
from .sessions import check_sessions, one_at_a_time

OnResult = Callable[[CaseResult], None]


def notices_of(provider: Provider) -> list[str]:
    """Return what every report on this provider has to say."""
    notice = getattr(provider, "notice", None)
    return [notice] if notice else []


async def evaluate_in_memory(
    plan: Plan, provider: Provider, dataset: Dataset, options: RunOptions, name: str
) -> Evaluation:
    """Play and score a dataset, and keep all results, in the order of the dataset."""
    check_overrides(plan, dataset)
    check_sessions(provider, dataset)
    options, notes = one_at_a_time(provider, dataset, options)
    results = MemoryResults(plan, len(dataset) * options.repeat)
    async with entered(provider), entered(plan.context.judge):
        await play_all(plan, provider, dataset, options, results)
    return results.evaluation(name, [*notices_of(provider), *notes])


async def evaluate_to_folder(
    plan: Plan,
    provider: Provider,
    dataset: Dataset,
    options: RunOptions,
    *,
    root: Path,
    name: str,
    header: dict[str, Any],
    on_result: OnResult,
    on_start: Callable[[Path], None] = lambda _: None,
) -> Path:
    """Play and score a dataset, writing each result as it comes; return the folder.

    ``on_start`` is told the folder, ``on_result`` each result.

    What is there when it is interrupted is complete and says so.
    """
    check_overrides(plan, dataset)
    check_sessions(provider, dataset)
    options, notes = one_at_a_time(provider, dataset, options)
    planned = len(dataset) * options.repeat
    run = {"run": msgspec.to_builtins(options)} if notes else {}
    notices = [*notices_of(provider), *notes]
    async with entered(provider), entered(plan.context.judge):
        writer = EvaluationWriter(
            root,
            name,
            header={**header, **run, "planned": planned, "notices": notices},
            keep_traces=True,
            repeats=options.repeat,
        )
        on_start(writer.folder)
        with FolderResults(plan, writer, planned=planned) as results:
            told = _Told(results, on_result)
            await play_all(plan, provider, dataset, options, told)
    return writer.folder


class _Told:
    """Tells of each result once it is written."""

    def __init__(self, results: Results, on_result: OnResult) -> None:
        self._results = results
        self._on_result = on_result

    def add(self, result: CaseResult) -> None:
        self._results.add(result)
        self._on_result(result)
