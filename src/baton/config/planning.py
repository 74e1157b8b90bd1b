"""What to score with, from what a config, a dataset and the command line say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from baton.model import Dataset, InputError
from baton.runner.plan import WITHOUT_CASES, Plan, make_plan

from .dialects.adk import read_criteria
from .evaluators import plan_for, says_what_to_score
from .load import Config


def live_plan(
    settings: Config | None, evaluators: Sequence[str], criteria: Path | None, dataset: Dataset
) -> Plan:
    """Return the plan of cases that are played; raises InputError for two that exclude another."""
    make = settings.plan_with if settings else make_plan
    if evaluators and criteria is not None:
        raise InputError("--evaluator and --config_file_path both say what to score: give one")
    if evaluators:
        return make(evaluators)
    if criteria is not None:
        return make(read_criteria(criteria))
    if settings is not None and settings.evaluators is not None:
        return settings.plan
    return plan_for(dataset, make)


def recorded_plan(
    settings: Config | None, evaluators: Sequence[str], cases: Dataset | None
) -> Plan:
    """Return the plan of recorded traces, which may have no cases; raises InputError."""
    make = settings.plan_with if settings else make_plan
    if evaluators:
        return make(evaluators)
    if settings is not None and settings.evaluators is not None:
        return settings.plan
    if cases is not None and says_what_to_score(cases):
        return plan_for(cases, make)
    if cases is None:
        return make(WITHOUT_CASES)
    return settings.plan if settings else make_plan(None)
