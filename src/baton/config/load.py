"""Loading a config: checked in full before anything runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from baton.formats.document import Document, read_bytes
from baton.model import InputError, Problem
from baton.plugins import provider_entry, reporter_entry, resolve
from baton.runner.plan import EvaluatorSpec, Plan, make_plan

from .environment import interpolate

_SECRET = re.compile(r"api_?key|token|password|secret|authorization|credential", re.IGNORECASE)
Count = Annotated[int, msgspec.Meta(ge=1)]


class Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a config: an unknown key stops the run."""


class AgentSpec(Strict, kw_only=True):
    """How to run; ``name`` and the rest of ``metadata`` only describe."""

    name: str | None = None
    description: str | None = None
    num_runs: Count = 1
    parallel_execution: bool = False
    max_workers: Count = 4
    fail_on_threshold_violation: bool = True
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class DatasetSpec(Strict, kw_only=True):
    """Where the cases are."""

    paths: list[str]
    loader: Literal["local_file", "directory"] | None = None


class ReporterSpec(Strict, kw_only=True):
    """A report; ``output_path`` of none is standard output."""

    type: str
    output_path: str | None = None


class ConfigFile(Strict, kw_only=True):
    """The shape of a config file."""

    agent: AgentSpec = msgspec.field(default_factory=AgentSpec)
    dataset: str | list[str] | DatasetSpec | None = None
    providers: list[dict[str, Any]] = msgspec.field(default_factory=list)
    evaluators: list[EvaluatorSpec] | None = None
    reporters: list[ReporterSpec] = msgspec.field(default_factory=list)
    agent_names: dict[str, str] = msgspec.field(default_factory=dict)


class Config(msgspec.Struct, kw_only=True):
    """A checked config; ``resolved`` is what it says, paths made full and secrets masked."""

    file: str
    agent: AgentSpec
    dataset: list[str]
    providers: list[Any]
    plan: Plan
    reporters: list[ReporterSpec]
    resolved: dict[str, Any]


def load_config(
    path: str | os.PathLike[str], environment: Mapping[str, str] | None = None
) -> Config:
    """Load and check a config; paths in it are relative to its own folder.

    Raises:
        InputError: unknown keys, evaluators, options, modes, providers or reporters, variables
            that are not set: all of them, with their lines and the nearest names.
    """
    file = Path(path)
    document = Document(str(file), read_bytes(file), "yaml")
    value = document.value()
    if not isinstance(value, dict):
        raise InputError(document.problem("a config is a mapping with `evaluators:`"))
    value = interpolate(document, value, os.environ if environment is None else environment)
    spec = document.convert(value, ConfigFile)
    problems: list[Problem] = []
    providers = _providers(document, spec, problems)
    for index, reporter in enumerate(spec.reporters):
        try:
            reporter_entry(reporter.type)
        except InputError as error:
            problems += _located(document, ("reporters", index, "type"), error)
    plan = _plan(document, spec, problems)
    if problems or plan is None:
        raise InputError(problems)
    folder = file.parent
    dataset = [_below(folder, entry) for entry in _dataset_paths(spec.dataset)]
    reporters = [
        ReporterSpec(
            type=r.type, output_path=_below(folder, r.output_path) if r.output_path else None
        )
        for r in spec.reporters
    ]
    return Config(
        file=str(file),
        agent=spec.agent,
        dataset=dataset,
        providers=providers,
        plan=plan,
        reporters=reporters,
        resolved=_masked(value),
    )


def _plan(document: Document, spec: ConfigFile, problems: list[Problem]) -> Plan | None:
    found = []
    for index, evaluator in enumerate(spec.evaluators or ()):
        try:
            make_plan([evaluator]) if evaluator.enabled else None
        except InputError as error:
            found += [
                document.problem_at(_path_of(index, problem), problem.message)
                for problem in error.problems
            ]
    problems += found
    if found:
        return None
    try:
        return make_plan(spec.evaluators, agent_names=spec.agent_names)
    except InputError as error:
        problems += _located(document, ("evaluators",), error)
    return None


def _path_of(index: int, problem: Problem) -> tuple[str | int, ...]:
    steps = [step for step in problem.path.split(".") if not step.startswith("evaluators[")]
    return ("evaluators", index, *(steps or ["type"]))


def _providers(document: Document, spec: ConfigFile, problems: list[Problem]) -> list[Any]:
    options = []
    for index, provider in enumerate(spec.providers):
        path = ("providers", index)
        name = provider.get("type")
        if not isinstance(name, str):
            problems.append(document.problem_at(path, "`type` is missing"))
            continue
        try:
            options.append(document.convert(provider, resolve(provider_entry(name)), path=path))
        except InputError as error:
            located = all(problem.file for problem in error.problems)
            problems += error.problems if located else _located(document, (*path, "type"), error)
    return options


def _located(document: Document, path: tuple[str | int, ...], error: InputError) -> list[Problem]:
    return [document.problem_at(path, problem.message) for problem in error.problems]


def _dataset_paths(spec: str | list[str] | DatasetSpec | None) -> list[str]:
    if spec is None:
        return []
    if isinstance(spec, str):
        return [spec]
    return spec.paths if isinstance(spec, DatasetSpec) else spec


def _below(folder: Path, path: str) -> str:
    return str(folder / path)


def _masked(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _masked(item, str(name)) for name, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, key) for item in value]
    return "***" if _SECRET.search(key) and value is not None else value
