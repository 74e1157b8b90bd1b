"""``baton eval``."""

from __future__ import annotations

import logging
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter
from msgspec import structs, to_builtins

from baton.config import Config
from baton.config.evaluators import live_plan
from baton.config.providers import variant_names
from baton.config.trust import Trust
from baton.model import Dataset, InputError
from baton.model.secrets import mask, masked
from baton.providers.base import ConfiguredProvider
from baton.runner.backends.distribute import evaluate_on
from baton.runner.backends.protocol import Backend, Recipe
from baton.runner.evaluate import check_playable, evaluate_to_folder
from baton.runner.loop import run_until_terminated
from baton.runner.plan import Plan, RunOptions
from baton.store import Kept

from .backing import HERE, Backing, backend_of, recipe_of
from .judging import JudgeOptions, judged_plan
from .notes import note
from .numbers import Whole
from .output import OUT, header_of, load_cases, note_config, note_trust, note_unchecked, prepare
from .progress import progress
from .redacting import AS_CONFIGURED, Redacting
from .reports import NONE, Reports
from .request import Request, basis_of
from .running import (
    NORMAL,
    Running,
    Start,
    chosen,
    is_complete,
    kept_of,
    left_to_play,
    run_options,
    start,
    with_part_of_gate,
)
from .target import Target, find_target, provider_of, trust_in, variants_of
from .variants import Printed, Variant

Several = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]


def eval_command(
    *target: str,
    dataset: Annotated[Several, Parameter(name=["--dataset", "-d"])] = (),
    evaluators: Annotated[Several, Parameter(name=["--evaluator", "-e"])] = (),
    config_file_path: Annotated[
        Path | None, Parameter(name=["--config_file_path", "--config-file-path"])
    ] = None,
    agents: Path | None = None,
    app: str | None = None,
    filters: Annotated[Several, Parameter(name=["--filter", "-f"])] = (),
    limit: Whole | None = None,
    running: Running = NORMAL,
    print_detailed_results: Annotated[
        bool,
        Parameter(name=["--print_detailed_results", "--print-detailed-results"], negative=""),
    ] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
    reports: Reports = NONE,
    show: Whole = 10,
    out: Path = OUT,
    name: str | None = None,
    judging: JudgeOptions | None = None,
    backing: Backing = HERE,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    trust: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = (),
    redacting: Redacting = AS_CONFIGURED,
) -> int:
    """Play a dataset against live agents and score what they did.

    `baton eval [CONFIG] [DATASET...]`, with baton.yaml when no config is named, or
    `baton eval AGENT DATASET...` with AGENT a folder of ADK agents, the address of an ADK
    server, or module:function.

    Parameters
    ----------
    target
        A config or an agent, then datasets: files, folders, or FILE:case1,case2.
    dataset
        One more dataset; what is named here or above goes before the config's.
    evaluators
        An evaluator to score with, with its default options. May be given several times.
    config_file_path
        Criteria of ADK (a test_config.json of any name).
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    app
        The app of the server to talk to, where it has several.
    filters
        Which cases: a glob over ids, tag:NAME or metadata.KEY=VALUE; all given have to match.
    limit
        How many cases at most.
    print_detailed_results
        Print every case with all its scores.
    json
        Print the whole report as JSON.
    show
        How many cases that did not pass are printed in full.
    out
        Where evaluations are stored.
    name
        Name of the evaluation.
    dry_run
        Print what judging would take, as far as the cases tell; play nothing, ask nobody, import
        no code of your own.
    trust
        A folder whose baton.yaml and test_config.json may name code, though nobody named them;
        remembered until they change. May be given several times.
    """
    trusted = trust_in(trust)
    request = Request(
        target=list(target),
        dataset=list(dataset),
        evaluators=list(evaluators),
        criteria=None if config_file_path is None else str(config_file_path),
        agents=None if agents is None else str(agents),
        app=app,
        filters=list(filters),
        limit=_at_least_one("--limit", limit),
        variant=running.variant,
    )
    begun = start(request, judging or JudgeOptions(), running)
    words = tuple(begun.request.target)
    found = find_target(words, trusted, begun.request.app, own_code=not dry_run)
    backend = backing.spec(found.config)
    _quiet(found.config)
    printed = Printed(json, show, print_detailed_results, reports)
    if begun.folder is not None and begun.before is not None:
        if is_complete(begun.folder, begun.before):
            return printed.one(begun.folder, found.config)
    note_config(found.config)
    asked = _Asked(found, begun, running, redacting, out, name, trusted)
    places = variants_of(found, begun.request.variant)
    if dry_run:
        from .dry_run import dry_run_live

        job = asked.job(places[0], rehearsal=True)
        return dry_run_live(job.plan, job.cases, job.options.repeat, json=json)
    prepare(found.config, reports.files())
    jobs = [asked.job(place) for place in places]
    note_trust(trusted)
    # What agents print, when they are imported and later, is no part of the report.
    with redirect_stdout(sys.stderr):
        providers = [provider_of(found, asked.agents, place) for place in places]
        for job, provider in zip(jobs, providers, strict=True):
            check_playable(job.plan, provider, job.cases)
        backed = [
            asked.backed(backend, job, place) if backend is not None else None
            for place, job in zip(places, jobs, strict=True)
        ]
    done = []
    for job, provider, workers in zip(jobs, providers, backed, strict=True):
        folder = _play(job, provider, workers)
        done.append(Variant(job.variant, folder))
    return printed.all(done, found.config)


class _Job(NamedTuple):
    plan: Plan
    cases: Dataset
    options: RunOptions
    root: Path
    name: str
    header: dict[str, Any]
    kept: Kept | None
    variant: str | None


class _Backed(NamedTuple):
    """A backend, and what its workers are to know."""

    backend: Backend
    recipe: Recipe
    variant: int


