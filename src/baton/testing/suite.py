"""Cases, what plays them and what scores them, case by case: what tests are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from baton.config import load_config
from baton.config.evaluators import plan_for
from baton.config.load import load_found
from baton.config.providers import agent_spec, only_provider
from baton.config.trust import NOBODY, Trust
from baton.datasets import load_dataset
from baton.model import CaseResult, Dataset, Evaluator, InputError, Problem
from baton.providers.base import ConfiguredProvider, Surroundings
from baton.providers.make import make_provider
from baton.readers import load_catalog
from baton.runner.evaluate import evaluate_in_memory
from baton.runner.loop import run
from baton.runner.options import RunOptions
from baton.runner.plan import Plan, make_plan

Specs = Iterable[Mapping[str, Any] | Evaluator | str]


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset and how to play it. ``make`` builds the provider anew for every case."""

    dataset: Dataset
    plan: Plan
    make: Callable[[], ConfiguredProvider[Any]]
    options: RunOptions

    def play(self, place: int) -> Sequence[CaseResult]:
        """Play the case at a place of the dataset, as often as it is repeated, and score it.

        Raises:
            InputError: the provider refuses what it is told.
        """
        return run(self._play(self.dataset.subset([place])))

    async def play_all(self) -> Sequence[CaseResult]:
        """Play and score all cases; raises InputError as above."""
        return await self._play(self.dataset)

    async def _play(self, cases: Dataset) -> Sequence[CaseResult]:
        evaluation = await evaluate_in_memory(
            self.plan, self.make(), cases, self.options, cases.name
        )
        return evaluation.results


def suite_of_config(path: Path, trust: Trust | None = None) -> Suite:
    """Read a config; raises InputError when it has faults, or names no dataset or provider.

    ``trust`` is for one that was found; without it the user named the config.
    """
    config = load_config(path) if trust is None else load_found(path, trust)
    trust = trust or NOBODY
    if not config.dataset:
        raise InputError(Problem(file=str(path), message="names no `dataset:` to test with"))
    catalog = load_catalog(config.agents) if config.agents else {}
    dataset = load_dataset(config.dataset, agents=catalog or None)
    plan = (
        config.plan if config.evaluators is not None else plan_for(dataset, config.plan_with, trust)
    )
    only_provider(config, catalog)
    return Suite(
        dataset=dataset,
        plan=plan,
        make=lambda: only_provider(config, catalog),
        options=config.run,
    )


def suite_of_agent(
    dataset: Path | str,
    agent: str | Mapping[str, Any],
    folder: Path,
    *,
    evaluators: Specs | None = None,
    trust: Trust = NOBODY,
    **options: Any,
) -> Suite:
    """Take cases and an agent; paths of the agent start in ``folder``.

    Args:
        dataset: the path of a dataset.
        agent: the address of an ADK server, a folder of ADK agents, ``module:function``, or the
            spec of a provider.
        folder: where relative paths of the agent start.
        evaluators: as for :func:`baton.evaluate`.
        trust: whether a ``test_config.json`` beside the cases may name code.
        options: ``repeat``, ``concurrency``, ``timeout``.

    Raises:
        InputError: a file has faults, or the agent is none.
    """
    spec = agent_spec(agent, folder) if isinstance(agent, str) else dict(agent)
    if spec is None:
        message = (
            "is no agent: name a folder with agent.py, the address of an ADK server, or "
            "module:function"
        )
        raise InputError(Problem(file=str(agent), message=message))
    cases = load_dataset(dataset)
    return Suite(
        dataset=cases,
        plan=plan_for(cases, make_plan, trust) if evaluators is None else make_plan(evaluators),
        make=lambda: make_provider(spec, Surroundings(folder)),
        options=RunOptions(**options),
    )
