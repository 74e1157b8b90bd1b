"""``baton check``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from baton.config import load_config
from baton.config.dialects.adk import read_criteria
from baton.config.dialects.strands import read_experiment
from baton.datasets import load_dataset
from baton.evaluators.judging.load import load_rubric
from baton.formats.evaluation_folder import BODIES, is_evaluation
from baton.lint import lint, refuse_unknown
from baton.model import InputError, Problem, counted
from baton.model.visible import visible_line
from baton.readers import load_catalog, load_traces
from baton.readers.load import EMPTY, NOT_A_TRACE, files_below, outside
from baton.runner.plan import check_overrides, make_plan
from baton.session.agents import configured
from baton.session.file_kinds import Kind, kind_of_file
from baton.store import read_evaluation

from .gather import scope_of
from .messages import note, say

WARNED = 1


def check_command(
    *files: Path,
    strict: Annotated[bool, Parameter(negative="")] = False,
    ignore: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
) -> int:
    """Check datasets, configs, rubrics, traces and agent definitions, and run nothing.

    What is valid and still does not test what was meant is a warning.

    Parameters
    ----------
    files
        Files or folders; the type of each is detected from its content. A folder of ADK agents says
        what its cases can be checked against.
    strict
        Warnings give exit code 1.
    ignore
        A kind of warning to leave out, by the name in its brackets. May be given several times.
    """
    if not files:
        raise InputError("name the files to check")
    refuse_unknown(ignore)
    problems: list[Problem] = []
    seen: dict[Kind, list[Path]] = {}
    for file in files:
        if file.is_dir():
            problems += _check_folder(file, seen)
            continue
        try:
            print(visible_line(f"{file}: {_check(file, seen)}"))
        except InputError as error:
            problems += error.problems
    warnings = lint(scope_of(seen, [file for file in files if file.is_dir()]), ignore)
    for warning in warnings:
        say(f"warning: {warning}")
    if problems:
        raise InputError(problems)
    return WARNED if strict and warnings else 0


def _check_folder(folder: Path, seen: dict[Kind, list[Path]]) -> list[Problem]:
    """Check every file of a folder; one that is nothing Baton reads is noted."""
    problems: list[Problem] = []
    found = 0
    links: list[Path] = []
    for file in files_below(folder, links):
        try:
            if file.name == BODIES and is_evaluation(file.parent):
                print(visible_line(f"{file.parent}: {_check_evaluation(file.parent)}"))
            else:
                print(visible_line(f"{file}: {_check(file, seen)}"))
            found += 1
        except InputError as error:
            if error.problems[0].message in (NOT_A_TRACE, EMPTY):
                note(f"{file}: nothing that Baton reads")
            else:
                problems += error.problems
    problems += outside(links)
    if not found and not problems:
        problems.append(Problem(file=str(folder), message="holds nothing that Baton reads"))
    return problems


def _check(file: Path, seen: dict[Kind, list[Path]]) -> str:
    kind = kind_of_file(file)
    seen.setdefault(kind, []).append(file)
    return _CHECKS[kind](file)


def _check_dataset(file: Path) -> str:
    dataset = load_dataset(file)
    check_overrides(make_plan(None), dataset, also_unasked=True)
    for name, format_ in dataset.files.items():
        if format_ == "strands":
            read_experiment(Path(name))
    for text in dataset.notes:
        note(text)
    turns = sum(len(case.turns) for case in dataset)
    return f"dataset ({dataset.format}), {counted(len(dataset), 'case')}, {counted(turns, 'turn')}"


def _check_config(file: Path) -> str:
    config = load_config(file, own_code=False)
    if config.dataset:
        check_overrides(config.plan, load_dataset(config.dataset), also_unasked=True)
    for index, options in enumerate(config.providers):
        # Building these would import, and so run, code of the user's own.
        if options.type != "python" and options.hooks is None:
            configured(config, index, {})
    if config.evaluators is None:
        return "config, evaluators by what cases state"
    return f"config, {counted(len(config.plan.evaluators), 'evaluator')}"


def _check_criteria(file: Path) -> str:
    return f"criteria of ADK, {counted(len(read_criteria(file, own_code=False)), 'evaluator')}"


def _check_evaluation(folder: Path) -> str:
    evaluation = read_evaluation(folder)
    results = counted(len(evaluation), "result")
    return f"evaluation, {evaluation.header.status}, {results}"


def _check_agents(file: Path) -> str:
    return f"agent definitions, {counted(len(load_catalog(file)), 'agent')}"


def _check_rubric(file: Path) -> str:
    rubric = load_rubric(file)
    return f"rubric `{rubric.name}`, {counted(len(rubric.tests), 'example')}"


def _check_traces(file: Path) -> str:
    traces = load_traces(file)
    dropped = sum(entry.count for trace in traces for entry in trace.dropped)
    lost = f", {dropped} pieces dropped" if dropped else ""
    turns = sum(len(trace.turns) for trace in traces)
    return f"{counted(len(traces), 'trace')}, {counted(turns, 'turn')}{lost}"


_CHECKS: dict[Kind, Callable[[Path], str]] = {
    "agents": _check_agents,
    "config": _check_config,
    "criteria": _check_criteria,
    "dataset": _check_dataset,
    "rubric": _check_rubric,
    "traces": _check_traces,
    "unknown": _check_traces,
}
