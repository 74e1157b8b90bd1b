"""Distilling a judge: a small classifier from the verdicts that it gave."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from baton.evaluators.judged import Judged
from baton.evaluators.judging.distilled import DistilledModel
from baton.evaluators.judging.distilled_features import Reading, read
from baton.evaluators.judging.distilled_limits import Limit, limits_of
from baton.evaluators.judging.evidence import answers_of
from baton.formats.own_files import make_folder, naming, write_whole
from baton.model import EvalContext, InputError, Trace, counted
from baton.runner.judged_subjects import JudgedThing, of_evaluation
from baton.store import (
    StoredEvaluation,
    evaluation_at,
    evaluation_traces,
    latest_evaluation,
    read_evaluation,
)

from .file_kinds import config_of
from .prepare import Note, PathLike, log_note
from .report import STORED
from .rubric_examples import shown_to_judge
from .rubrics import rubric_evaluator, rubric_files

_LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Error limits for which the share of answers is reported."""
# Parts of a version for examples and for a distilled judge: the rubric is the same without them.
_MARKS = re.compile(r"(\+[xd][0-9a-f]{8})+$")


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """The share that a distilled judge would answer with an error limit.

    ``answered`` is the share of the trials, ``error`` the share of these that were wrong, and
    ``saved_usd`` what the judge would have cost for them, of 1,000 verdicts.
    """

    max_error: float
    answered: float
    error: float | None
    saved_usd: float | None


class DistilledJudge(NamedTuple):
    """The trained judge, its file, and its results in tests."""

    file: Path
    model: DistilledModel
    agreement: float
    usual: float
    shares: list[Share]


def distill(
    rubric: str,
    evaluations: Sequence[PathLike] = (),
    *,
    config: PathLike | None = None,
    judge: str | None = None,
    agents: PathLike | None = None,
    traces: Sequence[PathLike] = (),
    out: PathLike | None = None,
    stored: PathLike = STORED,
    seed: int = 0,
    note: Note = log_note,
) -> DistilledJudge:
    """Train a small classifier on the verdicts of a judge, and write it to a file.

    It is used only after a rubric's option `distilled` names the file.

    Args:
        rubric: the rubric, by any of its names.
        evaluations: folders of evaluations that were judged; all below ``stored`` when left out.
        config: a config with the rubric's options, and the user's own rubrics.
        judge: the model whose verdicts to learn from; by default the one with the most.
        agents: agent definitions, for traces that are elsewhere.
        traces: the recordings that evaluations were made from.
        out: the file; `RUBRIC.distilled.json` beside a rubric of the user, else here.
        stored: where evaluations are stored.
        seed: the seed of random choices.
        note: is called with what was left out.

    Raises:
        InputError: too few verdicts, a rubric without labels, or scikit-learn is missing.
    """
    from baton.improvements.distill import Verdict, train

    settings = config_of(config) if config is not None else None
    evaluator = rubric_evaluator(rubric, settings)
    if evaluator.rubric.answer.labels is None or _in_parts(evaluator):
        raise InputError(
            f"`{evaluator.type}` answers with a number or in parts: only a judge that gives one "
            "label to each thing can be distilled"
        )
    context = settings.plan.context if settings is not None else EvalContext()
    folders = [evaluation_at(each) for each in evaluations]
    folders = folders or [file.parent for file in sorted(Path(stored).glob("*/evaluation.json"))]
    if not folders:
        latest_evaluation(Path(stored))  # says that there is none
    definitions = None if agents is None else Path(agents)
    things: dict[tuple[str, str], tuple[JudgedThing, Trace]] = {}
    costs: list[float] = []
    skipped: Counter[str] = Counter()
    for folder in folders:
        made = read_evaluation(folder, traces=[Path(each) for each in traces], agents=definitions)
        costs += _costs(made, evaluator.type)
        with_verdict = [
            thing for thing in of_evaluation(made, evaluator.type) if _is_verdict(thing)
        ]
        if not with_verdict:
            continue
        by_trace: dict[str, list[JudgedThing]] = {}
        for thing in with_verdict:
            if _MARKS.sub("", thing.version) == evaluator.rubric.version:
                by_trace.setdefault(thing.trace, []).append(thing)
            else:
                skipped[f"of version {thing.version}"] += 1
        for trace in evaluation_traces(made, definitions):
            for thing in by_trace.get(trace.id, ()):
                things[thing.key] = (thing, trace)
    models = Counter(thing.model for thing, _ in things.values())
    chosen = judge or (models.most_common(1)[0][0] if models else None)
    verdicts = []
    read_before: set[str] = set()
    for thing, trace in things.values():
        if thing.model != chosen:
            skipped[f"by {thing.model}"] += 1
            continue
        verdict = _verdict(evaluator, thing, trace, context)
        if verdict is None:
            skipped["with nothing to show, or too long to show"] += 1
            continue
        made_of = Verdict(*verdict)
        if made_of.reading.material in read_before:
            skipped["of the same material as another one"] += 1
        read_before.add(made_of.reading.material)
        verdicts.append(made_of)
    for why, number in skipped.items():
        note(f"{counted(number, 'verdict')} {why} left out")
    report = train(
        verdicts,
        rubric=evaluator.type,
        version=evaluator.rubric.version,
        judge=chosen or "",
        labels=list(evaluator.rubric.answer.labels),
        cost_usd=sum(costs) / len(costs) if costs else None,
        seed=seed,
    )
    file = Path(out) if out is not None else _beside(rubric, evaluator)
    with naming(file):
        make_folder(file.parent)
        write_whole(file, msgspec.json.encode(report.model) + b"\n")
    shares = [share_of(report.model, limit) for limit in _LIMITS]
    return DistilledJudge(file, report.model, report.agreement, report.usual, shares)


