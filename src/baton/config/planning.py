"""What to score with, from what a config, a dataset and the command line say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from baton.model import Dataset, InputError
from baton.runner.plan import WITHOUT_CASES, Plan, make_plan

from .dialects.adk import found_criteria, read_criteria
from .evaluators import MakePlan, plan_for, says_what_to_score
from .load import Config
from .trust import NOBODY, Trust


def live_plan(
    settings: Config | None,
    evaluators: Sequence[str],
    criteria: Path | None,
    dataset: Dataset,
    trust: Trust = NOBODY,
    *,
    own_code: bool = True,
    criteria_found: bool = False,
) -> Plan:
    """Return the plan of cases that are played.

    ``trust`` is for files that were found; ``criteria_found`` says that the criteria are one of
    them. Without ``own_code`` nothing of the user's is imported.

    Raises:
        InputError: two options that exclude each other, or a found file that is not trusted.
    """
    make = _maker(settings, own_code)
    if evaluators and criteria is not None:
        raise InputError("--evaluator and --config_file_path both say what to score: give one")
    if evaluators:
        return make(evaluators)
    if criteria is not None and criteria_found:
        return make(found_criteria(criteria, trust, own_code=own_code))
    if criteria is not None:
        return make(read_criteria(criteria, own_code=own_code))
    if settings is not None and settings.evaluators is not None:
        return settings.plan
    return plan_for(dataset, make, trust, own_code=own_code)


def recorded_plan(
    settings: Config | None,
    evaluators: Sequence[str],
    cases: Dataset | None,
    trust: Trust = NOBODY,
    *,
    own_code: bool = True,
) -> Plan:
    """Return the plan of recorded traces, which may have no cases; raises InputError as above."""
    make = _maker(settings, own_code)
    if evaluators:
        return make(evaluators)
    if settings is not None and settings.evaluators is not None:
        return settings.plan
    if cases is not None and says_what_to_score(cases):
        return plan_for(cases, make, trust, own_code=own_code)
    if cases is None:
        return make(WITHOUT_CASES)
    return settings.plan if settings else make_plan(None)


def _maker(settings: Config | None, own_code: bool) -> MakePlan:
    return settings.plan_with if settings else partial(make_plan, own_code=own_code)
