"""``baton calibrate``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from cyclopts import Parameter

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
from baton.reports.calibrate import plain_calibration, print_calibration
from baton.runner.calibrate import CalibrationReport, calibration_report, keep
from baton.runner.judged import (
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
from baton.runner.opinions import people, placed
from baton.runner.plan import PlannedEvaluator, make_plan
from baton.runner.recorded import find_case
from baton.session.file_kinds import kind_of_file
from baton.store import evaluation_traces, read_evaluation
from baton.store.calibrations import FOLDER

from .messages import note
from .options import JudgeOptions, Whole
from .output import readers_may_leave
from .rubrics import rubric_evaluator

if TYPE_CHECKING:
    from baton.judges.judge import LlmJudge

Several = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
NO_EVIDENCE = 3


class _Labels(NamedTuple):
    """Labels, the file they stand in, and the cases when that is a dataset."""

    labels: list[HumanLabel]
    file: Path | None
    dataset: Dataset | None


def calibrate_command(
    rubric: str,
    *files: Path,
    config: Annotated[Path | None, Parameter(name=["--config", "-c"])] = None,
    judging: JudgeOptions | None = None,
    against: Several = (),
    samples: Whole | None = None,
    reversed: Annotated[bool, Parameter(negative="")] = False,
    agents: Path | None = None,
    traces: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = (),
    json: Annotated[bool, Parameter(negative="")] = False,
    out: Path = FOLDER,
) -> int:
    """Hold a judge against the labels of people: is it any good?

    `baton calibrate RUBRIC LABELS TRACES...` asks the judge about what has a label, findings
    apart; `baton calibrate RUBRIC LABELS EVALUATION...` takes the verdicts that are stored, and
    asks nobody. Without labels, several evaluations (or models) show how judges agree.

    The exit code is 3 where there are too few labels to call it evidence.

    Parameters
    ----------
    rubric
        The rubric, by any of its names.
    files
        Labels (JSON lines, or a dataset with `labels`), then traces, or evaluations.
    config
        A config with `judge:`, the rubric's options, and rubrics of your own.
    against
        One more model to ask, to compare with the other. May be given several times.
    samples
        How often the judge is asked about each thing; 2 or more show how steady it is.
    reversed
        Ask once more with labels and material in reverse order: does the order matter?
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    traces
        Recordings that evaluations were made of: needed for the effects of length when these were
        made on another machine, or moved. May be given several times.
    json
        Print the figures as JSON.
    out
        Where calibrations are stored; reports look in the default place.
    """
    settings = load_config(config) if config is not None else None
    evaluator = rubric_evaluator(rubric, settings)
    told, rest = _labels(rubric, evaluator, files)
    stored = [path for path in rest if is_evaluation(path)]
    if not rest or (stored and len(stored) < len(rest)):
        raise InputError("name traces to ask the judge about, or evaluations it has judged")
    if stored:
        named = judging not in (None, JudgeOptions())
        _only_when_asking(judge=named, against=against, samples=samples, reversed=reversed)
        context = settings.plan.context if settings else EvalContext()
        things = _stored(stored, traces, evaluator, agents, context)
        report = calibration_report(evaluator, told.labels, things, None, context.agent_names)
    else:
        flags = (judging or JudgeOptions()).flags()
        job = _Job(evaluator, told, settings, flags, against, samples, reversed)
        try:
            report = run_until_terminated(job.report(_traces(rest, told, settings, agents)))
        except Terminated:
            note("verdicts that were given are kept: the next run takes them over")
            raise
    if told.file is not None:
        keep(report, [told.file], out)
    with readers_may_leave():
        if json:
            print(msgspec.json.encode(plain_calibration(report)).decode())
        else:
            print_calibration(report, sys.stdout)
    return 0 if report.is_evidence or not told.labels else NO_EVIDENCE


def _labels(rubric: str, evaluator: Judged, files: Sequence[Path]) -> tuple[_Labels, list[Path]]:
    """Read the labels that come first, if any, and return what comes after them."""
    if not files:
        raise InputError("name labels and what they are of: baton calibrate RUBRIC LABELS TRACES")
    first, *rest = files
    if is_evaluation(first):
        return _Labels([], None, None), list(files)
    dataset = load_dataset(first) if first.is_dir() or kind_of_file(first) == "dataset" else None
    found = read_labels(first) if dataset is None else labels_of(dataset)
    try:
        return _Labels(of_rubric(found, [rubric, *names_of(evaluator.shape)]), first, dataset), rest
    except InputError as error:
        raise InputError(Problem(file=str(first), message=str(error))) from None


def _only_when_asking(**options: object) -> None:
    for name, given in options.items():
        if given:
            what = "options of a judge ask" if name == "judge" else f"--{name} asks"
            raise InputError(f"{what} a judge: give traces, not an evaluation")


def _stored(
    folders: Iterable[Path],
    traces: Sequence[Path],
    evaluator: Judged,
    agents: Path | None,
    context: EvalContext,
) -> list[JudgedThing]:
    """Return the verdicts of evaluations, with lengths where their traces are still there."""
    found: list[JudgedThing] = []
    for folder in folders:
        evaluation = read_evaluation(folder, traces=traces, agents=agents)
        shown = {}
        try:
            for trace in evaluation_traces(evaluation, agents):
                shown[trace.id] = shown_of(evaluator, trace, None, context)
        except InputError as error:
            note(f"effects of length are left out: {error.problems[0]}")
        found += of_evaluation(evaluation, evaluator.type, shown)
    return found


def _traces(
    paths: Sequence[Path], told: _Labels, settings: Config | None, agents: Path | None
) -> list[tuple[Trace, Case | None]]:
    """Read the traces that have a label, each with its case where the labels are of a dataset."""
    wanted = {label.trace for label in told.labels}
    definitions = agents or (settings.agents if settings else None)
    catalog = load_catalog(definitions) if definitions is not None else None
    found = []
    redaction = settings.redaction if settings else ON
    for trace in iter_traces(paths, agents=catalog, on_note=note, redact=redaction):
        case = None
        if told.dataset is not None:
            place = find_case(trace, told.dataset, redaction).position
            case = told.dataset.cases[place] if place is not None else None
        if trace.id in wanted or (case is not None and case.labels):
            found.append((trace, redaction.value(case)))
    return found


class _Job(NamedTuple):
    """What is asked of whom."""

    evaluator: Judged
    told: _Labels
    settings: Config | None
    flags: JudgeFlags
    against: Sequence[str]
    samples: int | None
    reversed: bool

    async def report(self, traces: Sequence[tuple[Trace, Case | None]]) -> CalibrationReport:
        """Ask every model, and work out the figures."""
        context = self.settings.plan.context if self.settings else EvalContext()
        there = [one for each in traces for one in things_of(self.evaluator, *each, context)]
        found = placed(self.told.labels, there, context.agent_names)
        people(found, terms_of(self.evaluator))  # what is wrong with labels is told before asking
        asking = chosen(self.evaluator, found.keys(), self.samples)
        things: list[JudgedThing] = []
        turned: dict[str, list[JudgedThing]] = {}
        async with self._judge() as judge:
            for one in (asking, *(with_model(asking, name) for name in self.against)):
                things += await ask(one, traces, judge, context)
                if self.reversed:
                    again = await ask(with_reversed_order(one), traces, judge, context)
                    for thing in again:
                        turned.setdefault(thing.model or "", []).append(thing)
        return calibration_report(asking, self.told.labels, things, turned, context.agent_names)

    def _judge(self) -> LlmJudge:
        told = self.settings.judging if self.settings else JudgeConfig()
        plan = self.settings.plan if self.settings else make_plan([self.evaluator])
        return make_judge_of(told, self.flags, plan, [PlannedEvaluator(evaluator=self.evaluator)])
