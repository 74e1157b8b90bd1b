"""The public functions. ``docs/python.md`` shows each in use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from baton.datasets import load_dataset
from baton.model import Case, CaseResult, Dataset, Evaluation, Evaluator, Provider, Trace
from baton.readers import iter_traces, load_traces
from baton.runner.execute import score_trace
from baton.runner.plan import Plan, check_overrides, make_plan
from baton.runner.recorded import collect, score_in_memory

if TYPE_CHECKING:
    import asyncio

__all__ = ["aevaluate", "evaluate", "iter_traces", "load_dataset", "load_traces", "score"]

Path = str | os.PathLike[str]
Evaluators = Iterable[Mapping[str, Any] | Evaluator | str]


def score(
    traces: Trace | Iterable[Trace] | Path,
    dataset: Dataset | Sequence[Case] | Path | None = None,
    evaluators: Evaluators | None = None,
    *,
    agent_names: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Evaluation:
    """Score recorded traces.

    A trace meets its case by case id (or its own id), else by the first user message. What
    finds no partner, or two, is an error result that names it.

    Args:
        traces: traces, or the path of files that hold them.
        dataset: what should have happened; without one, only what needs no expectation scores.
        evaluators: specs (``{"type": "agent_chain", "config": {...}}``), names or objects;
            ``agent_chain`` when left out.
        agent_names: recorded agent name to the name that cases use.
        name: of the evaluation; the dataset's when left out.

    Returns:
        Results in the order of the dataset, one for every planned case.

    Raises:
        InputError: an unknown evaluator, option or value, or a file with faults.
    """
    plan = make_plan(evaluators, agent_names=agent_names)
    cases = None if dataset is None else as_dataset(dataset)
    label = name or (cases.name if cases else "score")
    return score_in_memory(plan, _as_traces(traces), cases, label)


async def aevaluate(
    dataset: Dataset | Sequence[Case] | Path,
    provider: Provider,
    evaluators: Evaluators | None = None,
    *,
    concurrency: int = 4,
    agent_names: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Evaluation:
    """Play every case of a dataset with ``provider`` and score what it did.

    ``provider`` takes a case and returns a trace, or an awaitable of one; at most
    ``concurrency`` cases are in play at once. A case that it raises for is an error, and the
    others go on. Other arguments, and what is raised, are those of :func:`score`.
    """
    import asyncio

    if concurrency < 1:
        raise ValueError(f"concurrency has to be at least 1, got {concurrency}")
    plan = make_plan(evaluators, agent_names=agent_names)
    cases = as_dataset(dataset)
    check_overrides(plan, cases)
    free = asyncio.Semaphore(concurrency)
    tasks = [_play(plan, provider, cases, place, free) for place in range(len(cases))]
    return collect(plan, await asyncio.gather(*tasks), name or cases.name)


def evaluate(
    dataset: Dataset | Sequence[Case] | Path,
    provider: Provider,
    evaluators: Evaluators | None = None,
    *,
    concurrency: int = 4,
    agent_names: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Evaluation:
    """Do what :func:`aevaluate` does, for code that is not asynchronous."""
    import asyncio

    return asyncio.run(
        aevaluate(
            dataset,
            provider,
            evaluators,
            concurrency=concurrency,
            agent_names=agent_names,
            name=name,
        )
    )


def as_dataset(dataset: Dataset | Sequence[Case] | Path) -> Dataset:
    """Load a dataset from a path; wrap cases that are at hand."""
    if isinstance(dataset, Dataset):
        return dataset
    if isinstance(dataset, str | os.PathLike):
        return load_dataset(dataset)
    return Dataset(list(dataset))


def _as_traces(traces: Trace | Iterable[Trace] | Path) -> Iterable[Trace]:
    if isinstance(traces, Trace):
        return [traces]
    return iter_traces(traces) if isinstance(traces, str | os.PathLike) else traces


async def _play(
    plan: Plan, provider: Provider, dataset: Dataset, position: int, free: asyncio.Semaphore
) -> CaseResult:
    import inspect

    async with free:
        case = dataset.cases[position]
        try:
            answer = provider(case)
            trace = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - whatever it raises is this case's error
            problem = f"the provider raised {type(error).__name__}: {error}"
            return CaseResult(case_id=case.id, position=position, status="error", error=problem)
    if not isinstance(trace, Trace):
        problem = f"the provider returned {type(trace).__name__}, not a Trace"
        return CaseResult(case_id=case.id, position=position, status="error", error=problem)
    return score_trace(plan, trace, case, position)
