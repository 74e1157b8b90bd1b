"""What files that are checked together say of one another, for the rules of ``baton.lint``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from baton.config import Config, load_config
from baton.config.dialects.adk import FILE_NAME, scorable_criteria
from baton.config.evaluators import plan_for
from baton.datasets import load_dataset
from baton.datasets.files import LazyCases, dataset_files
from baton.formats.document import Document, read_bytes
from baton.lint import CaseFile, CriteriaFile, Scope
from baton.lint.adk_app import App, apps_below, apps_near, is_app, read_app
from baton.model import AgentCard, Dataset, InputError
from baton.providers.adk_http import AdkHttpOptions, AdkLocalOptions
from baton.readers import load_catalog
from baton.readers.catalog import is_catalog_file
from baton.runner.plan import PlannedEvaluator, make_plan
from baton.session.file_kinds import Kind, kind_of_file

Seen = Mapping[Kind, Sequence[Path]]


def scope_of(seen: Seen, folders: Sequence[Path]) -> Scope:
    """Read once more what was checked; files with faults have been reported and are left out."""
    configs = [config for file in seen.get("config", ()) if (config := _config(file))]
    reader = _Reader(folders, configs)
    agents, functions = _agents([*seen.get("agents", ()), *_definitions(configs)])
    by_config = [found for config in configs for found in reader.of_config(config)]
    configured = {found.file for found in by_config}
    alone = [file for file in seen.get("dataset", ()) if str(file) not in configured]
    cases = [*by_config, *(found for file in alone if (found := reader.alone(file)))]
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
        """All apps that were named, or lie in a folder that was."""
        return [*self._named, *(app for app in self._below if app not in self._named)]

    def alone(self, file: Path) -> CaseFile | None:
        """Read a dataset that no config speaks of; ``None`` when it has faults."""
        dataset = _dataset(file)
        if dataset is None:
            return None
        return self._case_file(file, dataset, _evaluators(file, dataset))

    def of_config(self, config: Config) -> list[CaseFile]:
        """Read the datasets of a config; none where one has faults."""
        try:
            whole = load_dataset(config.dataset) if config.dataset else None
            if whole is None:
                return []
            plan = config.plan
            if config.evaluators is None:
                plan = plan_for(whole, config.plan_with, own_code=False)
        except InputError:
            return []
        found = []
        adk = any(
            isinstance(options, AdkHttpOptions | AdkLocalOptions) for options in config.providers
        )
        for name in whole.files:
            dataset = _dataset(Path(name))
            if dataset is not None:
                evaluators = plan.files.get(name, plan.evaluators)
                one = self._case_file(Path(name), dataset, evaluators)
                renames = plan.context.agent_names
                found.append(one._replace(adk=adk or one.adk, agent_names=renames))
        return found

    def criteria(self, file: Path, cases: Sequence[CaseFile]) -> CriteriaFile | None:
        """Return criteria with what they score: what lies beside them, or else was named.

        ``None`` when the file is not JSON.
        """
        document = Document(str(file), read_bytes(file), "json")
        try:
            document.value()
        except InputError:
            return None
        known = {Path(found.file).resolve(): found for found in cases}
        beside = [path for path in dataset_files(file.parent) if path.parent == file.parent]
        near = [
            known.get(path.resolve()) or (self.alone(path) if _has_cases(path) else None)
            for path in beside
        ]
        return CriteriaFile(document, [found for found in near if found is not None] or cases)

    def _case_file(
        self, file: Path, dataset: Dataset, evaluators: tuple[PlannedEvaluator, ...]
    ) -> CaseFile:
        cases = dataset.cases
        assert isinstance(cases, LazyCases)  # noqa: S101 - what the loader makes of one file
        return CaseFile(
            file=str(file),
            cases=cases,
            evaluators=evaluators,
            adk=dataset.format in ("adk", "judge-llm"),
            apps=self._named or self._apps(apps_near(file)) or self._below,
        )

    def _apps(self, folders: Iterable[Path]) -> list[App]:
        found = []
        for folder in folders:
            key = folder.resolve()
            if key not in self._read:
                self._read[key] = read_app(folder)
            found.append(self._read[key])
        return found


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


def _has_cases(file: Path) -> bool:
    try:
        return kind_of_file(file) == "dataset"
    except InputError:
        return False


def _evaluators(file: Path, dataset: Dataset) -> tuple[PlannedEvaluator, ...]:
    """Return what scores a dataset without a config; of criteria, those that have no faults."""
    criteria = file.with_name(FILE_NAME)
    make = partial(make_plan, own_code=False)
    try:
        if criteria.is_file():
            specs = scorable_criteria(criteria)
            return make_plan(specs).evaluators if specs else ()
        return plan_for(dataset, make, own_code=False).evaluators
    except InputError:
        return ()


def _definitions(configs: Iterable[Config]) -> list[Path]:
    return [Path(config.agents) for config in configs if config.agents]


def _agents(files: Iterable[Path]) -> tuple[dict[str, AgentCard], frozenset[str]]:
    """Return all definitions of agents, and the tools that a server declared as functions."""
    agents: dict[str, AgentCard] = {}
    functions: set[str] = set()
    for file in files:
        try:
            found = load_catalog(file)
        except InputError:
            continue
        agents |= found
        if file.is_file() and is_catalog_file(file):
            functions.update(name for card in found.values() for name in card.tools or ())
    return agents, frozenset(functions)
