"""``baton score``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from baton.config import Config, load_config
from baton.config.evaluators import plan_for, says_what_to_score
from baton.formats.evaluation_folder import BODIES, is_evaluation
from baton.model import Dataset, InputError, Trace
from baton.readers import Catalog, iter_traces, load_catalog
from baton.runner.plan import WITHOUT_CASES, Plan, make_plan
from baton.runner.recorded import score_to_folder
from baton.store import read_evaluation

from .judging import JudgeOptions, judged_plan
from .kinds import given_as
from .notes import note
from .numbers import Whole
from .output import (
    OUT,
    SWAPPED,
    header_of,
    load_cases,
    note_config,
    note_unchecked,
    prepare,
    report,
)
from .reports import NONE, Reports

Several = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]


def score_command(
    *traces: Path,
    dataset: Annotated[Several, Parameter(name=["--dataset", "-d"])] = (),
    evaluators: Annotated[Several, Parameter(name=["--evaluator", "-e"])] = (),
    config: Annotated[Path | None, Parameter(name=["--config", "-c"])] = None,
    agents: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    show: Whole = 10,
    reports: Reports = NONE,
    out: Path = OUT,
    name: str | None = None,
    judging: JudgeOptions | None = None,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Score recorded traces, against a dataset where there is one.

    Parameters
    ----------
    traces
        Files and folders with recorded traces, in any format Baton reads.
    dataset
        Cases: a file, a folder, or FILE:case1,case2. May be given several times.
    evaluators
        An evaluator to score with, with its default options. May be given several times.
    config
        A config with evaluators, options and a dataset; what is given here goes before it.
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    json
        Print the whole report as JSON.
    show
        How many cases that did not pass are printed in full.
    out
        Where evaluations are stored.
    name
        Name of the evaluation.
    dry_run
        Print what judging would take, and ask nobody.
    """
    if not traces:
        raise InputError("name the files or folders that hold the traces")
    settings = load_config(config) if config is not None else None
    note_config(settings)
    definitions = agents or (settings.agents if settings else None)
    catalog = load_catalog(definitions) if definitions is not None else None
    paths = list(dataset) or (settings.dataset if settings else [])
    cases = load_cases(paths, settings, agents) if paths else None
    plan = _plan(settings, evaluators, cases)
    plan = judged_plan(plan, settings, judging or JudgeOptions(), rehearsal=dry_run)
    if cases is not None:
        note_unchecked(plan, cases)
    else:
        _note_datasets(traces)
    if settings is not None and settings.providers:
        note(f"{settings.file}: `providers` are not used: recorded traces are scored")
    problems: list[str] = []
    read = _read(traces, paths, catalog, problems)
    if dry_run:
        from .dry_run import dry_run as rehearse

        code = rehearse(plan, read, cases, json=json)
        for problem in problems:
            note(problem)
        return code
    prepare(settings, reports.files())
    folder = score_to_folder(
        plan,
        read,
        cases,
        root=out,
        name=name
        or (settings.name if settings else None)
        or (cases.name if cases else traces[0].name),
        header=header_of(settings, plan, paths, **_read_from(traces, definitions)),
        input_problems=problems,
        repeats=max((_repeats(path) for path in traces), default=1) if cases else 1,
    )
    return report(folder, settings, json=json, show=show, reports=reports)


def _read_from(traces: tuple[Path, ...], definitions: Path | str | None) -> dict[str, Any]:
    """Return what a folder says of where its traces lie, and what they were read with."""
    return {
        "traces": [str(path) for path in traces],
        "definitions": None if definitions is None else str(definitions),
    }


def _note_datasets(paths: tuple[Path, ...]) -> None:
    """Say what an evaluation that is scored again without cases was made with."""
    for path in paths:
        if is_evaluation(path) and (used := read_evaluation(path).header.dataset):
            options = " ".join(f"--dataset {name}" for name in used)
            note(f"{path}: scored without cases; it was made with {options}")


def _repeats(path: Path) -> int:
    """Return how often an evaluation that is scored again played its cases."""
    folder = path.parent if path.name == BODIES else path
    return read_evaluation(folder).header.repeats if is_evaluation(folder) else 1


def _plan(settings: Config | None, evaluators: tuple[str, ...], cases: Dataset | None) -> Plan:
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


def _read(
    traces: tuple[Path, ...], dataset: list[str], catalog: Catalog | None, problems: list[str]
) -> Iterator[Trace]:
    """Read traces; a broken file is named and the others go on, but reading none is an error."""
    found = 0
    errors: list[InputError] = []
    exclude = [Path(path) for path in dataset]
    for trace in iter_traces(
        traces, agents=catalog, exclude=exclude, on_problem=errors.append, on_note=note
    ):
        found += 1
        yield trace
    broken = [problem for error in errors for problem in error.problems]
    if not found:
        swapped = given_as(traces, "dataset", SWAPPED.format("dataset", "recording"))
        raise InputError(swapped or broken or f"no trace in {', '.join(map(str, traces))}")
    problems += [str(problem) for problem in broken]
