"""What people say of single dispatches: one JSON object a line, or `labels` of cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from baton.formats.document import Document, read_bytes
from baton.formats.own_files import make_folder, naming, write_whole
from baton.model import Dataset, InputError, Location, Problem, suggestion


class LabelLine(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line of a file of labels.

    ``dispatch`` is the id of a dispatch in the trace with the id ``trace``; ``subject`` that of
    a turn, run or tool call, for rubrics of those; with neither, the whole trace is meant. There
    is a ``label`` (one of the rubric's, or ``passed`` or ``failed``) or a ``score``. ``by`` says
    who labelled, ``at`` when (ISO 8601).
    """

    trace: str
    dispatch: str | None = None
    subject: str | None = None
    rubric: str
    label: str | None = None
    score: float | None = None
    by: str | None = None
    note: str | None = None
    at: str | None = None

    def __post_init__(self) -> None:
        if (self.label is None) == (self.score is None):
            raise ValueError("a line has either a `label` or a `score`")
        if self.dispatch is not None and self.subject is not None:
            raise ValueError("`dispatch` and `subject` both say what is labelled: give one")


class HumanLabel(msgspec.Struct, frozen=True, kw_only=True):
    """What one person says of one thing, and where that is written.

    ``trace`` and ``subject`` are ids. Labels of a dataset have the ``case`` instead of the trace;
    their ``subject`` may also be the agent a dispatch goes to, and is ``None`` where the trace
    has only one thing to judge; a score stands as text in their ``label``.
    """

    rubric: str
    trace: str | None = None
    case: str | None = None
    subject: str | None = None
    label: str | None = None
    score: float | None = None
    by: str | None = None
    where: Location

    @property
    def said(self) -> str:
        """What it says, for messages."""
        return f"`{self.label}`" if self.label is not None else f"{self.score:g}"

    def problem(self, message: str) -> Problem:
        """Word a problem of this label."""
        return Problem(file=self.where.file, line=self.where.line, message=message)


def read_labels(path: Path) -> list[HumanLabel]:
    """Read a file of labels.

    Raises:
        InputError: every line that is wrong, with what to write instead; one person said two
            things of the same.
    """
    labels: list[HumanLabel] = []
    problems: list[Problem] = []
    for number, line in label_lines(path, problems):
        what = line.dispatch or line.subject or line.trace
        where = Location(file=str(path), line=number)
        labels.append(
            HumanLabel(
                rubric=line.rubric,
                trace=line.trace,
                subject=what,
                label=line.label,
                score=line.score,
                by=line.by,
                where=where,
            )
        )
    first: dict[tuple[str | None, ...], HumanLabel] = {}
    for label in labels:
        key = (label.rubric, label.trace, label.subject, label.by)
        earlier = first.setdefault(key, label)
        if (earlier.label, earlier.score) != (label.label, label.score):
            who = f" by {label.by}" if label.by else ""
            problems.append(
                label.problem(
                    f"`{label.subject}` is labelled {label.said}{who}, and {earlier.said} on line "
                    f"{earlier.where.line}: take one of them out"
                )
            )
    if problems:
        raise InputError(problems)
    return labels


def label_lines(path: Path, problems: list[Problem]) -> Iterator[tuple[int, LabelLine]]:
    """Yield the lines of a file of labels with their numbers; faults go to ``problems``."""
    for number, raw in enumerate(read_bytes(path).splitlines(), 1):
        if not raw.strip():
            continue
        try:
            yield number, Document(str(path), raw, "json", number).decode(LabelLine)
        except InputError as error:
            problems += error.problems


def labels_of(dataset: Dataset) -> list[HumanLabel]:
    """Return the labels of cases, each named ``RUBRIC`` or ``RUBRIC/SUBJECT``."""
    labels: list[HumanLabel] = []
    for case in dataset:
        for name, said in case.labels.items():
            rubric, _, subject = name.partition("/")
            labels.append(
                HumanLabel(
                    rubric=rubric,
                    case=case.id,
                    subject=subject or None,
                    label=said,
                    where=case.where or Location(file=dataset.name),
                )
            )
    return labels


def of_rubric(labels: Iterable[HumanLabel], names: Iterable[str]) -> list[HumanLabel]:
    """Return the labels of a rubric, by any of its names.

    Raises:
        InputError: there is none; with the rubrics there are labels of.
    """
    wanted = list(names)
    there = list(labels)
    chosen = [label for label in there if label.rubric in wanted]
    if not chosen:
        hint = suggestion(wanted[0], {label.rubric for label in there}) or "there is none at all"
        raise InputError(f"no label of `{wanted[0]}`; {hint}")
    return chosen


class LabelFile:
    """Adds labels at the end of a file, and takes the last one back.

    What is added is out of this process at once.
    """

    def __init__(self, path: Path) -> None:
        """Read what is there; raises InputError for each line that is wrong."""
        self.path = path
        self._lines: list[LabelLine] = []
        if path.exists():
            problems: list[Problem] = []
            self._lines = [line for _, line in label_lines(path, problems)]
            if problems:
                raise InputError(problems)

    def labelled(self, rubric: str, by: str | None) -> list[tuple[str, str]]:
        """Return the ids of traces, and of what in them this person labelled by a rubric."""
        return [
            (line.trace, line.dispatch or line.subject or line.trace)
            for line in self._lines
            if line.rubric == rubric and line.by == by
        ]

    def add(self, line: LabelLine) -> None:
        """Write one more label."""
        text = msgspec.json.encode(line) + b"\n"
        make_folder(self.path.parent)
        with naming(self.path), self.path.open("ab+") as file:
            if file.tell():
                file.seek(-1, 2)
                text = text if file.read(1) == b"\n" else b"\n" + text
            file.write(text)
        self._lines.append(line)

    def take_back(self, rubric: str, by: str | None) -> LabelLine | None:
        """Remove the last line and return it; ``None`` when it is of somebody or something else."""
        if not self._lines or (self._lines[-1].rubric, self._lines[-1].by) != (rubric, by):
            return None
        data = self.path.read_bytes().rstrip()
        write_whole(self.path, data[: data.rfind(b"\n") + 1])
        return self._lines.pop()
