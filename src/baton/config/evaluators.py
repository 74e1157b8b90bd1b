"""Which evaluators score a dataset, where nobody named them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from baton.model import Dataset
from baton.runner.plan import EvaluatorSpec, Plan, PlannedEvaluator, unchecked

from .dialects.adk import FILE_NAME, default_criteria, read_criteria

MakePlan = Callable[[Sequence[EvaluatorSpec | str]], Plan]
STATED = (
    ("agents", "agent_chain"),
    ("tools", "tool_calls"),
    ("response", "response"),
    ("response_contains", "response"),
    ("structured", "response"),
    ("interactions", "intermediate_responses"),
)
"""What a case may state, and the evaluator that looks at it."""


def plan_for(dataset: Dataset, make: MakePlan) -> Plan:
    """Choose evaluators file by file.

    A ``test_config.json`` in a file's folder says what to score. Without one, ADK's own eval
    sets get ADK's default criteria, and all others the evaluators for what their cases state.

    Raises:
        InputError: a ``test_config.json`` has faults, or no case states what can be checked.
    """
    chosen: dict[str, tuple[PlannedEvaluator, ...]] = {}
    plan: Plan | None = None
    by_folder: dict[Path, Plan] = {}
    for file, format_ in dataset.files.items():
        folder = Path(file).parent
        if (folder / FILE_NAME).is_file():
            if folder not in by_folder:
                by_folder[folder] = make(read_criteria(folder / FILE_NAME))
            plan = by_folder[folder]
        else:
            stated = dataset.stated_in(file)
            plan = make(default_criteria() if format_ == "adk" else _for_stated(stated))
        chosen[file] = plan.evaluators
    if plan is None:
        return make(_for_stated(dataset.stated))
    if len(set(map(_names, chosen.values()))) == 1 and not by_folder:
        return plan
    return msgspec.structs.replace(plan, files=chosen)


def _for_stated(stated: Collection[str]) -> list[EvaluatorSpec]:
    names = dict.fromkeys(name for field, name in STATED if field in stated)
    return [EvaluatorSpec(type=name) for name in names or ("agent_chain",)]


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
