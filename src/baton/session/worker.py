"""Workers of backends: what they are told, and how each sets itself up from that."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from baton import __version__
from baton.config import Config, load_config
from baton.config.judge import JudgeFlags
from baton.config.trust import Trust
from baton.datasets.filter import choose
from baton.judges.settings import settings_of
from baton.model import InputError
from baton.providers.base import ConfiguredProvider
from baton.runner.backends.protocol import Backend, Recipe
from baton.runner.backends.registry import make_backend
from baton.runner.backends.work import JobWorker, Setup
from baton.runner.plan import Plan, judge_options

from .agents import build_agent
from .prepare import Criteria, Inputs, load_inputs, prepare


def make_workers(spec: Mapping[str, Any], config: Config | None) -> Backend:
    """Build a backend; code of the user's own is looked for beside the config.

    Raises:
        InputError: it cannot be built.
    """
    return make_backend(spec, config.folder if config else Path(), Worker)


def recipe_of(
    inputs: Inputs, plan: Plan, judge: JudgeFlags, *, agents: Path | str | None, **more: Any
) -> Recipe:
    """Return what workers set themselves up with: what the user named, nothing made of it.

    ``agents`` are the definitions that were named beside the config.

    Raises:
        InputError: limits that workers, who know nothing of one another, cannot keep.
    """
    settings = settings_of(plan.context.judge)
    if settings is not None:
        stated = [msgspec.to_builtins(settings)]
        for planned in plan.every_evaluator:
            stated += judge_options(planned.evaluator)
        if any(each.get(name) is not None for each in stated for name in ("max_cost", "max_calls")):
            raise InputError(
                "limits of a judge (`max_cost`, `max_calls`) do not go with a backend: its workers "
                "do not know what the others spent"
            )
    return Recipe(
        baton=__version__,
        folder=str(Path.cwd()),
        config=inputs.config.file if inputs.config else None,
        dataset=inputs.paths,
        agents=None if agents is None else str(agents),
        judge=msgspec.to_builtins(judge),
        redact=plan.redaction,
        **more,
    )


class Worker(JobWorker):
    """Does jobs one after the other, and keeps what it is set up with for the next.

    What calls it, such as a task of a queue, makes one for each process. Not for several threads.
    """

    def __init__(self) -> None:
        super().__init__(_set_up)


def _set_up(recipe: Recipe) -> Setup:
    """Load what a recipe names, from the folder this process is in.

    Raises:
        InputError: files, keys or code that are there where it was started are not here; another
            version of Baton.
    """
    if recipe.baton != __version__:
        raise InputError(f"Baton is {__version__} here, and {recipe.baton} where it was started")
    config = load_config(recipe.config) if recipe.config is not None else None
    inputs = load_inputs(config, recipe.dataset, recipe.agents)
    dataset = inputs.dataset
    if dataset is not None:
        dataset = choose(dataset, recipe.filters, recipe.limit)
        if recipe.cases is not None:
            wanted = set(recipe.cases)
            places = [place for place, name in enumerate(dataset.ids) if name in wanted]
            dataset = dataset.subset(places)
    elif not recipe.recorded:
        raise InputError("a recipe without a dataset: there is nothing to play")
    plan = prepare(
        dataset,
        config=config,
        evaluators=recipe.evaluators or None,
        criteria=None if recipe.criteria is None else Criteria(Path(recipe.criteria)),
        by_cases=not recipe.recorded,
        flags=msgspec.convert(recipe.judge, JudgeFlags),
        redaction=recipe.redact,
        trust=Trust(given=recipe.trusted),
    )

    @cache
    def plan_of(variant: int) -> Plan:
        if recipe.recorded or config is None or len(config.providers) < 2:
            return plan
        return msgspec.structs.replace(plan, default_model=config.providers[variant].model)

    def provider_of(variant: int) -> ConfiguredProvider[Any]:
        return build_agent(config, recipe.provider, variant, inputs.catalog or {})

    return Setup(plan_of, dataset, inputs.catalog, provider_of)
