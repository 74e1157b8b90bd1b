"""Chooses the evaluators from the config, the dataset and the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from baton.evaluators.defaults import STATED
from baton.model import Dataset, InputError
from baton.model.dataset import Format
from baton.model.option_spelling import one_of, option
from baton.runner.plan import (
    PROVEN_SPECS,
    EvaluatorSpec,
    Plan,
    PlannedEvaluator,
    Specs,
    unchecked,
)

from .dialects.adk import FILE_NAME, default_criteria, found_criteria, read_criteria
from .dialects.strands import read_experiment
from .trust import NOBODY, Trust

MakePlan = Callable[[Specs | None], Plan]


def plan_for(
    dataset: Dataset, make: MakePlan, trust: Trust = NOBODY, *, own_code: bool = True
) -> Plan:
    """Choose evaluators file by file.

    A Strands experiment names its own evaluators; a ``test_config.json`` in the file's folder does
    for eval sets. Without one, ADK's own eval sets get ADK's default criteria, and all others the
    evaluators for what their cases state; Baton's cases also those for what the record proves.
    ``trust`` says whether a ``test_config.json`` may name code; without ``own_code`` none of it is
    imported, and ``make`` does not import any either.

    Raises:
        InputError: an experiment or a ``test_config.json`` has errors, or names code without being
            trusted.
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
                criteria = found_criteria(folder / FILE_NAME, trust, own_code=own_code)
                by_folder[folder] = make(criteria)
            plan, own_words = by_folder[folder], True
        else:
            stated = dataset.stated_in(file)
            plan = make(default_criteria() if format_ == "adk" else _for_stated(stated, format_))
        chosen[file] = plan.evaluators
    if plan is None:
        return make(_for_stated(dataset.stated, dataset.format))
    names = {tuple(one.evaluator.name for one in some) for some in chosen.values()}
    if len(names) == 1 and (len(chosen) == 1 or not own_words):
        return plan
    return msgspec.structs.replace(plan, files=chosen)


def _for_stated(stated: Collection[str], format_: Format) -> list[EvaluatorSpec]:
    """Choose by what is stated; for Baton's cases also by what the record alone proves.

    Otherwise a case that names agents passes even if a dispatch loses what the user said. Cases of
    other tools are scored by what these tools check, so that both give the same verdict.

    Eval sets of judge-llm record what agents said on the way, but not who called them, and a final
    state that judge-llm never checks: it need not be scored. Messages of Strands are for a judge,
    which accepts other words: without a judge, what is not found need not be scored.
    """
    # A dispatch case has no chain; what the record proves is checked anyway.
    nothing_stated = [] if "dispatch" in stated else ["agent_chain"]
    wanted = [name for field, name in STATED if field in stated]
    theirs = format_ == "judge-llm"
    names = ["intermediate_responses" if theirs and n == "interactions" else n for n in wanted]
    of_judge = {"interactions"} if format_ == "strands" else set()
    may_be_left = of_judge | ({"state_equals"} if theirs else set())
    checks = [
        EvaluatorSpec(
            type=name,
            optional=name in may_be_left,
            config={"reworded": "unknown"} if name in of_judge else {},
        )
        for name in dict.fromkeys(names or nothing_stated)
    ]
    return [*checks, *(PROVEN_SPECS if format_ == "baton" else ())]


def left_unchecked(plan: Plan, dataset: Dataset) -> list[str]:
    """Return what cases state and no evaluator of a plan checks."""
    left = unchecked(plan, dataset)
    looks = dict(STATED)
    can = [f"`{field}` (`{looks[field]}`)" for field in left if field in looks]
    cannot = [f"`{field}`" for field in left if field not in looks]
    names = {name for planned in plan.all_evaluators.values() for name in planned.override_names}
    options = {name for override in dataset.overrides for name in override.options} - names
    texts = []
    if can:
        texts.append(
            f"stated but not checked, because no evaluator for it is selected: {_list(can)}"
        )
    if cannot:
        texts.append(f"stated, but no evaluator checks it: {_list(cannot)}")
    if options:
        listed = _list([f"`{name}`" for name in sorted(options)])
        texts.append(f"cases set options of evaluators that are not selected: {listed}")
    return texts


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)


