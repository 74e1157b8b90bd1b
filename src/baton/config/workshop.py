"""What a worker of a backend is set up with: the same as what the command line has."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from baton.datasets import load_dataset
from baton.datasets.load import choose
from baton.model import Dataset, InputError
from baton.providers.base import ConfiguredProvider, Surroundings
from baton.providers.make import make_provider
from baton.readers import Catalog, load_catalog
from baton.runner.backends.protocol import Recipe
from baton.runner.backends.work import Shop
from baton.runner.plan import Plan

from .evaluators import live_plan, recorded_plan
from .judge import JudgeConfig, JudgeFlags, ready
from .load import Config, load_config
from .providers import configured
from .trust import Trust


def open_shop(recipe: Recipe) -> Shop:
    """Load what a recipe names, from the folder this process is in.

    Raises:
        InputError: files, keys or code that are there where it was started are not here.
    """
    settings = load_config(recipe.config) if recipe.config is not None else None
    definitions = recipe.agents or (settings.agents if settings else None)
    catalog = load_catalog(definitions) if definitions is not None else None
    dataset = _dataset(recipe, catalog)
    trust = Trust(given=recipe.trusted)
    if recipe.recorded:
        plan = recorded_plan(settings, recipe.evaluators, dataset, trust)
    elif dataset is not None:
        criteria = None if recipe.criteria is None else Path(recipe.criteria)
        plan = live_plan(settings, recipe.evaluators, criteria, dataset, trust)
    else:
        raise InputError("a recipe without a dataset: there is nothing to play")
    plan = ready(
        plan,
        settings.judging if settings else JudgeConfig(),
        msgspec.convert(recipe.judge, JudgeFlags),
        settings.gate if settings else None,
    )
    plan = msgspec.structs.replace(plan, redaction=recipe.redact)

    @cache
    def plan_of(variant: int) -> Plan:
        several = settings is not None and len(settings.providers) > 1
        if settings is None or not several or recipe.recorded:
            return plan
        return msgspec.structs.replace(plan, default_model=settings.providers[variant].model)

    def provider(variant: int) -> ConfiguredProvider[Any]:
        return _provider(settings, recipe, catalog or {}, variant)

    return Shop(plan_of, dataset, catalog, provider)


def _dataset(recipe: Recipe, catalog: Catalog | None) -> Dataset | None:
    if not recipe.dataset:
        return None
    dataset = choose(load_dataset(recipe.dataset, agents=catalog), recipe.filters, recipe.limit)
    if recipe.cases is None:
        return dataset
    wanted = set(recipe.cases)
    return dataset.subset([place for place, name in enumerate(dataset.ids) if name in wanted])


def _provider(
    settings: Config | None, recipe: Recipe, catalog: Catalog, variant: int
) -> ConfiguredProvider[Any]:
    if recipe.provider is not None:
        return make_provider(recipe.provider, Surroundings(Path(), catalog))
    if settings is None or variant >= len(settings.providers):
        raise InputError(f"there is no provider number {variant + 1} here")
    return configured(settings, variant, catalog)
