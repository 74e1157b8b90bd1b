"""``baton eval``."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from cyclopts import Parameter

from baton.config import Config
from baton.config.dialects.adk import read_criteria
from baton.config.evaluators import plan_for
from baton.config.secrets import masked
from baton.datasets.choose import choose
from baton.formats.explain import explain
from baton.model import Dataset, InputError, Problem
from baton.providers.base import ConfiguredProvider
from baton.runner.evaluate import evaluate_to_folder
from baton.runner.live import RunOptions
from baton.runner.loop import run_until_terminated
from baton.runner.plan import Plan, make_plan

from .judging import JudgeOptions, judged_plan
from .notes import note, say
from .numbers import Whole
from .output import OUT, header_of, load_cases, note_config, note_unchecked, prepare, report
from .progress import progress
from .reports import NONE, Reports
from .target import find_target, provider_of

Several = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
TERMINATED = 143
"""The exit code of what SIGTERM ended, as shells have it."""


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
    repeat: Whole | None = None,
    concurrency: Whole | None = None,
    timeout: float | None = None,
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
    dry_run: Annotated[bool, Parameter(negative="")] = False,
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
    repeat
        How often each case is played.
    concurrency
        How many cases are in play at once.
    timeout
        Seconds for one case.
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
        Print what judging would take, as far as the cases tell; play nothing, ask nobody.
    """
    found = find_target(target, app)
    settings = found.config
    _quiet(settings)
    note_config(settings)
    paths = [*found.datasets, *dataset] or (settings.dataset if settings else [])
    if not paths:
        raise InputError("name a dataset: baton eval AGENT DATASET, or `dataset:` in the config")
    cases = choose(load_cases(paths, settings, agents), filters, _at_least_one("--limit", limit))
    plan = _plan(settings, evaluators, config_file_path, cases)
    plan = judged_plan(plan, settings, judging or JudgeOptions(), rehearsal=dry_run)
    note_unchecked(plan, cases)
    options = _run_options(
        settings, {"repeat": repeat, "concurrency": concurrency, "timeout": timeout}
    )
    if dry_run:
        from .dry_run import dry_run_live

        return dry_run_live(plan, cases, options.repeat, json=json)
    prepare(settings, reports.files())
    how = {"provider": masked(found.provider), "run": msgspec.to_builtins(options)}
    folder = _play(
        _Job(
            plan=plan,
            cases=cases,
            options=options,
            root=out,
            name=name or (settings.name if settings else None) or cases.name,
            header=header_of(settings, plan, paths, **how),
        ),
        lambda: provider_of(found, agents),
    )
    if folder is None:
        return TERMINATED
    return report(
        folder, settings, json=json, show=show, detailed=print_detailed_results, reports=reports
    )


class _Job(NamedTuple):
    plan: Plan
    cases: Dataset
    options: RunOptions
    root: Path
    name: str
    header: dict[str, Any]


def _play(job: _Job, make_provider: Callable[[], ConfiguredProvider[Any]]) -> Path | None:
    """Play all cases, and show how far it is; ``None`` when SIGTERM ended it."""
    # What agents print, when they are imported and later, is no part of the report.
    with redirect_stdout(sys.stderr):
        provider = make_provider()
        shown = progress(len(job.cases) * job.options.repeat)
        started: list[Path] = []
        try:
            return run_until_terminated(
                evaluate_to_folder(
                    job.plan,
                    provider,
                    job.cases,
                    job.options,
                    root=job.root,
                    name=job.name,
                    header=job.header,
                    on_start=started.append,
                    on_result=shown.add,
                )
            )
        except (KeyboardInterrupt, asyncio.CancelledError) as ended:
            for place in started:
                note(f"what was done until now: baton report {place}")
            if isinstance(ended, KeyboardInterrupt):
                raise
            say("baton: terminated")
            return None
        finally:
            shown.close()


def _plan(
    settings: Config | None, evaluators: tuple[str, ...], criteria: Path | None, dataset: Dataset
) -> Plan:
    make = settings.plan_with if settings else make_plan
    if evaluators and criteria is not None:
        raise InputError("--evaluator and --config_file_path both say what to score: give one")
    if evaluators:
        return make(evaluators)
    if criteria is not None:
        return make(read_criteria(criteria))
    if settings is not None and settings.evaluators is not None:
        return settings.plan
    return plan_for(dataset, make)


def _run_options(settings: Config | None, given: dict[str, Any]) -> RunOptions:
    """Put what the command line says over what the config does."""
    stated = {name: value for name, value in given.items() if value is not None}
    faults = explain(stated, RunOptions)
    if faults:
        raise InputError(Problem(message=f"--{fault.path[0]}: {fault.message}") for fault in faults)
    return msgspec.structs.replace(settings.run if settings else RunOptions(), **stated)


def _at_least_one(option: str, number: int | None) -> int | None:
    if number is not None and number < 1:
        raise InputError(f"{option} has to be at least 1, got {number}")
    return number


def _quiet(settings: Config | None) -> None:
    """Keep what libraries log out of the report, unless the config asks for it."""
    level = settings.agent.log_level if settings else None
    if level is not None:
        logging.basicConfig(level=level)
    else:
        logging.getLogger().addHandler(logging.NullHandler())
