"""Stores feedback on a judge as examples of its rubric: contradicting labels and proven fixes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from baton.config import Config
from baton.datasets.labels import Label
from baton.evaluators.judged import Judged
from baton.evaluators.judging.judge_prompt import Question
from baton.evaluators.judging.labelled_examples import (
    MOST,
    LabelledExample,
    example_of,
    read_examples,
)
from baton.evaluators.judging.subject import Subject
from baton.formats.evaluation_folder import is_evaluation
from baton.formats.own_files import make_folder, naming, write_whole
from baton.model import EvalContext, InputError
from baton.runner.calibration_report import People, people, placed
from baton.runner.judged_subjects import JudgedThing, of_evaluation, terms_of
from baton.stats.calibration import Key, Opinion, Terms, people_class
from baton.store import evaluation_at, evaluation_traces, read_evaluation

from .calibrate import labels_first
from .file_kinds import config_of
from .issues import PROGRESS, ProgressFolder
from .prepare import Note, PathLike, log_note
from .rubrics import rubric_evaluator, rubric_files


class KeptExamples(NamedTuple):
    """The file of examples, how many it has, and how many of them are new or changed.

    ``against`` counts labels that contradict the judge, ``fixes`` failures of issues with a proven
    fix.
    """

    file: Path
    total: int
    fresh: int
    against: int
    fixes: int


def keep_examples(
    rubric: str,
    files: Sequence[PathLike],
    *,
    config: PathLike | None = None,
    agents: PathLike | None = None,
    traces: Sequence[PathLike] = (),
    project: str | None = None,
    progress: PathLike = PROGRESS,
    out: PathLike | None = None,
    note: Note = log_note,
) -> KeptExamples:
    """Store labels that contradict a judge, and failures that a proven fix confirms.

    Args:
        rubric: any name of the rubric, or its file.
        files: labels (a file of `baton label`, or a dataset), then evaluations with verdicts;
            evaluations alone only give the failures that proven fixes confirm.
        config: a config with the rubric's options, and the user's own rubrics.
        agents: agent definitions, for traces that are elsewhere.
        traces: the recordings that evaluations were made from.
        project: the project of the examples; judges only see examples of the same project.
        progress: the folder with the work on issues.
        out: the file; by default beside the user's own rubric, else in the current folder.
        note: called with what was left out.

    Raises:
        InputError: files that do not match, labels of something that was not judged, or there is
            nothing to store.
    """
    settings = config_of(config) if config is not None else None
    evaluator = rubric_evaluator(rubric, settings)
    people_labels, rest = labels_first(rubric, evaluator, files)
    folders = [evaluation_at(each) for each in rest]
    if not folders or not all(map(is_evaluation, folders)):
        raise InputError("name evaluations that the judge has scored, after the labels")
    context = settings.plan.context if settings is not None else EvalContext()
    definitions = None if agents is None else Path(agents)
    verdicts: dict[Key, JudgedThing] = {}
    subjects: dict[Key, Subject] = {}
    for folder in folders:
        stored = read_evaluation(folder, traces=[Path(each) for each in traces], agents=definitions)
        verdicts |= {thing.key: thing for thing in of_evaluation(stored, evaluator.type)}
        for trace in evaluation_traces(stored, definitions):
            for subject in evaluator.subjects(trace, None, context):
                subjects[trace.id, subject.id] = subject
    terms = terms_of(evaluator)
    labelled = placed(people_labels.labels, verdicts.values(), context.agent_names)
    opinions = people(labelled, terms)
    examples: dict[Key, LabelledExample] = {}
    maker = _Maker(evaluator, subjects, verdicts, project)
    for key in _proven(evaluator, ProgressFolder(progress), verdicts):
        verdict = verdicts[key]
        value = verdict.label if verdict.label is not None else verdict.value
        if key not in labelled and value is not None:
            maker.add(examples, key, value, origin_is_fix=True)
    fixes = len(examples)
    for key, opinion in against(opinions, verdicts, terms).items():
        value = opinion.label if opinion.label is not None else opinion.score
        if value is not None:
            maker.add(examples, key, value, labels=labelled[key])
    if maker.missing:
        note(f"{maker.missing} left out: their content is not available")
    if not examples:
        raise InputError(
            f"nothing to keep: no label contradicts `{evaluator.type}`, and no proven fix "
            "confirms a failure"
        )
    file = Path(out) if out is not None else _beside(rubric, evaluator, settings)
    total, fresh = _merge(file, examples.values())
    return KeptExamples(file, total, fresh, len(examples) - fixes, fixes)


def against(
    opinions: People, verdicts: Mapping[Key, JudgedThing], terms: Terms
) -> dict[Key, Opinion]:
    """Return people's opinions that differ from the judge's.

    They are compared by label if both gave one, else by whether they pass.
    """
    differing: dict[Key, Opinion] = {}
    for key, opinion in opinions.opinions.items():
        verdict = verdicts.get(key)
        if verdict is None or verdict.passed is None:
            continue
        if opinion.label in terms.labels and verdict.label is not None:
            differs = opinion.label != verdict.label
        else:
            label = people_class(opinion, "verdicts", terms)
            differs = label is not None and label != verdict.status
        if differs:
            differing[key] = opinion
    return differing


class _Maker:
    """Makes examples of judged things; ``missing`` counts those without available content."""

    def __init__(
        self,
        evaluator: Judged,
        subjects: Mapping[Key, Subject],
        verdicts: Mapping[Key, JudgedThing],
        project: str | None,
    ) -> None:
        self._evaluator, self._subjects, self._verdicts = evaluator, subjects, verdicts
        self._project = project
        self.missing = 0

    def add(
        self,
        examples: dict[Key, LabelledExample],
        key: Key,
        value: str | float,
        *,
        labels: Sequence[Label] = (),
        origin_is_fix: bool = False,
    ) -> None:
        """Make one, unless what was judged no longer exists."""
        subject = self._subjects.get(key)
        question = None if subject is None else shown_to_judge(self._evaluator, subject)
        if question is None:
            self.missing += 1
            return
        verdict = self._verdicts[key]
        agreeing = [label for label in labels if label.value == value]
        examples[key] = example_of(
            question.sections,
            rubric=self._evaluator.type,
            conversation=key[0],
            subject=key[1],
            project=self._project,
            value=value,
            judged=verdict.label if verdict.label is not None else verdict.value,
            note="; ".join(label.note for label in agreeing if label.note) or None,
            origin="proven fix" if origin_is_fix else "label",
            at=max((label.at for label in agreeing if label.at), default=None),
        )


def shown_to_judge(evaluator: Judged, subject: Subject) -> Question | None:
    """Return the question about a subject; ``None`` if it cannot be asked."""
    try:
        question = evaluator.question(subject)
    except ValueError:
        return None
    return question if isinstance(question, Question) else None


def _proven(
    evaluator: Judged, folder: ProgressFolder, verdicts: Mapping[Key, JudgedThing]
) -> Iterator[Key]:
    """Yield the failures of a rubric that belong to issues with a proven fix.

    With the fix they pass, so that the failures were right: such a verdict is as good as a label.
    """
    for kept in folder.read_all():
        if kept.fix is None or kept.fix.state != "proven":
            continue
        if not {evaluator.type, evaluator.name} & set(kept.issue.evaluators):
            continue
        for member in kept.issue.members:
            key = (member.conversation, member.dispatch or "")
            verdict = verdicts.get(key)
            if verdict is not None and verdict.passed is False and not verdict.settled:
                yield key


def _beside(rubric: str, evaluator: Judged, config: Config | None) -> Path:
    files = rubric_files(config, (), [rubric])
    there = files.get(evaluator.shape.name)
    name = f"{evaluator.shape.name}.examples.jsonl"
    return there.file.with_name(name) if there is not None and there.own else Path(name)


def _merge(file: Path, items: Collection[LabelledExample]) -> tuple[int, int]:
    """Add examples to a file; return the number of all and of new examples."""
    before = {each.key: each for each in read_examples(file)} if file.exists() else {}
    after = {**before, **{each.key: each for each in items}}
    kept = list(after.values())[-MOST:]
    with naming(file):
        make_folder(file.parent)
        write_whole(file, b"".join(msgspec.json.encode(each) + b"\n" for each in kept))
    return len(kept), sum(before.get(each.key) != each for each in items)
