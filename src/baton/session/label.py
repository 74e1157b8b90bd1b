"""Labelling an evaluation by hand: the questions, their order, and the labels."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from baton.datasets.labels import Label, LabelFile
from baton.evaluators.judged import Judged
from baton.formats.storage_addresses import place_of
from baton.model import EvalContext, InputError
from baton.runner.calibration_report import ToLabel, to_label
from baton.runner.judged_subjects import of_evaluation, terms_of
from baton.stats.calibration import FAILED, PASSED
from baton.store import (
    evaluation_traces,
    latest_evaluation,
    read_evaluation,
)

from .evaluation import Evaluation
from .file_kinds import config_of
from .prepare import PathLike
from .report import STORED, folder_of
from .rubrics import rubric_evaluator, rubric_of


def label(
    evaluation: Evaluation | PathLike | None = None,
    *,
    rubric: str | None = None,
    labels: PathLike = "labels.jsonl",
    by: str | None = None,
    config: PathLike | None = None,
    agents: PathLike | None = None,
    traces: Sequence[PathLike] = (),
    stored: PathLike = STORED,
) -> Labelling:
    """Return the things of an evaluation to label, the most valuable first.

    Args:
        evaluation: what ``score`` or ``evaluate`` returned, or its folder or address; the newest
            one below ``stored`` when left out.
        rubric: the rubric to label by; the one that judged the evaluation when left out.
        labels: the file for the labels, one JSON object per line; existing lines are kept.
        by: the name of the person who labels, if there are several.
        config: for the user's own rubrics.
        agents: agent definitions, for traces that are elsewhere.
        traces: recordings that the evaluation was made from.
        stored: where evaluations are stored.

    Raises:
        InputError: no such rubric, or nothing in the evaluation that it judges.
    """
    folder = folder_of(latest_evaluation(Path(stored)) if evaluation is None else evaluation)
    definitions = None if agents is None else Path(agents)
    made = read_evaluation(folder, traces=[Path(each) for each in traces], agents=definitions)
    settings = config_of(config) if config is not None else None
    evaluator = rubric_evaluator(rubric or rubric_of(made), settings)
    verdicts = of_evaluation(made, evaluator.type)
    things = to_label(evaluator, evaluation_traces(made, definitions), EvalContext(), verdicts)
    if not things:
        raise InputError(f"{place_of(made.folder)}: holds nothing that `{evaluator.type}` judges")
    return Labelling(evaluator, things, LabelFile(Path(labels)), by)


class Labelling:
    """The things to label by one rubric, and the file that stores each label at once.

    ``things`` are all of them; those with a label in the file are not asked again.
    """

    def __init__(
        self, evaluator: Judged, things: list[ToLabel], file: LabelFile, by: str | None
    ) -> None:
        self.evaluator, self.things, self.file = evaluator, things, file
        self.terms = terms_of(evaluator)
        self._by = by
        done = set(file.labelled(evaluator.type, by))
        self._due = [place for place, one in enumerate(things) if one.key not in done]

    @property
    def choices(self) -> list[str]:
        """The possible labels; none if the answer is a number on a scale."""
        plain = [] if self.evaluator.rubric.answer.scale is not None else [PASSED, FAILED]
        return list(self.terms.labels) or plain

    @property
    def left(self) -> int:
        """How many have no label yet."""
        return len(self._due)

    @property
    def now(self) -> ToLabel:
        """The current thing; raises IndexError when nothing is left."""
        return self.things[self._due[0]]

    def give(self, label: str | None = None, score: float | None = None) -> None:
        """Label the current thing, and write the label to the file.

        Args:
            label: one of ``choices``.
            score: a number of the scale, if there are no choices.

        Raises:
            ValueError: the score is not on the scale, or there is no such label.
            OSError: the file cannot be written.
        """
        if score is not None:
            self.terms.score(score)
        elif label not in self.choices:
            raise ValueError(f"`{label}` is not a label: {', '.join(self.choices)}")
        subject = self.now.subject
        self.file.add(
            Label(
                trace=subject.trace.id,
                subject=None if subject.unit == "trace" else subject.id,
                rubric=self.evaluator.type,
                value=str(label) if score is None else score,
                by=self._by,
                at=datetime.now(UTC).isoformat(timespec="seconds"),
                origin="baton label",
            )
        )
        self._due.pop(0)

    def skip(self) -> None:
        """Ask about this one after all others."""
        self._due.append(self._due.pop(0))

    def take_back(self) -> Label | None:
        """Remove the last label from the file, and ask again; return it, or ``None``."""
        taken = self.file.take_back(self.evaluator.type, self._by)
        if taken is not None:
            key = (taken.trace, taken.what)
            self._due[:0] = [place for place, one in enumerate(self.things) if one.key == key]
        return taken
