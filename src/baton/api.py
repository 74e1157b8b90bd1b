"""The public functions. ``docs/python.md`` shows each in use."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import msgspec

from baton.datasets import load_dataset
from baton.formats.explain import explain, path_text
from baton.model import (
    Case,
    Dataset,
    Evaluation,
    Evaluator,
    InputError,
    Problem,
    Provider,
    Trace,
)
from baton.readers import iter_traces, load_traces
from baton.runner.plan import make_plan
from baton.runner.recorded import score_in_memory

if TYPE_CHECKING:
    from baton.runner.live import RunOptions

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


P = ParamSpec("P")
R = TypeVar("R")


def _sync(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    @functools.wraps(function)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        import asyncio

        return asyncio.run(function(*arguments, **options))

    return run


async def aevaluate(
    dataset: Dataset | Sequence[Case] | Path,
    provider: Provider | Mapping[str, Any],
    evaluators: Evaluators | None = None,
    *,
    concurrency: int = 4,
    repeat: int = 1,
    timeout: float | None = 600,
    pass_rule: str | Mapping[str, float] = "all",
    prices: Mapping[str, Mapping[str, float]] | None = None,
    agent_names: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Evaluation:
    """Play every case of a dataset with ``provider`` and score what it did.

    A case that the provider raises for is an error, and the others go on. What is not said here
    is as for :func:`score`.

    Args:
        dataset: what to play, and what should happen.
        provider: takes a case and returns a trace, or an awaitable of one; or the spec of a
            provider that comes with Baton (``{"type": "adk_http", "endpoint_url": ...}``). A
            function that is not async is called in threads.
        evaluators: as for :func:`score`.
        concurrency: how many cases are in play at once.
        repeat: how often each case is played.
        timeout: seconds for one case; ``None`` waits for ever.
        pass_rule: ``all``, or ``{"mean": 0.8}``: the mean of the evaluators' values decides.
        prices: USD per million tokens by model: ``{"gpt-x": {"input": 1.25, "output": 10}}``.
        agent_names: recorded agent name to the name that cases use.
        name: of the evaluation; the dataset's when left out.

    Returns:
        Results in the order of the dataset, the repeats of a case together.

    Raises:
        InputError: an unknown option or value, or a file with faults.
    """
    from baton.providers.make import make_provider
    from baton.runner.evaluate import evaluate_in_memory
    from baton.runner.live import RunOptions
    from baton.runner.prices import from_custom_pricing
    from baton.runner.verdict import pass_rule as read_rule

    options = _checked(
        RunOptions, {"concurrency": concurrency, "repeat": repeat, "timeout": timeout}
    )
    plan = make_plan(
        evaluators,
        agent_names=agent_names,
        pass_rule=read_rule(pass_rule),
        prices=None if prices is None else from_custom_pricing(prices, "prices"),
    )
    cases = as_dataset(dataset)
    if isinstance(provider, Mapping):
        provider = cast("Provider", make_provider(provider))
    elif not callable(provider):
        message = (
            f"{type(provider).__name__} is no provider: a function, an object to call or a spec"
        )
        raise InputError(Problem(path="provider", message=message))
    return await evaluate_in_memory(plan, provider, cases, options, name or cases.name)


evaluate = _sync(aevaluate)
evaluate.__name__ = evaluate.__qualname__ = "evaluate"


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


def _checked(type_: type[RunOptions], options: dict[str, Any]) -> RunOptions:
    try:
        return msgspec.convert(options, type_)
    except msgspec.ValidationError:
        raise InputError(
            Problem(path=path_text(fault.path), message=fault.message)
            for fault in explain(options, type_)
        ) from None
