"""What ``score`` and ``eval`` do with an evaluation once it is there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import msgspec

from baton.config import Config
from baton.config.evaluators import left_unchecked
from baton.config.provenance import provenance_of, refuse_others
from baton.config.shape import ReporterSpec
from baton.config.trust import Trust
from baton.datasets import load_dataset
from baton.formats.own_files import naming
from baton.model import BatonError, Dataset, InputError, Problem
from baton.model.secrets import masked
from baton.plugins import reporter_entry, resolve
from baton.readers import load_catalog
from baton.reports.json import EXIT_CODES
from baton.runner.plan import Plan
from baton.sink import command_output, expect_commands
from baton.store import StoredEvaluation, read_evaluation

from .kinds import given_as
from .notes import note, say
from .reports import NONE, Reports

UNDELIVERED = 3
OUT = Path(".baton/evaluations")
SWAPPED = "is a {}, not a {}: baton score RECORDING --dataset DATASET"


def header_of(
    settings: Config | None,
    plan: Plan,
    dataset: list[str],
    cases: Dataset | None,
    provider: str | None = None,
    agents: Path | str | None = None,
    /,
    **more: Any,
) -> dict[str, Any]:
    """Return what a folder says of how it was made; ``provider`` is a type.

    ``agents`` is a file of definitions, which goes before the config's.

    Raises:
        InputError: the gate is for another dataset or config, or its baseline is not there.
    """
    from baton import __version__

    provenance = provenance_of(
        plan,
        cases,
        settings.resolved if settings else None,
        [] if provider is None else [provider],
        settings.folder if settings else None,
        agents or (settings.agents if settings else None),
    )
    refuse_others(plan.gate, provenance)

    return {
        "versions": {"baton": __version__},
        **more,
        "dataset": dataset,
        "pass_rule": msgspec.to_builtins(plan.pass_rule),
        "config": settings.resolved if settings else None,
        "redact": plan.redaction.told,
        **_judge_of(plan),
        "provenance": msgspec.to_builtins(provenance),
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


def note_trust(trust: Trust) -> None:
    """Say what trust could not be remembered."""
    for text in trust.notes:
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
    for reporter in settings.reporters if settings else ():
        if reporter.endpoint is not None:
            from baton.export.run import endpoint_of

            endpoint_of(reporter.endpoint, reporter.headers_from).close()


def report(
    folder: Path,
    settings: Config | None,
    *,
    json: bool,
    show: int,
    detailed: bool = False,
    reports: Reports = NONE,
    traces: Sequence[Path] = (),
    agents: Path | None = None,
) -> int:
    """Print the report, write those that are asked for, and return the exit code.

    ``reports`` are those beside the config's; ``show`` is how many cases that did not pass are
    printed in full. ``traces`` are the recordings that were scored, with their ``agents``.
    """
    evaluation = read_evaluation(folder, partial=True, traces=traces, agents=agents)
    wanted = settings.reporters if settings else []
    if any(each.type == "github" and each.output_path is None for each in wanted):
        reports = replace(reports, github=True)
        expect_commands(sys.stdout)
    with readers_may_leave():
        if json:
            resolve(reporter_entry("json"))(evaluation, sys.stdout)
        else:
            terminal = resolve(reporter_entry("terminal"))
            terminal(evaluation, sys.stdout, limit=show, detailed=detailed)
    for reporter in wanted:
        if reporter.output_path is not None:
            _write(evaluation, reporter.type, Path(reporter.output_path))
    write_reports(evaluation, reports, annotations=sys.stderr if json else sys.stdout)
    undelivered = [each for each in wanted if not _delivered(evaluation, each)]
    code = EXIT_CODES.get(evaluation.header.status, 3)
    if code == 1 and settings is not None and not settings.agent.fail_on_threshold_violation:
        note("the exit code is 0, as the config says `fail_on_threshold_violation: false`")
        code = 0
    return code or (UNDELIVERED if undelivered else 0)


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """Let whoever reads standard output stop (``| head``): the verdict stays what it is."""
    try:
        with naming("standard output"):
            yield
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_reports(evaluation: StoredEvaluation, reports: Reports, annotations: IO[str]) -> None:
    """Write the files that are asked for; annotations go where GitHub reads what is printed."""
    for kind, path in reports.files().items():
        _write(evaluation, kind, path)
    if reports.github:
        resolve(reporter_entry("github"))(evaluation, command_output(annotations))


def _write(evaluation: StoredEvaluation, kind: str, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            resolve(reporter_entry(kind))(evaluation, file)
    except OSError as error:
        raise _unwritable(path, error) from None


def _delivered(evaluation: StoredEvaluation, reporter: ReporterSpec) -> bool:
    """Send results where a reporter says, if it does; what cannot be delivered is said."""
    if reporter.endpoint is None:
        return True
    from baton.export.run import send_otlp

    try:
        send_otlp(evaluation, reporter.endpoint, reporter.headers_from)
    except BatonError as error:
        say(f"baton: the results were not delivered: {error}")
        return False
    return True


def _unwritable(path: Path, error: OSError) -> InputError:
    message = f"the report cannot be written: {error.strerror}"
    return InputError(Problem(file=str(path), message=message))
