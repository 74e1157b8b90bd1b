"""The rubric that a command is about."""

from __future__ import annotations

from baton.config import Config
from baton.evaluators.judged import Judged
from baton.model import InputError
from baton.runner.ask import judged
from baton.runner.judged import judged_types
from baton.runner.plan import make_plan
from baton.store import StoredEvaluation


def rubric_evaluator(name: str, settings: Config | None) -> Judged:
    """Return the evaluator that asks a rubric: as the config has it, where it has one.

    Raises:
        InputError: nothing has this name, or it asks no judge.
    """
    for planned in settings.plan.all_evaluators.values() if settings is not None else ():
        evaluator = planned.evaluator
        if name in (evaluator.name, evaluator.type) and isinstance(evaluator, Judged):
            return evaluator
    plan = settings.plan_with([name]) if settings is not None else make_plan([name])
    return judged(plan.evaluators[0].evaluator)


def rubric_of(stored: StoredEvaluation) -> str:
    """Return the rubric that an evaluation was judged by; raises InputError if there isn't one."""
    names = judged_types(stored)
    if len(names) == 1:
        return names[0]
    if not names:
        raise InputError(f"{stored.folder}: nothing was judged by a rubric; say which: --rubric")
    listed = ", ".join(f"`{name}`" for name in names)
    raise InputError(f"{stored.folder}: judged by {listed}; say which one to label by: --rubric")
