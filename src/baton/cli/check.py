"""``baton check``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from baton.config import load_config
from baton.config.dialects.adk import read_criteria
from baton.datasets import load_dataset
from baton.formats.evaluation_folder import BODIES, is_evaluation
from baton.model import InputError, Problem
from baton.readers import load_catalog, load_traces
from baton.readers.load import NOT_A_TRACE, files_below
from baton.runner.plan import check_overrides, make_plan
from baton.store import read_evaluation

from .kinds import Kind, kind_of_file
from .notes import note
from .target import configured


def check_command(*files: Path) -> int:
    """Check datasets, configs, traces and agent definitions, and run nothing.

    Parameters
    ----------
    files
        Files or folders; what each one is is told by its content.
    """
    if not files:
        raise InputError("name the files to check")
    problems: list[Problem] = []
    for file in files:
        if file.is_dir():
            problems += _check_folder(file)
            continue
        try:
            print(f"{file}: {_check(file)}")
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return 0


def _check_folder(folder: Path) -> list[Problem]:
    """Check every file of a folder; one that is nothing Baton reads is noted."""
    problems: list[Problem] = []
    found = 0
    for file in files_below(folder):
        if file.name == BODIES and is_evaluation(file.parent):
            print(f"{file.parent}: {_check_evaluation(file.parent)}")
            found += 1
            continue
        try:
            print(f"{file}: {_check(file)}")
            found += 1
        except InputError as error:
            if error.problems[0].message == NOT_A_TRACE:
                note(f"{file}: nothing that Baton reads")
            else:
                problems += error.problems
    if not found and not problems:
        problems.append(Problem(file=str(folder), message="holds nothing that Baton reads"))
    return problems


def _check(file: Path) -> str:
    return _CHECKS[kind_of_file(file)](file)


def _check_dataset(file: Path) -> str:
    dataset = load_dataset(file)
    check_overrides(make_plan(None), dataset)
    for text in dataset.notes:
        note(text)
    turns = sum(len(case.turns) for case in dataset)
    return f"dataset ({dataset.format}), {_count(len(dataset), 'case')}, {_count(turns, 'turn')}"


def _check_config(file: Path) -> str:
    config = load_config(file)
    if config.dataset:
        check_overrides(config.plan, load_dataset(config.dataset))
    for index, options in enumerate(config.providers):
        # Building these would import, and so run, code of the user's own.
        if options.type != "python" and options.hooks is None:
            configured(config, index, {})
    return f"config, {_count(len(config.plan.evaluators), 'evaluator')}"


def _check_criteria(file: Path) -> str:
    return f"criteria of ADK, {_count(len(make_plan(read_criteria(file)).evaluators), 'evaluator')}"


def _check_evaluation(folder: Path) -> str:
    evaluation = read_evaluation(folder)
    results = _count(len(evaluation), "result")
    return f"evaluation, {evaluation.header.status}, {results}"


def _check_agents(file: Path) -> str:
    return f"agent definitions, {_count(len(load_catalog(file)), 'agent')}"


def _check_traces(file: Path) -> str:
    traces = load_traces(file)
    dropped = sum(entry.count for trace in traces for entry in trace.dropped)
    lost = f", {dropped} pieces dropped" if dropped else ""
    return (
        f"{_count(len(traces), 'trace')}, {_count(sum(len(t.turns) for t in traces), 'turn')}{lost}"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


_CHECKS: dict[Kind, Callable[[Path], str]] = {
    "agents": _check_agents,
    "config": _check_config,
    "criteria": _check_criteria,
    "dataset": _check_dataset,
    "traces": _check_traces,
    "unknown": _check_traces,
}
