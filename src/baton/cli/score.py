"""``baton score``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec import structs

from baton.config import load_config
from baton.config.evaluators import recorded_plan
from baton.formats.evaluation_folder import BODIES, Header, is_evaluation, read_header
from baton.model import InputError, Trace
from baton.readers import Catalog, iter_traces, load_catalog
from baton.readers.shards import BYTES, Shard, is_address, iter_shards
from baton.runner.plan import Plan
from baton.runner.recorded import score_to_folder

from .backing import HERE, Backing, backend_of, expanded, recipe_of
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
    note_trust,
    note_unchecked,
    prepare,
    report,
)
from .redacting import AS_CONFIGURED, Redacting
from .reports import NONE, Reports
from .target import trust_in

Several = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]


def score_command(
    *traces: str,
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
    backing: Backing = HERE,
    jobs: Whole = 1,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    trust: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = (),
    redacting: Redacting = AS_CONFIGURED,
) -> int:
    """Score recorded traces, against a dataset where there is one.

    Parameters
    ----------
    traces
        Files and folders with recorded traces, in any format Baton reads; globs, and addresses
        (s3://bucket/traces) where fsspec is installed.
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
    jobs
        How many processes score; with judges it is one.
    dry_run
        Print what judging would take, and ask nobody; no code of your own is imported.
    trust
        A folder whose test_config.json may name code; remembered until it changes. May be given
        several times.
    """
    if not traces:
        raise InputError("name the files or folders that hold the traces")
    trusted = trust_in(trust)
    settings = load_config(config, own_code=not dry_run) if config is not None else None
    spec = backing.spec(settings)
    words = expanded(traces)
    files = [Path(word) for word in words if not is_address(word)]
    note_config(settings)
    definitions = agents or (settings.agents if settings else None)
    catalog = load_catalog(definitions) if definitions is not None else None
    paths = list(dataset) or (settings.dataset if settings else [])
    cases = load_cases(paths, settings, agents) if paths else None
    plan = recorded_plan(settings, evaluators, cases, trusted, own_code=not dry_run)
    note_trust(trusted)
    plan = structs.replace(plan, redaction=redacting.of(settings))
    plan = judged_plan(plan, settings, judging or JudgeOptions(), rehearsal=dry_run)
    if cases is not None:
        note_unchecked(plan, cases)
    else:
        _note_datasets(files)
    if settings is not None and settings.providers:
        note(f"{settings.file}: `providers` are not used: recorded traces are scored")
    problems: list[str] = []
    given = (settings.name if settings else None) or (cases.name if cases else None)
    how: dict[str, Any] = {
        "root": out,
        "name": name or given or Path(words[0]).name,
        "header": header_of(
            settings, plan, paths, cases, None, definitions, **_read_from(words, definitions)
        ),
        "input_problems": problems,
        "repeats": max((_repeats(path) for path in files), default=1) if cases else 1,
    }
    told: dict[str, Any] = {
        "json": json,
        "show": show,
        "reports": reports,
        "traces": files,
        "agents": None if definitions is None else Path(definitions),
    }
    if spec is not None or len(files) < len(words):
        if jobs != 1:
            raise InputError("--jobs is for traces that are scored here: --workers goes there")
        if dry_run:
            raise InputError("--dry-run reads the traces here: leave the backend and addresses out")
        recipe = recipe_of(
            settings,
            plan,
            judging or JudgeOptions(),
            paths,
            agents=None if agents is None else str(agents),
            evaluators=list(evaluators),
            recorded=True,
            trusted=trusted.allowed,
        )
        prepare(settings, reports.files())
        from baton.runner.backends.distribute import score_on

        with redirect_stdout(sys.stderr):
            folder = score_on(
                backend_of(spec or {"type": "local"}, settings),
                recipe,
                plan,
                _shards(words, paths, problems, BYTES),
                cases,
                on_note=note,
                **how,
            )
        return report(folder, settings, **told)
    read = _read(files, paths, catalog, problems)
    if dry_run:
        from .dry_run import dry_run as rehearse

        code = rehearse(plan, read, cases, json=json)
        for problem in problems:
            note(problem)
        return code
    prepare(settings, reports.files())
    if _several(jobs, plan):
        from baton.runner.jobs import SHARD, Recorded, score_with_jobs

        found = score_with_jobs(
            Recorded(plan, cases, catalog),
            _shards(words, paths, problems, SHARD),
            jobs,
            on_note=note,
            **how,
        )
        if found is None:
            raise _nothing(files, [InputError(problem) for problem in problems])
        return report(found, settings, **told)
    folder = score_to_folder(plan, read, cases, **how)
    return report(folder, settings, **told)


def _read_from(traces: Sequence[str], definitions: Path | str | None) -> dict[str, Any]:
    """Return what a folder says of where its traces lie, and what they were read with."""
    return {
        "traces": list(traces),
        "definitions": None if definitions is None else str(definitions),
    }


def _note_datasets(paths: Sequence[Path]) -> None:
    """Say what an evaluation that is scored again without cases was made with."""
    for path in paths:
        if is_evaluation(path) and (used := read_header(path, Header).dataset):
            options = " ".join(f"--dataset {name}" for name in used)
            note(f"{path}: scored without cases; it was made with {options}")


def _repeats(path: Path) -> int:
    """Return how often an evaluation that is scored again played its cases."""
    folder = path.parent if path.name == BODIES else path
    return read_header(folder, Header).repeats if is_evaluation(folder) else 1


def _several(jobs: int, plan: Plan) -> bool:
    """Tell whether to score in several processes; raises InputError for less than one."""
    if jobs < 1:
        raise InputError(f"--jobs has to be at least 1, got {jobs}")
    if jobs == 1:
        return False
    if plan.needs_judge:
        note("--jobs 1, as judges are asked: they wait for answers, not for processors")
    elif not hasattr(os, "fork"):
        note("--jobs 1, as processes cannot be copied on this system")
    return hasattr(os, "fork") and not plan.needs_judge


def _shards(
    words: Sequence[str], dataset: list[str], problems: list[str], size: int
) -> Iterator[Shard]:
    def broken(error: InputError) -> None:
        problems.extend(str(problem) for problem in error.problems)

    exclude = [Path(path) for path in dataset]
    return iter_shards(words, exclude=exclude, size=size, on_problem=broken)


def _read(
    traces: Sequence[Path], dataset: list[str], catalog: Catalog | None, problems: list[str]
) -> Iterator[Trace]:
    """Read traces; a broken file is named and the others go on, but reading none is an error."""
    found = 0
    errors: list[InputError] = []
    exclude = [Path(path) for path in dataset]
    for trace in iter_traces(
        traces,
        agents=catalog,
        exclude=exclude,
        on_problem=errors.append,
        on_note=note,
        redact=False,  # scoring does it, after each trace has met its case
    ):
        found += 1
        yield trace
    broken = [problem for error in errors for problem in error.problems]
    if not found:
        raise _nothing(traces, errors)
    problems += [str(problem) for problem in broken]


def _nothing(traces: Sequence[Path], errors: Sequence[InputError]) -> InputError:
    """Return the error for files none of which holds a trace."""
    swapped = given_as(traces, "dataset", SWAPPED.format("dataset", "recording"))
    broken = [problem for error in errors for problem in error.problems]
    return InputError(swapped or broken or f"no trace in {', '.join(map(str, traces))}")
