"""Holding a judge against the labels of people, and finding what is worth a label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from baton.config import Config, load_config
from baton.config.judge import JudgeConfig, JudgeFlags, make_judge_of
from baton.datasets import load_dataset
from baton.datasets.labels import HumanLabel, labels_of, of_rubric, read_labels
from baton.evaluators.judged import Judged
from baton.evaluators.judging.load import names_of
from baton.formats.evaluation_folder import is_evaluation
from baton.model import Case, Dataset, EvalContext, InputError, Problem, Terminated, Trace
from baton.model.redact import ON
from baton.readers import iter_traces, load_catalog
from baton.runner.calibration import (
    CalibrationReport,
    ToLabel,
    calibration_report,
    keep,
    people,
    placed,
    to_label,
)
from baton.runner.judged_subjects import (
    JudgedThing,
    ask,
    chosen,
    of_evaluation,
    shown_of,
    terms_of,
    things_of,
    with_model,
    with_reversed_order,
)
from baton.runner.loop import run_until_terminated
from baton.runner.plan import PlannedEvaluator, make_plan
from baton.runner.recorded import find_case
from baton.store import evaluation_traces, read_evaluation

from .file_kinds import kind_of_file
from .prepare import Note
from .rubrics import rubric_evaluator, rubric_of


class CalibrateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A rubric to calibrate, and how.

    ``files`` are labels (JSON lines, or a dataset with labels), then traces or evaluations.
    ``against`` are further models to ask, ``samples`` is how often each thing is asked about,
    ``reversed`` asks once more in reverse order. ``traces`` are the recordings that evaluations
    were made of. ``out`` is where calibrations are stored.
    """

    rubric: str
    files: Sequence[Path]
    config: Path | None = None
    judge: JudgeFlags = JudgeFlags()
    against: Sequence[str] = ()
    samples: int | None = None
    reversed: bool = False
    agents: Path | None = None
    traces: Sequence[Path] = ()
    out: Path


class _Labels(NamedTuple):
    """Labels, the file they are in, and the cases when that is a dataset."""

    labels: list[HumanLabel]
    file: Path | None
    dataset: Dataset | None


def calibrate(request: CalibrateRequest, note: Note) -> CalibrationReport:
    """Compare judges with people, or with one another where there are no labels; store the figures.

    Judges are asked about traces; of evaluations the verdicts that are stored are taken.

    Raises:
        InputError: files that do not go together, labels of what was not judged, or no verdict.
    """
    config = load_config(request.config) if request.config is not None else None
    evaluator = rubric_evaluator(request.rubric, config)
    labels, rest = _read_labels(request.rubric, evaluator, request.files)
    stored = [path for path in rest if is_evaluation(path)]
    if not rest or (stored and len(stored) < len(rest)):
        raise InputError("name traces to ask the judge about, or evaluations it has judged")
    context = config.plan.context if config else EvalContext()
    if stored:
        for name, given in {
            "judge": request.judge != JudgeFlags(),
            "against": request.against,
            "samples": request.samples,
            "reversed": request.reversed,
        }.items():
            if given:
                what = "options of a judge ask" if name == "judge" else f"--{name} asks"
                raise InputError(f"{what} a judge: give traces, not an evaluation")
        things = _stored_verdicts(stored, request, evaluator, context, note)
        report = calibration_report(evaluator, labels.labels, things, None, context.agent_names)
    else:
        traces = _labelled_traces(rest, labels, config, request.agents, note)
        asking = _ask_judges(request, evaluator, labels, config, traces, context)
        try:
            report = run_until_terminated(asking)
        except Terminated:
            note("verdicts that were given are kept: the next run takes them over")
            raise
    if labels.file is not None:
        for kept in keep(report, [labels.file], request.out):
            note(kept)
    return report


def _read_labels(
    rubric: str, evaluator: Judged, files: Sequence[Path]
) -> tuple[_Labels, list[Path]]:
    """Read the labels that come first, if any, and return what comes after them."""
    if not files:
        raise InputError("name labels and what they are of: baton calibrate RUBRIC LABELS TRACES")
    first, *rest = files
    if is_evaluation(first):
        return _Labels([], None, None), list(files)
    dataset = load_dataset(first) if first.is_dir() or kind_of_file(first) == "dataset" else None
    every = read_labels(first) if dataset is None else labels_of(dataset)
    try:
        own = of_rubric(every, [rubric, *names_of(evaluator.shape)])
    except InputError as error:
        raise InputError(Problem(file=str(first), message=str(error))) from None
    return _Labels(own, first, dataset), rest


