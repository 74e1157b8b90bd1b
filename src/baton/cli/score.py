"""``baton score``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from baton.config import Config, load_config
from baton.datasets import load_dataset
from baton.model import InputError, Problem, Trace
from baton.plugins import reporter_entry, resolve
from baton.readers import Catalog, iter_traces, load_catalog
from baton.reports.json import EXIT_CODES
from baton.runner.plan import Plan, make_plan, unchecked
from baton.runner.recorded import score_to_folder
from baton.store import StoredEvaluation, read_evaluation

from .notes import note

OUT = Path(".baton/evaluations")


def score_command(
    *traces: Path,
    dataset: Annotated[tuple[str, ...], Parameter(name=["--dataset", "-d"], negative="")] = (),
    evaluators: Annotated[tuple[str, ...], Parameter(name=["--evaluator", "-e"], negative="")] = (),
    config: Annotated[Path | None, Parameter(name=["--config", "-c"])] = None,
    agents: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    limit: int = 10,
    out: Path = OUT,
    name: str | None = None,
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
        Agent definitions: an app-info answer of ADK, or YAML with `agents:`.
    json
        Print the whole report as JSON.
    limit
        How many cases that did not pass are printed in full.
    out
        Where evaluations are stored.
    name
        Name of the evaluation.
    """
    if not traces:
        raise InputError("name the files or folders that hold the traces")
    settings = load_config(config) if config is not None else None
    plan = _plan(settings, evaluators)
    catalog = load_catalog(agents) if agents is not None else None
    paths = list(dataset) or (settings.dataset if settings else [])
    cases = load_dataset(paths) if paths else None
    for text in cases.notes if cases else ():
        note(text)
    left = unchecked(plan, cases) if cases else []
    if left:
        names = ", ".join(f"`{field}`" for field in left)
        note(f"stated in the dataset and checked by no evaluator asked for: {names}")
    if settings is not None and settings.providers:
        note(f"{settings.file}: `providers` are not used: recorded traces are scored")
    problems: list[str] = []
    folder = score_to_folder(
        plan,
        _read(traces, paths, catalog, problems),
        cases,
        root=out,
        name=name or (cases.name if cases else traces[0].name),
        header=_header(settings, traces, paths, plan),
        input_problems=problems,
    )
    return _report(folder, settings, json=json, limit=limit)


def _plan(settings: Config | None, evaluators: tuple[str, ...]) -> Plan:
    if evaluators or settings is None:
        names = settings.plan.context.agent_names if settings else None
        return make_plan(evaluators or None, agent_names=names)
    return settings.plan


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
        raise InputError(broken or f"no trace in {', '.join(map(str, traces))}")
    problems += [str(problem) for problem in broken]


def _header(
    settings: Config | None, traces: tuple[Path, ...], dataset: list[str], plan: Plan
) -> dict[str, Any]:
    from baton import __version__

    return {
        "versions": {"baton": __version__},
        "traces": [str(path) for path in traces],
        "dataset": dataset,
        "config": settings.resolved if settings else None,
        "evaluator_versions": {
            planned.evaluator.name: planned.evaluator.version for planned in plan.evaluators
        },
    }


def _report(folder: Path, settings: Config | None, *, json: bool, limit: int) -> int:
    """Print the report, write those that the config asks for, and return the exit code."""
    evaluation = read_evaluation(folder)
    if json:
        resolve(reporter_entry("json"))(evaluation, sys.stdout)
    else:
        resolve(reporter_entry("terminal"))(evaluation, sys.stdout, limit=limit)
    for reporter in settings.reporters if settings else ():
        if reporter.output_path is not None:
            _write_report(evaluation, reporter.type, Path(reporter.output_path))
    code = EXIT_CODES.get(evaluation.header.status, 3)
    tolerant = settings is not None and not settings.agent.fail_on_threshold_violation
    if code == 1 and tolerant:
        note("the exit code is 0, as the config says `fail_on_threshold_violation: false`")
        return 0
    return code


def _write_report(evaluation: StoredEvaluation, kind: str, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            resolve(reporter_entry(kind))(evaluation, file)
    except OSError as error:
        message = f"the report cannot be written: {error.strerror}"
        raise InputError(Problem(file=str(path), message=message)) from None
