"""What to score with, from what a config, a dataset and the command line say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import msgspec

from baton.model import Dataset, InputError
from baton.model.dataset import Format
from baton.runner.plan import (
    WITHOUT_CASES,
    EvaluatorSpec,
    Plan,
    PlannedEvaluator,
    make_plan,
    unchecked,
)

from .dialects.adk import FILE_NAME, default_criteria, found_criteria, read_criteria
from .dialects.strands import read_experiment
from .load import Config
from .trust import NOBODY, Trust

MakePlan = Callable[[Sequence[EvaluatorSpec | str]], Plan]
STATED = (
    ("agents", "agent_chain"),
    ("dispatches", "dispatch_routing"),
    ("tools", "tool_calls"),
    ("response", "response"),
    ("response_contains", "response"),
    ("response_not_contains", "response"),
    ("structured", "structured_output"),
    ("interactions", "interactions"),
    ("final_state", "state_equals"),
)
"""What a case may state, and the evaluator that looks at it."""


def plan_for(
    dataset: Dataset, make: MakePlan, trust: Trust = NOBODY, *, own_code: bool = True
) -> Plan:
    """Choose evaluators file by file.

    An experiment of Strands names its own, a ``test_config.json`` in a file's folder says what
    to score. Without one, ADK's own eval sets get ADK's default criteria, and all others the
    evaluators for what their cases state. ``trust`` says whether a ``test_config.json`` may name
    code; without ``own_code`` none of it is imported, and ``make`` does not import any either.

    Raises:
        InputError: an experiment or a ``test_config.json`` has faults, or names code without
            being trusted.
    """
    chosen: dict[str, tuple[PlannedEvaluator, ...]] = {}
    plan: Plan | None = None
    by_folder: dict[Path, Plan] = {}
    own_words = False
    for file, format_ in dataset.files.items():
        folder = Path(file).parent
        experiment = read_experiment(Path(file)) if format_ == "strands" else None
        if experiment is not None:
            plan, own_words = make(experiment), True
        elif (folder / FILE_NAME).is_file():
            if folder not in by_folder:
                found = found_criteria(folder / FILE_NAME, trust, own_code=own_code)
                by_folder[folder] = make(found)
            plan, own_words = by_folder[folder], True
        else:
            stated = dataset.stated_in(file)
            plan = make(default_criteria() if format_ == "adk" else _for_stated(stated, format_))
        chosen[file] = plan.evaluators
    if plan is None:
        return make(_for_stated(dataset.stated, dataset.format))
    if len(set(map(_names, chosen.values()))) == 1 and (len(chosen) == 1 or not own_words):
        return plan
    return msgspec.structs.replace(plan, files=chosen)


def says_what_to_score(dataset: Dataset) -> bool:
    """Tell whether cases of Strands or the accelerator, or of steps, are among those to score.

    Their files name evaluators, or state what to look at in words that each stand for one.
    """
    return bool({"strands", "steps"} & set(dataset.files.values()))


def _for_stated(stated: Collection[str], format_: Format) -> list[EvaluatorSpec]:
    """Choose by what is stated.

    Eval sets of judge-llm tell what agents said on the way, not who set them to work, and a
    final state that judge-llm itself never looks at: it may go unscored.
    """
    found = [name for field, name in STATED if field in stated]
    theirs = format_ == "judge-llm"
    names = ["intermediate_responses" if theirs and n == "interactions" else n for n in found]
    return [
        EvaluatorSpec(type=name, optional=theirs and name == "state_equals")
        for name in dict.fromkeys(names or ["agent_chain"])
    ]


def _names(evaluators: tuple[PlannedEvaluator, ...]) -> tuple[str, ...]:
    return tuple(planned.evaluator.name for planned in evaluators)


def left_unchecked(plan: Plan, dataset: Dataset) -> list[str]:
    """Say what cases state that the evaluators of a plan do not look at."""
    left = unchecked(plan, dataset)
    looks = dict(STATED)
    can = [f"`{field}` (`{looks[field]}`)" for field in left if field in looks]
    cannot = [f"`{field}`" for field in left if field not in looks]
    names = {name for planned in plan.all_evaluators.values() for name in planned.override_names}
    options = {name for override in dataset.overrides for name in override.options} - names
    found = []
    if can:
        found.append(f"stated and not checked, as no evaluator for it is asked for: {_list(can)}")
    if cannot:
        found.append(f"stated and looked at by no evaluator: {_list(cannot)}")
    if options:
        listed = _list([f"`{name}`" for name in sorted(options)])
        found.append(f"cases set options of evaluators that are not asked for: {listed}")
    return found


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)


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
