"""What ``score`` and ``eval`` do with an evaluation once it is there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from baton.config import Config
from baton.config.evaluators import left_unchecked
from baton.config.secrets import masked
from baton.datasets import load_dataset
from baton.model import Dataset, InputError, Problem
from baton.plugins import reporter_entry, resolve
from baton.readers import load_catalog
from baton.reports.json import EXIT_CODES
from baton.runner.plan import Plan
from baton.store import StoredEvaluation, read_evaluation

from .kinds import given_as
from .notes import note

OUT = Path(".baton/evaluations")
SWAPPED = "is a {}, not a {}: baton score RECORDING --dataset DATASET"


def header_of(
    settings: Config | None, plan: Plan, dataset: list[str], **more: Any
) -> dict[str, Any]:
    """Return what a folder says of how it was made."""
    from baton import __version__

    return {
        "versions": {"baton": __version__},
        **more,
        "dataset": dataset,
        "pass_rule": msgspec.to_builtins(plan.pass_rule),
        "config": settings.resolved if settings else None,
        **_judge_of(plan),
        "evaluator_versions": {
            name: planned.evaluator.version for name, planned in plan.all_evaluators.items()
        },
    }


def _judge_of(plan: Plan) -> dict[str, Any]:
    """Return the settings of the judge, without its keys."""
    settings = getattr(plan.context.judge, "settings", None)
    return {} if settings is None else {"judge": masked(msgspec.to_builtins(settings))}


def load_cases(paths: list[str], settings: Config | None, agents: Path | None = None) -> Dataset:
    """Load a dataset; what is wrong with a path that a config names says so.

    ``agents`` is a file of definitions, which goes before the config's.
    """
    definitions = agents or (settings.agents if settings else None)
    catalog = load_catalog(definitions) if definitions is not None else None
    try:
        return load_dataset(paths, agents=catalog)
    except InputError as error:
        swapped = given_as(map(Path, paths), "traces", SWAPPED.format("recording", "dataset"))
        if swapped:
            raise InputError(swapped) from None
        if settings is None or paths != settings.dataset:
            raise
        raise InputError(
            Problem(
                file=problem.file,
                line=problem.line,
                path=problem.path,
                message=f"{problem.message} (`dataset` of {settings.file})",
            )
            for problem in error.problems
        ) from None


def note_config(settings: Config | None) -> None:
    """Say what of a config is not used."""
    for text in settings.notes if settings else ():
        note(text)


def note_unchecked(plan: Plan, dataset: Dataset) -> None:
    """Say what of a dataset is not read, and what no evaluator looks at."""
    for text in dataset.notes:
        note(text)
    for text in left_unchecked(plan, dataset):
        note(text)


def prepare(settings: Config | None, files: Mapping[str, Path]) -> None:
    """See to it that reports can be written, before anything runs; raises InputError."""
    paths = [Path(r.output_path) for r in settings.reporters if r.output_path] if settings else []
    for path in (*paths, *files.values()):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("a", encoding="utf-8").close()
        except OSError as error:
            raise _unwritable(path, error) from None


def report(
    folder: Path,
    settings: Config | None,
    *,
    json: bool,
    show: int,
    detailed: bool = False,
    files: Mapping[str, Path] | None = None,
) -> int:
    """Print the report, write those that are asked for, and return the exit code.

    ``files`` are reports by reporter, beside those of the config; ``show`` is how many cases
    that did not pass are printed in full.
    """
    evaluation = read_evaluation(folder)
    with readers_may_leave():
        if json:
            resolve(reporter_entry("json"))(evaluation, sys.stdout)
        else:
            terminal = resolve(reporter_entry("terminal"))
            terminal(evaluation, sys.stdout, limit=show, detailed=detailed)
    for reporter in settings.reporters if settings else ():
        if reporter.output_path is not None:
            _write(evaluation, reporter.type, Path(reporter.output_path))
    for kind, path in (files or {}).items():
        _write(evaluation, kind, path)
    code = EXIT_CODES.get(evaluation.header.status, 3)
    if code == 1 and settings is not None and not settings.agent.fail_on_threshold_violation:
        note("the exit code is 0, as the config says `fail_on_threshold_violation: false`")
        return 0
    return code


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """Let whoever reads standard output stop (``| head``): the verdict stays what it is."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(evaluation: StoredEvaluation, kind: str, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            resolve(reporter_entry(kind))(evaluation, file)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> InputError:
    message = f"the report cannot be written: {error.strerror}"
    return InputError(Problem(file=str(path), message=message))
