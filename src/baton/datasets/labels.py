"""People's labels of single dispatches: one JSON object per line, or `labels` of cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from baton.formats.document import Document, read_bytes
from baton.formats.own_files import make_folder, naming, write_whole
from baton.model import Dataset, InputError, Location, Problem, suggestion


class Label(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One person's label of one thing: a line of a file, or a row of a server.

    ``subject`` is the id of a dispatch, turn, run or tool call of the trace with the id ``trace``;
    without one, the whole trace is meant. ``value`` is a label of the rubric (or ``passed`` or
    ``failed``), or a score. ``by`` says who labelled, ``at`` when (RFC 3339), ``origin`` with what
    (``baton label``, ``api``).

    Labels of a dataset have the ``case`` instead of the trace. Their ``subject`` may also be the
    receiver of a dispatch, and is ``None`` if the trace has only one thing to judge. Their
    ``value`` holds a score as text. ``where`` is set by reading, and never written.
    """

    trace: str | None = None
    subject: str | None = None
    rubric: str
    value: str | float
    by: str | None = None
    at: str | None = None
    note: str | None = None
    origin: str | None = None
    case: str | None = None
    where: Location | None = None

    @property
    def what(self) -> str | None:
        """The id of the labelled thing: the trace's, if the label is about all of it."""
        return self.subject or self.trace

    @property
    def said(self) -> str:
        """The label in words, for messages."""
        return f"`{self.value}`" if isinstance(self.value, str) else f"{self.value:g}"

    def problem(self, message: str) -> Problem:
        """Return a problem of this label, with its place."""
        where = self.where or Location(file=self.origin or "labels")
        return Problem(file=where.file, line=where.line, message=message)


class LabelLine(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A label as written in a file or a request.

    Files of Baton 0.1 have ``dispatch`` instead of ``subject``, and ``label`` or ``score`` instead
    of ``value``.
    """

    trace: str
    subject: str | None = None
    dispatch: str | None = None
    rubric: str
    value: str | float | None = None
    label: str | None = None
    score: float | None = None
    by: str | None = None
    at: str | None = None
    note: str | None = None
    origin: str | None = None

    def __post_init__(self) -> None:
        if sum(one_value is not None for one_value in (self.value, self.label, self.score)) != 1:
            raise ValueError("a line has one `value` (or one `label` or `score`)")
        if self.dispatch is not None and self.subject is not None:
            raise ValueError("`dispatch` and `subject` both say what is labelled: give one")

    def as_label(self, where: Location | None = None) -> Label:
        """Return it as a label."""
        value = next(each for each in (self.value, self.label, self.score) if each is not None)
        return Label(
            trace=self.trace,
            subject=self.subject or self.dispatch,
            rubric=self.rubric,
            value=value,
            by=self.by,
            at=self.at,
            note=self.note,
            origin=self.origin,
            where=where,
        )


def read_labels(path: Path) -> list[Label]:
    """Read a file of labels.

    Raises:
        InputError: lists every wrong line, with what to write instead; also if one person gave two
            labels to the same thing.
    """
    problems: list[Problem] = []
    labels = list(label_lines(path, problems))
    first: dict[tuple[str | None, ...], Label] = {}
    for label in labels:
        key = (label.rubric, label.trace, label.what, label.by)
        earlier = first.setdefault(key, label)
        if earlier.value != label.value and earlier.where is not None:
            who = f" by {label.by}" if label.by else ""
            problems.append(
                label.problem(
                    f"`{label.what}` is labelled {label.said}{who}, and {earlier.said} on line "
                    f"{earlier.where.line}: remove one of them"
                )
            )
    if problems:
        raise InputError(problems)
    return labels


def label_lines(path: Path, problems: list[Problem]) -> Iterator[Label]:
    """Yield the labels of a file; errors are added to ``problems``."""
    for number, raw in enumerate(read_bytes(path).splitlines(), 1):
        if not raw.strip():
            continue
        try:
            line = Document(str(path), raw, "json", number).decode(LabelLine)
            yield line.as_label(Location(file=str(path), line=number))
        except InputError as error:
            problems += error.problems


def labels_of(dataset: Dataset) -> list[Label]:
    """Return the labels of cases, each named ``RUBRIC`` or ``RUBRIC/SUBJECT``."""
    labels: list[Label] = []
    for case in dataset:
        for name, value in case.labels.items():
            rubric, _, subject = name.partition("/")
            labels.append(
                Label(
                    rubric=rubric,
                    case=case.id,
                    subject=subject or None,
                    value=value,
                    where=case.where or Location(file=dataset.name),
                )
            )
    return labels


def of_rubric(labels: Iterable[Label], names: Iterable[str]) -> list[Label]:
    """Return the labels of a rubric, by any of its names.

    Raises:
        InputError: there is none; names the rubrics that have labels.
    """
    wanted = list(names)
    there = list(labels)
    chosen = [label for label in there if label.rubric in wanted]
    if not chosen:
        hint = (
            suggestion(wanted[0], {label.rubric for label in there}) or "there are no labels at all"
        )
        raise InputError(f"no label of `{wanted[0]}`; {hint}")
    return chosen


class LabelFile:
    """Adds labels at the end of a file, and takes the last one back.

    A new label is written to the file at once.
    """

    def __init__(self, path: Path) -> None:
        """Read the existing labels; raises InputError that lists each wrong line."""
        self.path = path
        self._lines: list[Label] = []
        if path.exists():
            problems: list[Problem] = []
            self._lines = list(label_lines(path, problems))
            if problems:
                raise InputError(problems)

    def labelled(self, rubric: str, by: str | None) -> list[tuple[str, str]]:
        """Return ids of traces, and the subjects in them that this person labelled by a rubric."""
        return [
            (str(line.trace), str(line.what))
            for line in self._lines
            if line.rubric == rubric and line.by == by
        ]

    def add(self, line: Label) -> None:
        """Write one more label."""
        text = msgspec.json.encode(msgspec.structs.replace(line, where=None)) + b"\n"
        make_folder(self.path.parent)
        with naming(self.path), self.path.open("ab+") as file:
            if file.tell():
                file.seek(-1, 2)
                text = text if file.read(1) == b"\n" else b"\n" + text
            file.write(text)
        self._lines.append(line)

    def take_back(self, rubric: str, by: str | None) -> Label | None:
        """Remove the last line and return it; ``None`` if the label is a different one."""
        if not self._lines or (self._lines[-1].rubric, self._lines[-1].by) != (rubric, by):
            return None
        data = self.path.read_bytes().rstrip()
        write_whole(self.path, data[: data.rfind(b"\n") + 1])
        return self._lines.pop()