def share_of(model: DistilledModel, max_error: float) -> Share:
    """Return the share of tests that would be answered with an error limit."""
    limits: dict[int, Limit] = limits_of(model.trials, model.shares, max_error)
    answered = [
        trial
        for trial in model.trials
        if trial.label in limits and trial.sure >= limits[trial.label].sure
    ]
    share = len(answered) / len(model.trials)
    cost = model.trained.cost_usd
    return Share(
        max_error=max_error,
        answered=share,
        error=sum(not t.right for t in answered) / len(answered) if answered else None,
        saved_usd=None if cost is None else 1_000 * share * cost,
    )


def _in_parts(evaluator: Judged) -> bool:
    answer = evaluator.rubric.answer
    return answer.each is not None or answer.claims is not None


def _is_verdict(thing: JudgedThing) -> bool:
    return thing.label is not None and thing.model is not None and not thing.trouble


def _verdict(
    evaluator: Judged, thing: JudgedThing, trace: Trace, context: EvalContext
) -> tuple[Reading, str, str, str] | None:
    for subject in evaluator.subjects(trace, None, context):
        if subject.id == thing.subject:
            question = shown_to_judge(evaluator, subject)
            if question is None or question.left_out or thing.label is None:
                return None
            reading = read(question.sections, answers_of(evaluator.rubric, subject))
            framework = trace.source.framework or trace.source.format
            return reading, thing.label, trace.id, framework
    return None


def _costs(made: StoredEvaluation, rubric: str) -> Iterator[float]:
    """Yield the costs of a judge's verdicts, except those from the cache."""
    for result in made:
        for score in result.scores:
            use = score.judge
            if score.type == rubric and use is not None and not use.cached and use.cost_usd:
                units = score.details.get("units")
                yield use.cost_usd / (max(1, len(units)) if isinstance(units, list) else 1)


def _beside(rubric: str, evaluator: Judged) -> Path:
    there = rubric_files(None, (), [rubric]).get(evaluator.shape.name)
    name = f"{evaluator.shape.name}.distilled.json"
    return there.file.with_name(name) if there is not None and there.own else Path(name)
