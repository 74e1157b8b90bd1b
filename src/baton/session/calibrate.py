"""Compares a judge with people's labels, and finds things that are worth labelling."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from baton.config import Config
from baton.config.judge_config import JudgeConfig, JudgeFlags, make_judge_of
from baton.datasets import load_dataset
from baton.datasets.labels import Label, labels_of, of_rubric, read_labels
from baton.evaluators.judged import Judged
from baton.evaluators.judging.rubric_files import names_of
from baton.formats.evaluation_folder import is_evaluation
from baton.model import Case, Dataset, EvalContext, InputError, Location, Problem, Terminated, Trace
from baton.model.option_spelling import option
from baton.model.redact import ON
from baton.readers import iter_traces, load_catalog
from baton.runner.calibration_report import (
    CalibrationReport,
    calibration_report,
    keep,
    people,
    placed,
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
from baton.store import evaluation_at, evaluation_traces, read_evaluation
from baton.store.calibrations import FOLDER

from .file_kinds import config_of, given_as, kind_of_file
from .prepare import Note, PathLike, log_note
from .recordings import local_sources
from .rubrics import rubric_evaluator
from .server_client import Server, connect, names_server
from .server_rows import Conversation, Page
from .server_source import is_server, source_of


class GivenLabels(NamedTuple):
    """Labels, the file they are in, and the cases when that is a dataset; or their server."""

    labels: list[Label]
    file: Path | None
    dataset: Dataset | None
    server: Server | None = None


def calibrate(
    rubric: str,
    files: PathLike | Sequence[PathLike],
    *,
    config: PathLike | None = None,
    judge: str | JudgeFlags | None = None,
    against: Sequence[str] = (),
    samples: int | None = None,
    reversed: bool = False,
    agents: PathLike | None = None,
    traces: Sequence[PathLike] = (),
    out: PathLike = FOLDER,
    note: Note = log_note,
) -> CalibrationReport:
    """Compare judges with people, or with each other if there are no labels; store the figures.

    Judges are called for traces; for evaluations, stored verdicts are used.

    Args:
        rubric: the rubric, by any of its names.
        files: labels (JSON lines, a dataset with labels, or the address of a server, such as
            ``http://localhost:4318``, or of conversations of it, such as
            ``server://localhost/PROJECT?to=refund-*``), then traces or evaluations; of a server its
            own conversations when nothing else is named.
        config: a config with ``judge:``, the rubric's options, and the user's own rubrics.
        judge: the judge's model; overrides the config.
        against: further models to ask.
        samples: the number of samples per thing.
        reversed: ask once more in reverse order.
        agents: agent definitions.
        traces: the recordings that evaluations were made from.
        out: where calibrations are stored; reports look in the default place.
        note: called with each note; by default the logger `baton` warns.

    Raises:
        InputError: the files do not belong together, labels are about things that were not judged,
            or there is no verdict.
    """
    some = [files] if isinstance(files, str | os.PathLike) else list(files)
    flags = JudgeFlags(model=judge) if isinstance(judge, str) else judge or JudgeFlags()
    settings = config_of(config) if config is not None else None
    evaluator = rubric_evaluator(rubric, settings)
    labels, more = labels_first(rubric, evaluator, some)
    rest = [Path(each) for each in local_sources([os.fspath(each) for each in more], note)]
    stored = [path for path in rest if is_evaluation(path)]
    if not (rest or labels.server) or (stored and len(stored) < len(rest)):
        raise InputError("name traces to ask the judge about, or evaluations it has judged")
    context = settings.plan.context if settings else EvalContext()
    if stored:
        for name, value in {
            "judge": flags != JudgeFlags(),
            "against": against,
            "samples": samples,
            "reversed": reversed,
        }.items():
            if value:
                what = "options of a judge ask" if name == "judge" else f"{option(name)} asks"
                raise InputError(f"{what} a judge: give traces, not an evaluation")
        recordings = [Path(each) for each in traces]
        things = _stored_verdicts(stored, recordings, agents, evaluator, context, note)
        report = calibration_report(evaluator, labels.labels, things, None, context.agent_names)
    else:
        pairs = labelled_traces(rest, labels, settings, agents, note)
        there = [one for pair in pairs for one in things_of(evaluator, *pair, context)]
        labelled = placed(labels.labels, there, context.agent_names)
        # problems of labels are reported before calling the judge
        people(labelled, terms_of(evaluator))
        asking = chosen(evaluator, labelled.keys(), samples)
        models = [asking, *(with_model(asking, name) for name in against)]

        async def ask_judges() -> CalibrationReport:
            things: list[JudgedThing] = []
            turned: dict[str, list[JudgedThing]] = {}
            judging = settings.judging if settings else JudgeConfig()
            plan = settings.plan if settings else make_plan([evaluator])
            planned = [PlannedEvaluator(evaluator=evaluator)]
            async with make_judge_of(judging, flags, plan, planned) as llm:
                for one in models:
                    things += await ask(one, pairs, llm, context)
                    if reversed:
                        for thing in await ask(with_reversed_order(one), pairs, llm, context):
                            turned.setdefault(thing.model or "", []).append(thing)
            return calibration_report(asking, labels.labels, things, turned, context.agent_names)

        try:
            report = run_until_terminated(ask_judges())
        except Terminated:
            note("verdicts so far are kept: the next run reuses them")
            raise
    if labels.file is not None:
        for kept in keep(report, [labels.file], Path(out)):
            note(kept)
    return report


def labels_first(
    rubric: str, evaluator: Judged, files: Sequence[PathLike]
) -> tuple[GivenLabels, Sequence[PathLike]]:
    """Read the labels that come first, if any, and return what comes after them."""
    if not files:
        raise InputError(
            "name labels and the traces they are about: baton calibrate RUBRIC LABELS TRACES"
        )
    rest = files[1:]
    if names_server(files[0]):
        address = str(files[0])
        among: set[str] | None = None  # the selected conversations; all of them
        if is_server(address):
            server, fields, most, _ = source_of(address)
            if fields or most is not None:
                meant = server.pages("/conversations", Page[Conversation], fields, most)
                among = {each.key for page in meant for each in page.items}
        else:
            server = connect(address)
        newest: dict[tuple[str | None, ...], Label] = {}
        for label in server.labels():  # if a person labelled a thing twice, the last label counts
            if among is not None and label.trace not in among:
                continue
            key = (label.rubric, label.trace, label.what, label.by)
            newest.setdefault(key, msgspec.structs.replace(label, where=Location(file=server.url)))
        own = of_rubric(newest.values(), [rubric, *names_of(evaluator.shape)])
        return GivenLabels(own, None, None, server), rest
    first = evaluation_at(files[0])
    if is_evaluation(first):
        return GivenLabels([], None, None), files
    dataset = load_dataset(first) if first.is_dir() or kind_of_file(first) == "dataset" else None
    swapped = "is a recording, not labels: name the labels first, then the recording"
    if dataset is None and (recordings := given_as([first], "traces", swapped)):
        raise InputError(recordings)
    every = read_labels(first) if dataset is None else labels_of(dataset)
    try:
        own = of_rubric(every, [rubric, *names_of(evaluator.shape)])
    except InputError as error:
        raise InputError(Problem(file=str(first), message=str(error))) from None
    return GivenLabels(own, first, dataset), rest


def _stored_verdicts(
    folders: Iterable[Path],
    traces: Sequence[Path],
    agents: PathLike | None,
    evaluator: Judged,
    context: EvalContext,
    note: Note,
) -> list[JudgedThing]:
    """Return the verdicts of evaluations, with lengths if their traces still exist."""
    definitions = None if agents is None else Path(agents)
    things: list[JudgedThing] = []
    for folder in folders:
        evaluation = read_evaluation(folder, traces=traces, agents=definitions)
        shown = {}
        try:
            for trace in evaluation_traces(evaluation, definitions):
                shown[trace.id] = shown_of(evaluator, trace, None, context)
        except InputError as error:
            note(f"effects of length are left out: {error.problems[0]}")
        things += of_evaluation(evaluation, evaluator.type, shown)
    return things


def labelled_traces(
    paths: Sequence[Path],
    labels: GivenLabels,
    config: Config | None,
    agents: PathLike | None,
    note: Note,
) -> list[tuple[Trace, Case | None]]:
    """Read the traces that have a label, each with its case if the labels are for a dataset."""
    wanted = {label.trace for label in labels.labels}
    definitions = agents or (config.agents if config else None)
    catalog = load_catalog(definitions) if definitions is not None else None
    redaction = config.redaction if config else ON
    if labels.server is not None and not paths:
        return [
            (redaction.value(labels.server.conversation(str(id_))), None)
            for id_ in sorted(map(str, wanted))
        ]
    pairs = []
    for trace in iter_traces(paths, agents=catalog, on_note=note, redact=redaction):
        case = None
        if labels.dataset is not None:
            place = find_case(trace, labels.dataset, redaction).position
            case = labels.dataset.cases[place] if place is not None else None
        if trace.id in wanted or (case is not None and case.labels):
            pairs.append((trace, redaction.value(case)))
    return pairs