def _stored_verdicts(
    folders: Iterable[Path],
    request: CalibrateRequest,
    evaluator: Judged,
    context: EvalContext,
    note: Note,
) -> list[JudgedThing]:
    """Return the verdicts of evaluations, with lengths where their traces are still there."""
    things: list[JudgedThing] = []
    for folder in folders:
        evaluation = read_evaluation(folder, traces=request.traces, agents=request.agents)
        shown = {}
        try:
            for trace in evaluation_traces(evaluation, request.agents):
                shown[trace.id] = shown_of(evaluator, trace, None, context)
        except InputError as error:
            note(f"effects of length are left out: {error.problems[0]}")
        things += of_evaluation(evaluation, evaluator.type, shown)
    return things


def _labelled_traces(
    paths: Sequence[Path],
    labels: _Labels,
    config: Config | None,
    agents: Path | None,
    note: Note,
) -> list[tuple[Trace, Case | None]]:
    """Read the traces that have a label, each with its case where the labels are of a dataset."""
    wanted = {label.trace for label in labels.labels}
    definitions = agents or (config.agents if config else None)
    catalog = load_catalog(definitions) if definitions is not None else None
    pairs = []
    redaction = config.redaction if config else ON
    for trace in iter_traces(paths, agents=catalog, on_note=note, redact=redaction):
        case = None
        if labels.dataset is not None:
            place = find_case(trace, labels.dataset, redaction).position
            case = labels.dataset.cases[place] if place is not None else None
        if trace.id in wanted or (case is not None and case.labels):
            pairs.append((trace, redaction.value(case)))
    return pairs


async def _ask_judges(
    request: CalibrateRequest,
    evaluator: Judged,
    labels: _Labels,
    config: Config | None,
    traces: Sequence[tuple[Trace, Case | None]],
    context: EvalContext,
) -> CalibrationReport:
    """Ask every model about what has a label, and work out the figures."""
    there = [one for each in traces for one in things_of(evaluator, *each, context)]
    labelled = placed(labels.labels, there, context.agent_names)
    people(labelled, terms_of(evaluator))  # what is wrong with labels is said before asking
    asking = chosen(evaluator, labelled.keys(), request.samples)
    things: list[JudgedThing] = []
    reversed_things: dict[str, list[JudgedThing]] = {}
    judging = config.judging if config else JudgeConfig()
    plan = config.plan if config else make_plan([evaluator])
    planned = [PlannedEvaluator(evaluator=evaluator)]
    async with make_judge_of(judging, request.judge, plan, planned) as judge:
        for one in (asking, *(with_model(asking, name) for name in request.against)):
            things += await ask(one, traces, judge, context)
            if request.reversed:
                for thing in await ask(with_reversed_order(one), traces, judge, context):
                    reversed_things.setdefault(thing.model or "", []).append(thing)
    return calibration_report(asking, labels.labels, things, reversed_things, context.agent_names)


class Labelling(NamedTuple):
    """The rubric to label by, and what of an evaluation it is about."""

    evaluator: Judged
    things: list[ToLabel]


def things_to_label(
    folder: Path,
    *,
    rubric: str | None = None,
    config: Path | None = None,
    agents: Path | None = None,
    traces: Sequence[Path] = (),
) -> Labelling:
    """Return what of an evaluation is to be labelled, what is worth most first.

    Args:
        folder: the evaluation.
        rubric: the rubric to label by; the one that judged the evaluation when left out.
        config: for rubrics of the user's own.
        agents: agent definitions, for traces that lie elsewhere.
        traces: recordings that the evaluation was made of.

    Raises:
        InputError: no such rubric, or it is about nothing there.
    """
    stored = read_evaluation(folder, traces=traces, agents=agents)
    settings = load_config(config) if config is not None else None
    evaluator = rubric_evaluator(rubric or rubric_of(stored), settings)
    verdicts = of_evaluation(stored, evaluator.type)
    things = to_label(evaluator, evaluation_traces(stored, agents), EvalContext(), verdicts)
    if not things:
        raise InputError(f"{stored.folder}: holds nothing that `{evaluator.type}` is about")
    return Labelling(evaluator, things)
