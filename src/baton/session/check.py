"""Checks files without running anything: finds errors, and cases that test nothing.

Rules of ``baton.lint`` check all files together: cases, their criteria and their app.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from baton.config import Config, load_config
from baton.config.choose_evaluators import plan_for
from baton.config.dialects.adk import FILE_NAME, read_criteria, scorable_criteria
from baton.config.dialects.strands import read_experiment
from baton.datasets import load_dataset
from baton.datasets.files import LazyCases, dataset_files, is_json_lines
from baton.evaluators.judging.rubric_files import load_rubric
from baton.formats.document import Document, read_bytes
from baton.formats.evaluation_folder import BODIES, is_evaluation
from baton.formats.storage_addresses import place_of
from baton.guard.policy import CHECKS, load_policy
from baton.lint import CaseFile, CriteriaFile, LintWarning, Scope, lint, refuse_unknown
from baton.lint.read_adk_app import App, apps_below, apps_near, is_app, read_app
from baton.lint.read_adk_yaml import ROOT_FILE
from baton.model import AgentCard, Dataset, InputError, Problem, counted
from baton.plugins.user_code import missing_module
from baton.providers.adk_options import AdkHttpOptions, AdkLocalOptions
from baton.providers.python import PythonOptions
from baton.readers import load_catalog, load_traces
from baton.readers.catalog import is_catalog_file
from baton.readers.trace_paths import EMPTY, NOT_A_TRACE, files_below, outside
from baton.runner.plan import PlannedEvaluator, check_overrides, make_plan
from baton.store import read_evaluation

from .agent_under_test import configured
from .file_kinds import Kind, is_for_server, is_kind, kind_of_file, misspelt_key
from .prepare import Note, PathLike, each_once, load_cases, log_note
from .recordings import local_sources

Seen = Mapping[Kind, Sequence[Path]]


class Checked(NamedTuple):
    """The problems of files, and warnings about valid files that do not test what was meant."""

    problems: list[Problem]
    warnings: list[LintWarning]


def check(
    files: PathLike | Sequence[PathLike],
    *,
    ignore: Collection[str] = (),
    on_file: Note | None = None,
    note: Note = log_note,
) -> Checked:
    """Check datasets, configs, rubrics, policies, traces and agent definitions; run nothing.

    Args:
        files: files and folders, whose type is detected from the content; or conversations of a
            server (``server://HOST/PROJECT``).
        ignore: kinds of warnings to leave out, by the name in their brackets.
        on_file: called with a line for each valid file, as soon as it was read.
        note: called with notes on files that are not read; by default the logger `baton` warns.

    Returns:
        Problems, and warnings about valid files that do not test what was meant.

    Raises:
        InputError: no file is named, or no kind of warning has such a name.
    """
    some = [files] if isinstance(files, str | os.PathLike) else list(files)
    if not some:
        raise InputError("name the files to check")
    refuse_unknown(ignore)
    tell = on_file or (lambda _: None)
    problems: list[Problem] = []
    seen: dict[Kind, list[Path]] = {}
    named = [_app_of(Path(path)) for path in local_sources(each_once(some, note), note)]
    paths = list(dict.fromkeys(named))
    for path in paths:
        if path.is_dir():
            problems += _check_folder(path, seen, tell, note)
            continue
        try:
            tell(f"{path}: {_check(path, seen, note)}")
        except InputError as error:
            problems += error.problems
    scope = _scope_of(seen, [path for path in paths if path.is_dir()])
    return Checked(problems, lint(scope, ignore))


def _app_of(path: Path) -> Path:
    """Return the folder of ADK agents for a file in it, which `adk eval` takes as well."""
    is_code = path.suffix == ".py" or path.name == ROOT_FILE
    return path.parent if is_code and is_app(path.parent) else path


def _check_folder(
    folder: Path, seen: dict[Kind, list[Path]], on_file: Note, note: Note
) -> list[Problem]:
    """Check every file of a folder; add a note for each file that Baton does not read."""
    problems: list[Problem] = []
    apps = [read_app(app) for app in apps_below(folder)]
    for app in apps:
        on_file(f"{app.folder}: app of ADK, {counted(len(app.agents), 'agent')}")
    count = len(apps)
    links: list[Path] = []
    of_apps = {file for app in apps for file in app.yaml_files}
    for file in files_below(folder, links):
        if file in of_apps:
            continue
        if is_for_server(file):
            note(f"{file}: {_OF_SERVER}")
            continue
        try:
            if file.name == BODIES and is_evaluation(file.parent):
                evaluation = read_evaluation(file.parent)
                results = counted(len(evaluation), "result")
                on_file(
                    f"{place_of(file.parent)}: evaluation, {evaluation.header.status}, {results}"
                )
            else:
                on_file(f"{file}: {_check(file, seen, note)}")
            count += 1
        except InputError as error:
            if error.problems[0].message in (NOT_A_TRACE, EMPTY):
                note(f"{file}: not a file that Baton reads")
            else:
                problems += error.problems
    problems += outside(links)
    if not count and not problems:
        problems.append(Problem(file=str(folder), message="contains no file that Baton reads"))
    return problems


def _check(file: Path, seen: dict[Kind, list[Path]], note: Note) -> str:
    """Check a file, and return its type in a few words."""
    if file.suffix == ".py":
        message = "is a program, which is not checked: name its cases, config or recordings"
        raise InputError(Problem(file=str(file), message=message))
    kind = kind_of_file(file)
    seen.setdefault(kind, []).append(file)
    match kind:
        case "agents":
            return f"agent definitions, {counted(len(load_catalog(file)), 'agent')}"
        case "config":
            return _check_config(file, note)
        case "criteria":
            count = len(read_criteria(file, own_code=False))
            return f"criteria of ADK, {counted(count, 'evaluator')}"
        case "dataset":
            return _check_dataset(file, note)
        case "rubric":
            rubric = load_rubric(file)
            return f"rubric `{rubric.name}`, {counted(len(rubric.tests), 'example')}"
        case "server":
            raise InputError(Problem(file=str(file), message=_OF_SERVER))
        case "unknown" if _is_policy(file):
            return f"policy, {counted(len(load_policy(file).rules), 'rule')}"
        case "unknown" if (misspelt := misspelt_key(file)) is not None:
            raise InputError(misspelt)
        case "traces" | "unknown":
            traces = load_traces(file)
            dropped = sum(entry.count for trace in traces for entry in trace.dropped)
            lost = f", {counted(dropped, 'piece')} dropped" if dropped else ""
            turns = sum(len(trace.turns) for trace in traces)
            return f"{counted(len(traces), 'trace')}, {counted(turns, 'turn')}{lost}"


_OF_SERVER = "has settings of a server: check it by its name, baton check FILE"


def _is_policy(file: Path) -> bool:
    """Return whether a file is a policy of guards: rules, each with a check that guards know.

    Rules of a server, and those of a scripted LLM, have other keys.
    """
    data = read_bytes(file)
    if is_json_lines(data):
        return False
    value = Document(str(file), data, "yaml").value()
    rules = value.get("rules") if isinstance(value, dict) else None
    listed = rules if isinstance(rules, list) else []
    return any(isinstance(rule, dict) and not rule.keys().isdisjoint(CHECKS) for rule in listed)


def _check_dataset(file: Path, note: Note) -> str:
    dataset = load_dataset(file)
    check_overrides(make_plan(None), dataset, also_unasked=True)
    for name, format_ in dataset.files.items():
        if format_ == "strands":
            read_experiment(Path(name))
    for text in dataset.notes:
        note(text)
    turns = sum(len(case.turns) for case in dataset)
    return f"dataset ({dataset.format}), {counted(len(dataset), 'case')}, {counted(turns, 'turn')}"


def _check_config(file: Path, note: Note) -> str:
    config = load_config(file, own_code=False)
    for text in config.notes:
        note(text)
    if config.agents:
        load_catalog(config.agents)
    if config.dataset:
        check_overrides(config.plan, load_cases(config.dataset, config), also_unasked=True)
    for index, options in enumerate(config.providers):
        # Building these would import, and so run, the user's own code.
        if options.type != "python" and options.hooks is None:
            configured(config, index, {})
        if isinstance(options, PythonOptions):
            missing = missing_module(options.target, config.folder)
            if missing is not None:
                place = f"providers[{index}].target"
                raise InputError(Problem(file=config.file, path=place, message=missing))
    if config.evaluators is None:
        return "config, evaluators chosen by what cases state"
    return f"config, {counted(len(config.plan.evaluators), 'evaluator')}"


def _scope_of(seen: Seen, folders: Sequence[Path]) -> Scope:
    """Read the checked files again, without those with errors, which were reported."""
    configs = [config for file in seen.get("config", ()) if (config := _config(file))]
    reader = _Reader(folders, configs)
    agents, functions = _agents(
        [*seen.get("agents", ()), *(Path(config.agents) for config in configs if config.agents)]
    )
    by_config = [case_file for config in configs for case_file in reader.of_config(config)]
    configured = {case_file.file for case_file in by_config}
    alone = [file for file in seen.get("dataset", ()) if str(file) not in configured]
    cases = [*by_config, *(case_file for file in alone if (case_file := reader.alone(file)))]
    return Scope(
        cases=cases,
        criteria=[
            criteria
            for file in seen.get("criteria", ())
            if (criteria := reader.criteria(file, cases)) is not None
        ],
        apps=reader.apps,
        agents=agents,
        functions=functions,
    )


class _Reader:
    """Reads datasets, and finds the apps that belong to them."""

    def __init__(self, folders: Sequence[Path], configs: Iterable[Config]) -> None:
        self._read: dict[Path, App] = {}
        named = [folder for folder in folders if is_app(folder)]
        # Who names a folder of ADK agents beside cases plays them with these agents.
        self._plays_adk = bool(named)
        named += [
            config.folder / options.path
            for config in configs
            for options in config.providers
            if isinstance(options, AdkLocalOptions)
        ]
        self._named = self._apps(path for path in named if path.is_dir())
        self._below = self._apps(app for folder in folders for app in apps_below(folder))

    @property
    def apps(self) -> list[App]:
        """All apps that were named or are in a named folder."""
        return [*self._named, *(app for app in self._below if app not in self._named)]

    def alone(self, file: Path) -> CaseFile | None:
        """Read a dataset without a config; ``None`` when it has errors."""
        dataset = _dataset(file)
        if dataset is None:
            return None
        one = self._case_file(file, dataset, _evaluators(file, dataset))
        return one._replace(adk=one.adk or self._plays_adk)

    def of_config(self, config: Config) -> list[CaseFile]:
        """Read the datasets of a config; none where one has errors."""
        try:
            whole = load_dataset(config.dataset) if config.dataset else None
            if whole is None:
                return []
            plan = config.plan
            if config.evaluators is None:
                plan = plan_for(whole, config.plan_with, own_code=False)
        except InputError:
            return []
        case_files = []
        adk = any(
            isinstance(options, AdkHttpOptions | AdkLocalOptions) for options in config.providers
        )
        for name in whole.files:
            dataset = _dataset(Path(name))
            if dataset is not None:
                evaluators = plan.files.get(name, plan.evaluators)
                one = self._case_file(Path(name), dataset, evaluators)
                renames = plan.context.agent_names
                case_files.append(one._replace(adk=adk or one.adk, agent_names=renames))
        return case_files

    def criteria(self, file: Path, cases: Sequence[CaseFile]) -> CriteriaFile | None:
        """Return criteria with the cases they score: those in their folder, else the named ones.

        ``None`` when the file is not JSON.
        """
        document = Document(str(file), read_bytes(file), "json")
        try:
            document.value()
        except InputError:
            return None
        known = {Path(case_file.file).resolve(): case_file for case_file in cases}
        beside = [path for path in dataset_files(file.parent) if path.parent == file.parent]
        near = [
            known.get(path.resolve()) or (self.alone(path) if is_kind(path, "dataset") else None)
            for path in beside
        ]
        return CriteriaFile(document, [each for each in near if each is not None] or cases)

    def _case_file(
        self, file: Path, dataset: Dataset, evaluators: tuple[PlannedEvaluator, ...]
    ) -> CaseFile:
        cases = dataset.cases
        assert isinstance(cases, LazyCases)  # noqa: S101 - the loader returns this for one file
        return CaseFile(
            file=str(file),
            cases=cases,
            evaluators=evaluators,
            adk=dataset.format in ("adk", "judge-llm"),
            apps=self._named or self._apps(apps_near(file)) or self._below,
        )

    def _apps(self, folders: Iterable[Path]) -> list[App]:
        # A folder that a config and the command line name is one app: two would leave open which
        # of them plays a case.
        apps: dict[Path, App] = {}
        for folder in folders:
            key = folder.resolve()
            if key not in self._read:
                self._read[key] = read_app(folder)
            apps[key] = self._read[key]
        return list(apps.values())


def _config(file: Path) -> Config | None:
    try:
        return load_config(file, own_code=False)
    except InputError:
        return None


def _dataset(file: Path) -> Dataset | None:
    try:
        return load_dataset(file)
    except InputError:
        return None


def _evaluators(file: Path, dataset: Dataset) -> tuple[PlannedEvaluator, ...]:
    """Return the evaluators of a dataset without a config; only valid criteria are used."""
    criteria = file.with_name(FILE_NAME)
    make = partial(make_plan, own_code=False)
    try:
        if criteria.is_file():
            specs = scorable_criteria(criteria)
            return make_plan(specs).evaluators if specs else ()
        return plan_for(dataset, make, own_code=False).evaluators
    except InputError:
        return ()


def _agents(files: Iterable[Path]) -> tuple[dict[str, AgentCard], frozenset[str]]:
    """Return all agent definitions, and the tools that a server declared as functions."""
    agents: dict[str, AgentCard] = {}
    functions: set[str] = set()
    for file in files:
        try:
            catalog = load_catalog(file)
        except InputError:
            continue
        agents |= catalog
        if file.is_file() and is_catalog_file(file):
            functions.update(name for card in catalog.values() for name in card.tools or ())
    return agents, frozenset(functions)
