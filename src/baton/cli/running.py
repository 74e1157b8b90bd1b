"""How to run an evaluation, and how to resume one: the options of `baton eval` for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from cyclopts import Parameter

from baton.config import Config
from baton.datasets.load import choose
from baton.formats.explain import explain
from baton.gate.decide import for_some_cases
from baton.model import Dataset, InputError, Problem
from baton.runner.evaluate import finished
from baton.runner.plan import Plan, RunOptions
from baton.store import Kept, keep, read_evaluation

from .judging import JudgeOptions
from .notes import note
from .numbers import Whole
from .request import Basis, Earlier, Request, changes, earlier
from .taken_over import SETTLED, same_agent, taken_over

_Flag = Parameter(negative="")
_SAME_CASES = "the results there are of other cases or repeats: start a new evaluation"


@Parameter(name="*")
@dataclass(frozen=True)
class Running:
    """How to run; what is given here goes before the config.

    Parameters
    ----------
    repeat
        How often each case is played.
    concurrency
        How many cases are in play at once, at the most.
    timeout
        Seconds for one case.
    retry_errors
        How often what was an error is played again.
    fail_fast
        Stop at the first case that fails or errs.
    max_agent_cost
        USD that the agents may cost in this run; the cases after that are errors.
    resume
        Resume the evaluation in this folder: play what is missing or was an error. The config or
        the agent is named as it was then.
    only_failed
        Start a new evaluation of the cases that did not pass in this folder.
    force
        Go on although the dataset, the config or an evaluator changed.
    variant
        Which of a config's providers to evaluate, by its agent_id or type.
    """

    repeat: Whole | None = None
    concurrency: Whole | None = None
    timeout: float | None = None
    retry_errors: Whole | None = None
    fail_fast: Annotated[bool, _Flag] = False
    max_agent_cost: float | None = None
    resume: Path | None = None
    only_failed: Path | None = None
    force: Annotated[bool, _Flag] = False
    variant: str | None = None

    def options(self, before: RunOptions) -> RunOptions:
        """Put what is given over what a config or a folder says; raises InputError."""
        names = ("repeat", "concurrency", "timeout", "retry_errors", "max_agent_cost")
        stated: dict[str, Any] = {
            name: value for name in names if (value := getattr(self, name)) is not None
        }
        if self.fail_fast:
            stated["fail_fast"] = True
        faults = explain(stated, RunOptions)
        if faults:
            raise InputError(
                Problem(message=f"--{str(fault.path[0]).replace('_', '-')}: {fault.message}")
                for fault in faults
            )
        return msgspec.structs.replace(before, **stated)


NORMAL = Running()


class Start(NamedTuple):
    """What to evaluate, and from where: a folder that is resumed, or nothing.

    ``open_cases`` tells, by id, those that are not left out as they passed before. ``found`` says
    that the criteria were named by the folder, not by the user.
    """

    request: Request
    judging: JudgeOptions
    folder: Path | None = None
    before: Earlier | None = None
    basis: Basis | None = None
    open_cases: Callable[[str], bool] | None = None
    found: bool = False


def start(request: Request, judging: JudgeOptions, running: Running) -> Start:
    """Take over what an earlier evaluation was asked for, where one is named.

    Raises:
        InputError: options that contradict each other, or no such evaluation.
    """
    if running.resume is not None and running.only_failed is not None:
        raise InputError("--resume and --only-failed exclude one another: give one")
    folder = running.resume or running.only_failed
    if folder is None:
        if running.force:
            raise InputError("--force goes with --resume")
        return Start(request, judging)
    before, its_request, basis = earlier(folder)
    its_judging = _judging(its_request, judging, folder)
    if running.resume is not None:
        if running.repeat is not None:
            raise InputError(SETTLED)
        taken = taken_over(request, its_request, folder, "--resume")
        return Start(taken.request, its_judging, folder, before, basis, found=taken.criteria_found)
    only_agent = msgspec.structs.replace(request, target=[]).is_empty
    if request.is_empty or (only_agent and same_agent(request, its_request)):
        taken = taken_over(request, its_request, folder, "--only-failed")
        open_cases = _open_cases(folder)
        found = taken.criteria_found
        return Start(taken.request, its_judging, open_cases=open_cases, found=found)
    return Start(request, its_judging, open_cases=_open_cases(folder))


def _judging(its_request: Request, judging: JudgeOptions, folder: Path) -> JudgeOptions:
    """Put what is given over what the folder says; raises InputError for what makes no sense."""
    try:
        its = msgspec.convert(its_request.judge, JudgeOptions)
    except msgspec.ValidationError as error:
        problem = Problem(file=str(folder), path="request.judge", message=str(error))
        raise InputError(problem) from None
    return JudgeOptions(**{**asdict(its), **_given(judging)})


def _given(judging: JudgeOptions) -> dict[str, Any]:
    return {name: value for name, value in asdict(judging).items() if value not in (None, False)}


def _open_cases(folder: Path) -> Callable[[str], bool]:
    """Tell the cases that did not pass; where some were not played, all that did not."""
    stored = read_evaluation(folder)
    passed: dict[str, int] = {}
    for row in stored.rows():
        passed[row.case_id] = passed.get(row.case_id, 0) + (row.status == "passed")
    repeats, planned = stored.header.repeats, stored.header.planned
    done = {case_id for case_id, times in passed.items() if times >= repeats}
    if planned is None or len(stored) < planned:
        return lambda case_id: case_id not in done
    return lambda case_id: case_id in passed and case_id not in done


def chosen(cases: Dataset, begun: Start) -> Dataset:
    """Return the cases that are asked for; raises InputError when there are none."""
    request = begun.request
    cases = choose(cases, request.filters, request.limit)
    if request.cases is not None:
        wanted = set(request.cases)
        cases = _some(cases, wanted.__contains__, "none of the chosen cases is there any more")
    if begun.open_cases is not None:
        cases = _some(cases, begun.open_cases, "every case passed there: nothing is left to play")
    return cases


def with_part_of_gate(plan: Plan, cases: Dataset, begun: Start) -> Plan:
    """Return the plan without what its gate says of cases that passed before, and note that."""
    if not plan.gate or (begun.open_cases is None and begun.request.cases is None):
        return plan
    tags = {tag for case in cases for tag in case.tags} if plan.gate.rules else set()
    part = for_some_cases(plan.gate, cases.ids, tags)
    if part.left_out:
        note(f"the gate is about all cases; not asked of these: {', '.join(part.left_out)}")
    return msgspec.structs.replace(plan, gate=part.gate)


def _some(cases: Dataset, keep_case: Callable[[str], bool], otherwise: str) -> Dataset:
    places = [place for place, case_id in enumerate(cases.ids) if keep_case(case_id)]
    if not places:
        raise InputError(otherwise)
    return cases.subset(places)


def kept_of(begun: Start, basis: Basis, cases: Dataset, *, force: bool) -> Kept | None:
    """Return what is kept of a folder that is resumed; ``None`` for a new evaluation.

    Raises:
        InputError: what its results rest on has changed, with all that has.
    """
    if begun.folder is None or begun.before is None or begun.basis is None:
        return None
    changed = changes(begun.basis, basis)
    if begun.basis.evaluators.keys() != basis.evaluators.keys():
        force = False
    if changed and not force:
        raise InputError(
            Problem(file=str(begun.folder), message=f"changed since: {what}{_ADVICE}")
            for what in changed
        )
    for what in changed:
        note(f"changed since, and resumed anyway: {what}")
    kept = keep(begun.folder)
    for text in kept.lost:
        note(f"{begun.folder}: {text}")
    for row in kept.rows():
        if cases.ids[row.position : row.position + 1] != [row.case_id]:
            raise InputError(Problem(file=str(begun.folder), message=_SAME_CASES))
        for name, _, _ in row.scores:
            if name not in basis.evaluators:
                message = f"has scores of `{name}`, which is not asked for: start a new evaluation"
                raise InputError(Problem(file=str(begun.folder), message=message))
    return kept


_ADVICE = "; start a new evaluation, or --force to put both into one"


def is_complete(folder: Path, before: Earlier) -> bool:
    """Tell whether nothing of an evaluation is missing, and nothing an error."""
    if before.status not in ("passed", "failed", "error") or before.planned is None:
        return False
    stored = read_evaluation(folder, partial=True)
    is_whole = len(stored) == before.planned and not stored.damage
    return is_whole and not stored.header.cases.get("error")


def left_to_play(kept: Kept | None, total: int) -> int:
    """Return how many results are still to come."""
    return total - len(finished(kept))


def run_options(settings: Config | None, begun: Start, running: Running) -> RunOptions:
    """Return how to run: as the config says, or the folder, and the command line over both."""
    if begun.before is None:
        return running.options(settings.run if settings else RunOptions())
    # A limit that was reached, or a first failure, is what one goes on from.
    run = msgspec.structs.replace(
        begun.before.run,
        repeat=begun.before.repeats,
        retry_errors=0,
        fail_fast=False,
        max_agent_cost=None,
    )
    return running.options(run)
