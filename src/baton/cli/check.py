"""``baton check``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from baton.config import load_config
from baton.config.dialects.adk import read_criteria
from baton.datasets import load_dataset
from baton.formats.document import Document, read_bytes
from baton.formats.evaluation_folder import BODIES, is_evaluation
from baton.formats.spelling import snake
from baton.model import InputError, Problem
from baton.readers import load_catalog, load_traces
from baton.readers.adk.wire import looks_like_sse
from baton.readers.load import NOT_A_TRACE, files_below
from baton.runner.plan import check_overrides, make_plan
from baton.store import read_evaluation

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
    return _checker(file)(file)


def _checker(file: Path) -> Callable[[Path], str]:
    """Choose what to check a file as."""
    data = read_bytes(file)
    if looks_like_sse(data):
        return _check_traces
    keys = _top_keys(file, data)
    if "criteria" in keys:
        return _check_criteria
    config = {"evaluators", "providers", "reporters", "dataset", "agent_names"}
    if keys & config and not keys & {"cases", "id", "turns"}:
        return _check_config
    if "agents" in keys and not keys & {"turns", "cases", "id", "input"}:
        return _check_agents
    if keys & {"cases", "eval_cases", "eval_id", "query", "data"}:
        return _check_dataset
    if keys & {"id", "input"} and not keys & {"turns", "events", "author", "schema_version"}:
        return _check_dataset
    return _check_traces


def _top_keys(file: Path, data: bytes) -> set[str]:
    """Return the keys of the object a file holds, or of the first in its list or lines."""
    json = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
    lines = data.split(b"\n", 1)
    try:
        value = Document(str(file), data, "json" if json else "yaml").value()
    except InputError:
        value = Document(str(file), lines[0], "json").value() if json and len(lines) > 1 else None
        if value is None:
            raise
    if isinstance(value, list):
        value = value[0] if value else {}
    return {snake(str(key)) for key in value} if isinstance(value, dict) else set()


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
