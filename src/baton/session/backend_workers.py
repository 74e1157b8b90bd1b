"""Workers of backends: their recipes (settings), and how a worker sets itself up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from baton import __version__
from baton.config import Config, load_config
from baton.config.judge_config import JudgeFlags
from baton.config.trust import Trust
from baton.datasets.selection import choose, keep_of
from baton.judges.judge_settings import settings_of
from baton.model import InputError, StandIns
from baton.model.stand_ins import merged
from baton.runner.backends.local import Local, can_fork
from baton.runner.backends.protocol import Backend, Recipe
from baton.runner.backends.registry import make_backend
from baton.runner.backends.work import JobWorker, Loaded, Setup
from baton.runner.plan import Plan, Specs, judge_options
from baton.runner.recorded import kept_traces

from .prepare import (
    Criteria,
    Inputs,
    ScoreOptions,
    judge_flags_of,
    load_inputs,
    prepare,
    trust_in,
)

if TYPE_CHECKING:
    from baton.providers.base_provider import ConfiguredProvider


def make_workers(
    spec: Mapping[str, Any], config: Config | None, loaded: Loaded | None = None
) -> Backend:
    """Build a backend; the user's own code is looked up in the folder of the config.

    Processes of this machine share what this process has ``loaded``, if they can be forked.

    Raises:
        InputError: it cannot be built.
    """
    made = make_backend(spec, config.folder if config else Path(), Worker)
    if loaded is not None and isinstance(made, Local) and can_fork():
        made.forked = Worker(loaded)
    return made


_IN_CONFIG = ("pass_rule", "prices", "agent_names", "gate")


def names_only(evaluators: Specs | None) -> list[str]:
    """Return the names of evaluators; raises InputError for others, which cannot be sent."""
    names = [evaluators] if isinstance(evaluators, str) else list(evaluators or ())
    if not all(isinstance(name, str) for name in names):
        raise InputError("a backend takes evaluators by name: put others into a config")
    return [str(name) for name in names]


def can_be_sent(evaluators: Specs | None, options: ScoreOptions) -> bool:
    """Return whether workers can be told about these evaluators and options."""
    named = [evaluators] if isinstance(evaluators, str) else list(evaluators or ())
    return all(isinstance(name, str) for name in named) and not any(
        options.get(name) for name in _IN_CONFIG
    )


def recipe_of(inputs: Inputs, plan: Plan, options: ScoreOptions, **more: Any) -> Recipe:
    """Return the settings for workers: the names that the user gave, not objects built from them.

    Raises:
        InputError: an option that cannot be sent to workers, or a limit that they cannot keep
            because they know nothing of each other.
    """
    if unsendable := [name for name in _IN_CONFIG if options.get(name)]:
        raise InputError(f"with a backend, put `{unsendable[0]}` into a config")
    settings = settings_of(plan.context.judge)
    if settings is not None:
        stated = [msgspec.to_builtins(settings)]
        for planned in plan.every_evaluator:
            stated += judge_options(planned.evaluator)
        if any(each.get(name) is not None for each in stated for name in ("max_cost", "max_calls")):
            raise InputError(
                "limits of a judge (`max_cost`, `max_calls`) do not work with a backend: a worker "
                "does not know what the others spent"
            )
    return Recipe(
        baton=__version__,
        folder=str(Path.cwd()),
        config=inputs.config.file if inputs.config else None,
        dataset=inputs.paths,
        agents=None if options.get("agents") is None else str(options["agents"]),
        judge=msgspec.to_builtins(judge_flags_of(options)),
        redact=plan.redaction,
        trusted=trust_in(options).allowed,
        **more,
    )


class Worker(JobWorker):
    """Does jobs one after the other, and keeps its setup between jobs.

    Its caller, such as a task of a queue, creates one per process. It is not thread-safe.
    """

    def __init__(self, loaded: Loaded | None = None) -> None:
        super().__init__(_set_up, loaded)


def _set_up(recipe: Recipe) -> Setup:
    """Load what a recipe names; paths start in the current folder.

    Raises:
        InputError: files, keys or code are missing on this machine, or its version of Baton is
            another one.
    """
    if recipe.baton != __version__:
        raise InputError(f"Baton is {__version__} here, and {recipe.baton} where it was started")
    config = load_config(recipe.config) if recipe.config is not None else None
    inputs = load_inputs(config, recipe.dataset or None, recipe.agents)
    dataset = inputs.dataset
    every, keep_case = dataset, None
    if recipe.recorded:
        keep_case = keep_of(recipe.keyword, recipe.cases)
        if dataset is not None and keep_case is not None:
            places = [place for place, case in enumerate(dataset) if keep_case(case)]
            dataset = dataset.subset(places)
            inputs = msgspec.structs.replace(inputs, dataset=dataset)
    elif dataset is not None:
        dataset = choose(dataset, recipe.filters, recipe.limit, recipe.keyword)
        if recipe.cases is not None:
            wanted = set(recipe.cases)
            places = [place for place, name in enumerate(dataset.ids) if name in wanted]
            dataset = dataset.subset(places)
        under = merged(
            config.stand_ins if config is not None else None, StandIns(live=recipe.live_tools)
        )
        dataset = dataset.with_stand_ins(under or StandIns())
        inputs = msgspec.structs.replace(inputs, dataset=dataset)
    else:
        raise InputError("a recipe without a dataset: there is nothing to play")
    plan = prepare(
        inputs,
        recipe.evaluators or None,
        {
            "by_cases": not recipe.recorded,
            "judge": msgspec.convert(recipe.judge, JudgeFlags),
            "redact": recipe.redact,
            "trust": Trust(given=recipe.trusted),
        },
        criteria=None if recipe.criteria is None else Criteria(Path(recipe.criteria)),
    )

    @cache
    def plan_of(variant: int) -> Plan:
        if recipe.recorded or recipe.provider or config is None or len(config.providers) < 2:
            return plan
        return msgspec.structs.replace(plan, default_model=config.providers[variant].model)

    def provider_of(variant: int) -> ConfiguredProvider[Any]:
        from .agent_under_test import build_agent  # most workers score recordings

        return build_agent(config, recipe.provider, variant, inputs.catalog or {}, recipe.texts)

    keep = None if keep_case is None else kept_traces(keep_case, every, plan.redaction)
    return Setup(plan_of, dataset, inputs.catalog, provider_of, keep)