def choose_evaluators(
    dataset: Dataset | None,
    make: MakePlan,
    *,
    evaluators: Specs | None = None,
    configured: Plan | None = None,
    criteria: Path | None = None,
    criteria_found: bool = False,
    by_cases: bool = False,
    trust: Trust = NOBODY,
    own_code: bool = True,
) -> Plan:
    """Return the plan with its evaluators: those given, else the config's, else the cases'.

    Args:
        dataset: the cases; without any, only evaluators that need none are used.
        make: makes a plan of evaluators.
        evaluators: those given; names with a `+` are added to the others.
        configured: the plan of a config that names evaluators.
        criteria: criteria of ADK that are given.
        criteria_found: whether data named the criteria, so that code in them needs trust.
        by_cases: choose by what cases state. Otherwise this applies only to files that name
            evaluators, and all others get ``agent_chain``.
        trust: for criteria that were found.
        own_code: import the user's code.

    Raises:
        InputError: two options that contradict each other, or a found file that is not trusted.
    """
    some = [evaluators] if isinstance(evaluators, str) else evaluators
    requested = None if some is None else list(some)
    added = [name[1:] for name in requested or () if isinstance(name, str) and name.startswith("+")]
    if requested is not None and added and len(added) == len(requested):
        plan = choose_evaluators(
            dataset,
            make,
            configured=configured,
            criteria=criteria,
            criteria_found=criteria_found,
            by_cases=by_cases,
            trust=trust,
            own_code=own_code,
        )
        return _with(plan, _requested(added, make))
    if added:
        raise InputError(
            f"{option('evaluators')}: `+` adds to the evaluators of cases or the config, a name "
            "without it replaces them: use one form"
        )
    evaluators = requested
    if evaluators is not None and criteria is not None:
        both = f"{option('evaluators')} and {option('criteria')}"
        raise InputError(f"{both} both select what to score: give one of them")
    if evaluators is not None:
        return _requested(evaluators, make)
    if criteria is not None and criteria_found:
        return make(found_criteria(criteria, trust, own_code=own_code))
    if criteria is not None:
        return make(read_criteria(criteria, own_code=own_code))
    if configured is not None:
        return configured
    if dataset is None:
        return make(PROVEN_SPECS)
    # Cases of Strands and of the accelerator name evaluators, or use words that each stand for an
    # evaluator.
    if by_cases or {"strands", "steps"} & set(dataset.files.values()):
        return plan_for(dataset, make, trust, own_code=own_code)
    return make(None)


def _requested(specs: Sequence[Any], make: MakePlan) -> Plan:
    """Make a plan of the evaluators that were given; errors name each as it was given.

    On the command line nobody wrote a list: its third ``-e`` is not `evaluators[2]`.
    """
    try:
        return make(specs)
    except InputError as error:
        problems = []
        for problem in error.problems:
            place = _PLACE.match(problem.path)
            if place is None:
                problems.append(problem)
                continue
            index, rest = int(place[1]), problem.path[place.end() :]
            named = one_of("evaluators", index, specs[index])
            if named != place[0]:
                option_of_it = rest.lstrip(".").removeprefix("config").lstrip(".")
                rest = f": {option_of_it}" if option_of_it else ""
            problems.append(msgspec.structs.replace(problem, path=f"{named}{rest}"))
        raise InputError(problems) from None


_PLACE = re.compile(r"evaluators\[(\d+)\]")


def _with(plan: Plan, more: Plan) -> Plan:
    """Add the evaluators of ``more`` to those of every file; none of them is optional."""

    def joined(some: Sequence[PlannedEvaluator]) -> tuple[PlannedEvaluator, ...]:
        names = {one.evaluator.name for one in more.evaluators}
        kept = [
            msgspec.structs.replace(one, optional=False) if one.evaluator.name in names else one
            for one in some
        ]
        existing = {one.evaluator.name for one in some}
        return (*kept, *(one for one in more.evaluators if one.evaluator.name not in existing))

    return msgspec.structs.replace(
        plan,
        evaluators=joined(plan.evaluators),
        files={file: joined(some) for file, some in plan.files.items()},
        prices=more.prices if plan.prices is None else plan.prices,
    )