class _Asked(NamedTuple):
    """What is to be evaluated, and with what on the command line."""

    target: Target
    begun: Start
    running: Running
    redacting: Redacting
    root: Path
    name: str | None
    trust: Trust

    @property
    def agents(self) -> Path | None:
        """The file of definitions that was named."""
        given = self.begun.request.agents
        return None if given is None else Path(given)

    def job(self, place: int, *, rehearsal: bool = False) -> _Job:
        """Make all that playing one variant needs; raises InputError."""
        settings, begun = self.target.config, self.begun
        names = variant_names(settings) if settings else []
        variant = names[place] if len(names) > 1 else None
        paths = self._paths()
        cases = chosen(load_cases(paths, settings, self.agents), begun)
        asked = begun.request
        criteria = None if asked.criteria is None else Path(asked.criteria)
        plan = live_plan(
            settings,
            asked.evaluators,
            criteria,
            cases,
            self.trust,
            own_code=not rehearsal,
            criteria_found=begun.found,
        )
        plan = structs.replace(plan, redaction=self.redacting.of(settings))
        if variant is not None and settings is not None:
            plan = structs.replace(plan, default_model=settings.providers[place].model)
        plan = judged_plan(plan, settings, begun.judging, rehearsal=rehearsal)
        plan = with_part_of_gate(plan, cases, begun)
        note_unchecked(plan, cases)
        options = run_options(settings, begun, self.running)
        request = self._request(cases, variant)
        basis = basis_of(settings, request, plan, cases)
        name = begun.before.name if begun.before else self._name(cases, variant)
        how = {
            "provider": masked(self.target.provider),
            "run": to_builtins(options),
            "request": to_builtins(request),
            "basis": to_builtins(basis),
            **({} if variant is None else {"variant": variant}),
        }
        return _Job(
            plan=plan,
            cases=cases,
            options=options,
            root=self.root,
            name=name,
            header=header_of(
                settings, plan, paths, cases, self._provider(place), self.agents, **how
            ),
            kept=kept_of(begun, basis, cases, force=self.running.force),
            variant=variant,
        )

    def _provider(self, place: int) -> str | None:
        """Return the type of the provider that plays a variant."""
        settings, spec = self.target.config, self.target.provider
        if spec is not None:
            return str(spec["type"])
        return settings.providers[place].type if settings and settings.providers else None

    def backed(self, spec: dict[str, Any], job: _Job, place: int) -> _Backed:
        """Make what a backend needs to play a variant; raises InputError."""
        settings, request = self.target.config, self.begun.request
        some = self.begun.open_cases is not None or request.cases is not None
        recipe = recipe_of(
            settings,
            job.plan,
            self.begun.judging,
            self._paths(),
            filters=request.filters,
            limit=request.limit,
            cases=list(job.cases.ids) if some else None,
            agents=request.agents,
            evaluators=request.evaluators,
            criteria=request.criteria,
            provider=self.target.provider,
            run=job.options,
            trusted=self.trust.allowed,
        )
        return _Backed(backend_of(spec, settings), recipe, place)

    def _paths(self) -> list[str]:
        settings, request = self.target.config, self.begun.request
        named = [*self.target.datasets, *request.dataset]
        paths = named or (settings.dataset if settings else [])
        if not paths:
            message = "name a dataset: baton eval AGENT DATASET, or `dataset:` in the config"
            raise InputError(message)
        return paths

    def _name(self, cases: Dataset, variant: str | None) -> str:
        settings = self.target.config
        name = self.name or (settings.name if settings else None) or cases.name
        return name if variant is None else f"{name}-{variant}"

    def _request(self, cases: Dataset, variant: str | None) -> Request:
        """Return what the folder keeps of it; secrets are not kept."""
        request = self.begun.request
        if self.begun.open_cases is not None:
            request = structs.replace(request, cases=list(cases.ids))
        judge = {name: value for name, value in asdict(self.begun.judging).items() if value}
        target = [masked(word) for word in request.target]
        return structs.replace(request, target=target, judge=judge, variant=variant)


def _play(job: _Job, provider: ConfiguredProvider[Any], backed: _Backed | None) -> Path:
    """Play all cases, and show how far it is."""
    # What agents print while they play is no part of the report.
    with redirect_stdout(sys.stderr):
        shown = progress(left_to_play(job.kept, len(job.cases) * job.options.repeat))
        started: list[Path] = []
        try:
            how: dict[str, Any] = {
                "root": job.root,
                "name": job.name,
                "header": job.header,
                "on_start": started.append,
                "on_result": shown.add,
                "kept": job.kept,
            }
            work = (job.plan, provider, job.cases, job.options)
            if backed is not None:
                variant, recipe = backed.variant, backed.recipe
                return evaluate_on(backed.backend, recipe, *work, variant=variant, **how)
            return run_until_terminated(evaluate_to_folder(*work, **how))
        except KeyboardInterrupt:
            for place in started:
                note(f"what was done until now: baton report {place}")
            raise
        finally:
            shown.close()


def _at_least_one(option: str, number: int | None) -> int | None:
    if number is not None and number < 1:
        raise InputError(f"{option} has to be at least 1, got {number}")
    return number


class _MaskedLines(logging.Formatter):
    """Masks secrets of the config: HTTP clients log addresses with their queries."""

    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))


def _quiet(settings: Config | None) -> None:
    """Keep what libraries log out of the report, unless the config asks for it."""
    level = settings.agent.log_level if settings else None
    if level is not None:
        logging.basicConfig(level=level)
        for handler in logging.getLogger().handlers:
            handler.setFormatter(_MaskedLines(logging.BASIC_FORMAT))
    else:
        logging.getLogger().addHandler(logging.NullHandler())
